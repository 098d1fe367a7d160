"""Sizes of the tiny models. The image is 64x64, cut into 8x8 patches, and becomes 16 tokens."""

from __future__ import annotations

from training.worlds.world import Architecture

# Language model. minicpmv's resampler has heads of width 128, so the width must be a multiple of it.
WIDTH, HEADS, KV_HEADS, HEAD_WIDTH, FFN, LAYERS = 128, 4, 2, 32, 384, 4
ROPE_BASE, RMS_EPS = 10000.0, 1e-6
M_ROPE_SECTIONS = (6, 5, 5, 0)
"""qwen3vl's `rope.dimension_sections`; the first three add up to half a head."""

# Vision encoder. Its FFN must not be as wide as its embedding: llama.cpp would swap up and down.
VISION_WIDTH, VISION_HEADS, VISION_FFN, VISION_LAYERS = 96, 3, 256, 3
IMAGE, PATCH, GRID = 64, 8, 8
VISION_EPS = 1e-6
INTERNVL_MLP_EPS = 1e-5

CONTEXT = 1024
IMAGE_MEAN_STD: dict[Architecture, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "qwen3vl": ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
    "internvl": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "minicpmv": ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
}
