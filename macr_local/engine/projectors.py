"""The vision projectors that this llama.cpp knows: what each needs of the model beside it.

Two models of the same width take each other's projectors as far as llama.cpp can see. What tells them apart
are the tokens that mark an image: mtmd looks them up in the model's vocabulary, and where they are missing it
puts token -1 into the prompt or spells the mark out in letters.
"""

from __future__ import annotations

from typing import NamedTuple

from macr_local.engine.header import Header


class Width(NamedTuple):
    """Where a projector's embedding width is written: a tensor's dimension, the fastest-running being 0."""

    tensor: str
    dimension: int


class ProjectorType(NamedTuple):
    """One kind of projector.

    Attributes:
        width: Where the width of its embeddings is read; None where it is no tensor's dimension.
        markers: Sets of tokens that mark an image; the model must have all of one set. None is no mark.
    """

    width: Width | None
    markers: tuple[tuple[str, ...], ...] = ()


_VISION = ("<|vision_start|>", "<|vision_end|>")
_IMAGE = ("<|image_start|>", "<|image_end|>")
_BEGIN_OF_IMAGE = ("<|begin_of_image|>", "<|end_of_image|>")
_START_OF_IMAGE = ("<start_of_image>", "<end_of_image>")
_SLICES = ("<image>", "</image>", "<slice>", "</slice>")
_STEP = ("<im_start>", "<im_end>", "<patch_start>", "<patch_end>", "<patch_newline>")
_MLP_OUT = Width("mm.2.weight", 1)
_MLP_BIAS = Width("mm.2.bias", 0)
_FC_OUT = Width("mm.model.fc.weight", 1)
_DOWN_OUT = Width("mm.down.weight", 1)

PROJECTOR_TYPES: dict[str, ProjectorType] = {
    "adapter": ProjectorType(Width("adapter.linear.dense_4h_to_h.weight", 1)),
    "cogvlm": ProjectorType(_DOWN_OUT),
    "deepseek4v": ProjectorType(_MLP_OUT),
    "deepseekocr": ProjectorType(_FC_OUT),
    "deepseekocr2": ProjectorType(_FC_OUT),
    "dots3note_v": ProjectorType(_MLP_OUT, (("<|img|>", "<|endofimg|>"),)),
    "dots_ocr": ProjectorType(_MLP_OUT, (("<|img|>", "<|endofimg|>"),)),
    "exaone4_5": ProjectorType(_MLP_BIAS, (("<vision>", "</vision>"),)),
    "gemma3": ProjectorType(Width("mm.input_projection.weight", 0), (_START_OF_IMAGE,)),
    "gemma3nv": ProjectorType(Width("mm.input_projection.weight", 0), (_START_OF_IMAGE,)),
    "gemma4uv": ProjectorType(Width("mm.input_projection.weight", 1), (("<|image>", "<image|>"),)),
    "gemma4v": ProjectorType(Width("mm.input_projection.weight", 1), (("<|image>", "<image|>"),)),
    "glm4v": ProjectorType(_DOWN_OUT, (_BEGIN_OF_IMAGE,)),
    "glm5v": ProjectorType(_DOWN_OUT, (_BEGIN_OF_IMAGE,)),
    "granite4_vision": ProjectorType(None),
    "hunyuanvl": ProjectorType(_FC_OUT, (("<｜hy_place▁holder▁no▁100｜>", "<｜hy_place▁holder▁no▁101｜>"),)),
    "idefics3": ProjectorType(_FC_OUT, (("<fake_token_around_image>", "<global-img>"),)),
    "internvl": ProjectorType(Width("mm.model.mlp.3.weight", 1), (("<img>", "</img>"),)),
    "janus_pro": ProjectorType(Width("mm.1.bias", 0)),
    "kimik25": ProjectorType(_MLP_OUT, (("<|media_begin|>", "<|media_end|>"), _BEGIN_OF_IMAGE)),
    "kimivl": ProjectorType(_MLP_OUT, (("<|media_start|>", "<|media_end|>"),)),
    "ldp": ProjectorType(Width("mm.model.mb_block.1.block.2.1.bias", 0)),
    "ldpv2": ProjectorType(Width("mm.model.peg.0.bias", 0)),
    "lfm2": ProjectorType(_MLP_OUT, ((*_IMAGE, "<|img_thumbnail|>"),)),
    "lightonocr": ProjectorType(_MLP_OUT, (("<|im_start|>", "<|im_end|>"),)),
    "ling3vl": ProjectorType(_MLP_BIAS, (_VISION,)),
    "llama4": ProjectorType(_FC_OUT, (_IMAGE,)),
    "mimovl": ProjectorType(_MLP_OUT, (_VISION,)),
    "minicpmv4_6": ProjectorType(_DOWN_OUT, (_SLICES,)),
    "minimax_m3": ProjectorType(
        Width("mm.merger.fc2.bias", 0), (("]<]start of image[>[", "]<]end of image[>["),)
    ),
    "mlp": ProjectorType(None),
    "muse-glimmer": ProjectorType(_MLP_OUT, (_IMAGE,)),
    "nemotron_v2_vl": ProjectorType(Width("mm.model.mlp.3.weight", 1)),
    "paddleocr": ProjectorType(_MLP_OUT, (("<|IMAGE_START|>", "<|IMAGE_END|>"),)),
    "phi4": ProjectorType(_MLP_OUT),
    "pixtral": ProjectorType(_MLP_OUT, (("[IMG_END]",),)),
    "qwen2.5o": ProjectorType(_MLP_BIAS, (_VISION,)),
    "qwen2.5vl_merger": ProjectorType(_MLP_BIAS, (_VISION,)),
    "qwen2vl_merger": ProjectorType(_MLP_BIAS, (_VISION,)),
    "qwen3vl_merger": ProjectorType(_MLP_BIAS, (_VISION,)),
    "resampler": ProjectorType(Width("resampler.proj.weight", 0), (_SLICES,)),
    "step3vl": ProjectorType(_FC_OUT, (_STEP,)),
    "yasa2": ProjectorType(_MLP_OUT),
    "youtuvl": ProjectorType(_MLP_BIAS, (_VISION,)),
}
"""By `clip.projector_type`, as mtmd.cpp (marks) and clip.cpp (widths) of this llama.cpp have them."""


def projector_type(header: Header) -> str:
    """The kind of vision projector that a header names; empty where it names none."""
    for key in ("clip.projector_type", "clip.vision.projector_type"):
        name = header.metadata.get(key)
        if isinstance(name, str) and name:
            return name
    return ""


def missing_markers(kind: str, model: Header) -> tuple[str, ...]:
    """The tokens that this kind of projector needs and the model's vocabulary does not have.

    Where a kind takes one of several sets, these are those missing of the set that lacks the fewest.
    """
    tokens = model.tokens
    sets = PROJECTOR_TYPES[kind].markers
    if tokens is None or not sets:
        return ()
    lacking = [tuple(text for text in marks if tokens.find(text.encode()) is None) for marks in sets]
    return min(lacking, key=len)


def embedding_width(kind: str, projector: Header) -> int | None:
    """Floats per image cell that a projector makes, deepstack layers included; None where it is not known."""
    place = PROJECTOR_TYPES[kind].width
    tensor = projector.by_name.get(place.tensor) if place else None
    if place is None or tensor is None:
        return None
    width = tensor.shape[place.dimension] if place.dimension < len(tensor.shape) else 1
    if kind == "qwen3vl_merger":
        layers = range(projector.number("clip.vision.block_count"))
        width *= 1 + sum(f"v.deepstack.{layer}.fc1.weight" in projector.by_name for layer in layers)
    return width


def input_width(model: Header) -> int | None:
    """Floats per cell that a language model takes in, deepstack layers included; None if it is not known."""
    name = model.architecture
    width = model.number(f"{name}.embedding_length")
    # Granite says by a mapping, and gemma4's assistant by another model, how wide its input is.
    if not width or name.startswith("granite") or name.endswith("assistant"):
        return None
    return width * (1 + model.number(f"{name}.n_deepstack_layers"))
