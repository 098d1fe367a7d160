"""The vision encoder and the projector as an mmproj GGUF file."""

from __future__ import annotations

from pathlib import Path

import torch

from training.chat import IMAGE_TOKENS
from training.export.tensors import TensorWriter
from training.networks.model import TinyModel
from training.networks.sizes import (
    GRID,
    IMAGE,
    IMAGE_MEAN_STD,
    PATCH,
    VISION_EPS,
    VISION_FFN,
    VISION_HEADS,
    VISION_LAYERS,
    VISION_WIDTH,
    WIDTH,
)
from training.networks.vision import InternVision, QwenVision, ResamplerVision, VisionBlock
from training.worlds.world import Architecture

PROJECTOR: dict[Architecture, str] = {
    "qwen3vl": "qwen3vl_merger",
    "internvl": "internvl",
    "minicpmv": "resampler",
}
_TABLE_SIDE = 70
_MINICPM_V_4_5 = 6


def export_projector(model: TinyModel, name: str, path: Path) -> None:
    """Write the vision part of a trained twin to ``path``, with ``name`` as `general.name`."""
    out = TensorWriter(str(path), "clip", "f16")
    meta = out.gguf
    meta.add_name(name)
    meta.add_license("mit")
    meta.add_bool("clip.has_vision_encoder", True)
    meta.add_bool("clip.use_gelu", True)
    meta.add_string("clip.projector_type", PROJECTOR[model.member])
    for key, value in {
        "image_size": IMAGE,
        "patch_size": PATCH,
        "embedding_length": VISION_WIDTH,
        "feed_forward_length": VISION_FFN,
        "block_count": VISION_LAYERS,
        "projection_dim": WIDTH,
        "attention.head_count": VISION_HEADS,
    }.items():
        meta.add_uint32(f"clip.vision.{key}", value)
    meta.add_float32("clip.vision.attention.layer_norm_epsilon", VISION_EPS)
    mean, std = IMAGE_MEAN_STD[model.member]
    meta.add_array("clip.vision.image_mean", mean)
    meta.add_array("clip.vision.image_std", std)
    vision = model.vision
    assert vision.patch.bias is not None
    out.exact("v.patch_embd.bias", vision.patch.bias)
    if isinstance(vision, QwenVision):
        _qwen(out, vision)
    elif isinstance(vision, InternVision):
        _intern(out, vision)
    elif isinstance(vision, ResamplerVision):
        _resampler(out, vision)
    for layer, block in enumerate(vision.blk):
        assert isinstance(block, VisionBlock)
        _block(out, f"v.blk.{layer}", block)
    out.close()


def _block(out: TensorWriter, prefix: str, block: VisionBlock) -> None:
    out.norm(f"{prefix}.ln1", block.ln1)
    out.norm(f"{prefix}.ln2", block.ln2)
    out.linear(f"{prefix}.attn_qkv", block.qkv)
    out.linear(f"{prefix}.attn_out", block.out)
    out.linear(f"{prefix}.ffn_up", block.up)
    out.linear(f"{prefix}.ffn_down", block.down)
    if block.ls1 is not None and block.ls2 is not None:
        out.exact(f"{prefix}.ls1.weight", block.ls1)
        out.exact(f"{prefix}.ls2.weight", block.ls2)


def _qwen(out: TensorWriter, vision: QwenVision) -> None:
    out.gguf.add_uint32("clip.vision.spatial_merge_size", 2)
    out.gguf.add_array("clip.vision.is_deepstack_layers", [True] + [False] * (VISION_LAYERS - 1))
    # Two temporal kernels, which llama.cpp sums for a still image.
    out.exact("v.patch_embd.weight", vision.patch.weight / 2)
    out.exact("v.patch_embd.weight.1", vision.patch.weight / 2)
    out.exact("v.position_embd.weight", vision.pos)
    out.norm("v.post_ln", vision.post_ln)
    out.linear("mm.0", vision.fc1)
    out.linear("mm.2", vision.fc2)
    out.norm("v.deepstack.0.norm", vision.ds_norm)
    out.linear("v.deepstack.0.fc1", vision.ds_fc1)
    out.linear("v.deepstack.0.fc2", vision.ds_fc2)


def _intern(out: TensorWriter, vision: InternVision) -> None:
    out.gguf.add_uint32("clip.vision.projector.scale_factor", 2)
    out.gguf.add_uint32("clip.vision.preproc_min_tiles", 1)
    out.gguf.add_uint32("clip.vision.preproc_max_tiles", 1)
    out.exact("v.patch_embd.weight", vision.patch.weight)
    out.exact("v.class_embd", vision.cls)
    out.exact("v.position_embd.weight", vision.pos)
    out.norm("mm.model.mlp.0", vision.ln)
    out.linear("mm.model.mlp.1", vision.fc1)
    out.linear("mm.model.mlp.3", vision.fc2)


def _resampler(out: TensorWriter, vision: ResamplerVision) -> None:
    out.gguf.add_int32("clip.minicpmv_version", _MINICPM_V_4_5)
    out.gguf.add_uint32("clip.minicpmv_query_num", IMAGE_TOKENS)
    out.exact("v.patch_embd.weight", vision.patch.weight)
    table = torch.zeros(_TABLE_SIDE**2, VISION_WIDTH)
    bucket = [_TABLE_SIDE * place // GRID for place in range(GRID)]
    for y in range(GRID):
        for x in range(GRID):
            table[bucket[y] * _TABLE_SIDE + bucket[x]] = vision.pos[y * GRID + x].detach()
    out.matrix("v.position_embd.weight", table)
    out.norm("v.post_ln", vision.post_ln)
    # The loader asks for this tensor; the graph computes its own.
    out.exact("resampler.pos_embed_k", vision.pe)
    out.exact("resampler.query", vision.query)
    out.linear("resampler.proj", vision.proj)
    out.linear("resampler.kv", vision.kv)
    out.linear("resampler.attn.q", vision.q)
    out.linear("resampler.attn.k", vision.k)
    out.linear("resampler.attn.v", vision.v)
    out.linear("resampler.attn.out", vision.out)
    out.norm("resampler.ln_q", vision.ln_q)
    out.norm("resampler.ln_kv", vision.ln_kv)
    out.norm("resampler.ln_post", vision.ln_post)
