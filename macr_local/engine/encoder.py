"""A vision encoder's header against what llama.cpp's graphs take for granted.

llama.cpp checks a projector file less than a model: a key of another kind, a missing norm or one of the
wrong length ends the process when the file is loaded or the first image is encoded. For the three kinds in
the pools that come with this package every tensor's shape is known here; for the others, the keys.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from macr_local.engine.gguf import shown
from macr_local.engine.header import Header, TensorInfo

_V = "clip.vision."
_REQUIRED = {
    f"{_V}image_size": "u32", f"{_V}patch_size": "u32", f"{_V}embedding_length": "u32",
    f"{_V}feed_forward_length": "u32", f"{_V}block_count": "u32", f"{_V}projection_dim": "u32",
    f"{_V}attention.head_count": "u32", f"{_V}attention.layer_norm_epsilon": "f32",
    f"{_V}image_mean": "[f32]", f"{_V}image_std": "[f32]",
}  # fmt: skip
_OPTIONAL = {
    "general.name": "str", "general.description": "str",
    "clip.projector_type": "str", f"{_V}projector_type": "str",
    "clip.has_vision_encoder": "bool", "clip.has_audio_encoder": "bool", "clip.has_gen_audio_encoder": "bool",
    "clip.use_gelu": "bool", "clip.use_silu": "bool",
    f"{_V}attention.head_count_kv": "u32", f"{_V}attention.head_dim": "u32", f"{_V}feature_layer": "[i32]",
    f"{_V}image_min_pixels": "u32", f"{_V}image_max_pixels": "u32", f"{_V}preproc_min_tiles": "u32",
    f"{_V}preproc_max_tiles": "u32", f"{_V}preproc_image_size": "u32", f"{_V}projector.scale_factor": "u32",
    f"{_V}projector.query_side": "u32", f"{_V}projector.window_side": "u32", f"{_V}spatial_merge_size": "u32",
    f"{_V}mm_patch_merge_type": "str", f"{_V}image_grid_pinpoints": "[i32]", f"{_V}n_wa_pattern": "u32",
    f"{_V}wa_layer_indexes": "[i32]", f"{_V}wa_pattern_mode": "[i32]", f"{_V}window_size": "u32",
    "clip.minicpmv_version": "i32", "clip.minicpmv_query_num": "u32",
}  # fmt: skip
"""Keys that clip.cpp reads with a getter that ends the process where the kind is another."""

_MAX_LAYERS = 512
_MAX_IMAGE = 8192
_MAX_TILES = 1024
_GRID = 70
"""Positions a side that a resampler's table has; clip.cpp reckons with it whatever the table's size."""

# A tensor, and its dimensions in letters: the same letter is the same number throughout one encoder, F, G and
# H only within one layer. E is the encoder's width, M that of merged patches, T that of the embeddings it
# makes, P a patch's side, S the positions, Q the queries. A name that ends in "?" may be absent.
_Rows = tuple[tuple[str, str], ...]
_LOCAL = "FGH"
_LAYER: _Rows = (
    ("ln1.weight", "E"), ("ln1.bias?", "E"), ("ln2.weight", "E"), ("ln2.bias?", "E"),
    ("attn_out.weight", "E E"), ("attn_out.bias?", "E"), ("ls1.weight?", "E"), ("ls2.weight?", "E"),
)  # fmt: skip
_FUSED: _Rows = (("attn_qkv.weight", "E 3E"), ("attn_qkv.bias?", "3E"))
_QWEN3VL_ATTENTION: _Rows = (("attn_qkv.weight", "E 3E"), ("attn_qkv.bias", "3E"))
_APART: _Rows = tuple(
    row for part in "qkv" for row in ((f"attn_{part}.weight", "E E"), (f"attn_{part}.bias?", "E"))
)
_FFN: _Rows = (
    ("ffn_up.weight", "E F"), ("ffn_up.bias?", "F"), ("ffn_down.weight", "F E"), ("ffn_down.bias?", "E"),
)  # fmt: skip
_SWAPPED_FFN: _Rows = tuple(
    (name.replace("up", "DOWN").replace("down", "up").replace("DOWN", "down"), dims) for name, dims in _FFN
)
_DEEPSTACK: _Rows = (
    ("norm.weight", "M"), ("norm.bias?", "M"), ("fc1.weight", "M G"), ("fc1.bias?", "G"),
    ("fc2.weight", "G T"), ("fc2.bias?", "T"),
)  # fmt: skip
_OUTSIDE: _Rows = (
    ("v.patch_embd.weight", "P P 3 E"), ("v.pre_ln.weight?", "E"), ("v.pre_ln.bias?", "E"),
    ("v.post_ln.weight?", "E"), ("v.post_ln.bias?", "E"),
)  # fmt: skip
_KNOWN: dict[str, _Rows] = {
    "qwen3vl_merger": (
        ("v.patch_embd.bias", "E"), ("v.patch_embd.weight.1", "P P 3 E"), ("v.position_embd.weight", "E S"),
        ("mm.0.weight", "M H"), ("mm.0.bias", "H"), ("mm.2.weight", "H T"), ("mm.2.bias", "T"),
    ),
    "internvl": (
        ("v.patch_embd.bias?", "E"), ("v.class_embd", "E"), ("v.position_embd.weight", "E S"),
        ("mm.model.mlp.0.weight", "M"), ("mm.model.mlp.0.bias", "M"), ("mm.model.mlp.1.weight", "M H"),
        ("mm.model.mlp.1.bias", "H"), ("mm.model.mlp.3.weight", "H T"), ("mm.model.mlp.3.bias", "T"),
    ),
    "resampler": (
        ("v.patch_embd.bias?", "E"), ("v.position_embd.weight", "E S"), ("resampler.query", "T Q"),
        ("resampler.kv.weight", "E T"), ("resampler.proj.weight", "T T"),
        *((f"resampler.attn.{part}.weight", "T T") for part in ("q", "k", "v", "out")),
        *((f"resampler.attn.{part}.bias", "T") for part in ("q", "k", "v", "out")),
        *((f"resampler.ln_{part}.weight", "T") for part in ("q", "kv", "post")),
        *((f"resampler.ln_{part}.bias", "T") for part in ("q", "kv", "post")),
    ),
}  # fmt: skip
_NO_MATRIX = frozenset({"I8", "I16", "I32", "I64", "F64"})
_FLOATS = frozenset({"F32", "F16", "BF16"})
_MUST_BE_F32 = frozenset({"resampler.query"})


def fault(header: Header, kind: str) -> str | None:
    """The first thing in a projector's header that llama.cpp would trip over; None where all is in order.

    Args:
        header: A projector's header, of general architecture ``clip``.
        kind: Its projector type, one of `PROJECTOR_TYPES`.

    Returns:
        What is wrong, to stand behind the file's name.
    """
    return next(_faults(header, kind), None)


def _faults(header: Header, kind: str) -> Iterator[str]:
    yield from _key_faults(header)
    if kind in _KNOWN:
        yield from _number_faults(header)
        yield from _shape_faults(header, kind)
    elif kind != "gemma3nv" and "v.patch_embd.weight" not in header.by_name:
        yield _without("v.patch_embd.weight")


def _key_faults(header: Header) -> Iterator[str]:
    for key, kind in (_REQUIRED | _OPTIONAL).items():
        found = header.kinds.get(key)
        if found is None and key in _REQUIRED:
            yield f"has no {key}"
        elif found is not None and found != kind:
            yield f"stores {key} as {found} instead of {kind}"


def _number_faults(header: Header) -> Iterator[str]:
    width, heads = header.number(f"{_V}embedding_length"), header.number(f"{_V}attention.head_count")
    image, patch = header.number(f"{_V}image_size"), header.number(f"{_V}patch_size")
    if not 0 < heads <= width or width % heads:
        yield f"has {heads} heads in a width of {width}"
    if not 0 < header.number(f"{_V}block_count") <= _MAX_LAYERS:
        yield f"has {header.number(f'{_V}block_count')} layers"
    if not 0 < patch <= image <= _MAX_IMAGE:
        yield f"has images of {image} pixels a side in patches of {patch}"
    epsilon = float(header.metadata[f"{_V}attention.layer_norm_epsilon"])
    if not 0 <= epsilon < 1:
        yield f"has the epsilon {epsilon:g}"
    for key in ("image_mean", "image_std"):
        values = [float(value) for value in header.metadata[f"{_V}{key}"]]
        usable = all(math.isfinite(value) and (value > 0 or key == "image_mean") for value in values)
        if len(values) < 3 or not usable:
            yield f"has the {key} {values[:3]}"


def _shape_faults(header: Header, kind: str) -> Iterator[str]:
    width, patch = header.number(f"{_V}embedding_length"), header.number(f"{_V}patch_size")
    sizes = {"E": width, "P": patch, "M": width * _merge(header, kind) ** 2}
    yield from _mismatches(header, "", _OUTSIDE + _KNOWN[kind], sizes)
    for layer in range(header.number(f"{_V}block_count")):
        at = f"v.blk.{layer}."
        rows = _LAYER + _attention(header, at, kind) + _ffn(header, at, kind, width)
        yield from _mismatches(header, at, rows, sizes)
        at = f"v.deepstack.{layer}."
        if kind == "qwen3vl_merger" and f"{at}fc1.weight" in header.by_name:
            yield from _mismatches(header, at, _DEEPSTACK, sizes)
    yield from _SPECIAL[kind](header, sizes)


def _merge(header: Header, kind: str) -> int:
    """Patches along a side that become one cell."""
    if kind == "qwen3vl_merger":
        return header.number(f"{_V}spatial_merge_size", 2)
    return header.number(f"{_V}projector.scale_factor", 1) if kind == "internvl" else 1


def _attention(header: Header, at: str, kind: str) -> _Rows:
    if kind == "qwen3vl_merger":
        return _QWEN3VL_ATTENTION
    return _FUSED if f"{at}attn_qkv.weight" in header.by_name else _APART


def _ffn(header: Header, at: str, kind: str, width: int) -> _Rows:
    # Files of old converters have up and down swapped; clip.cpp swaps them back by this same rule.
    down = header.by_name.get(f"{at}ffn_down.weight")
    return _SWAPPED_FFN if kind == "resampler" and down and down.shape[:1] == (width,) else _FFN


def _mismatches(header: Header, at: str, rows: _Rows, sizes: dict[str, int]) -> Iterator[str]:
    for letter in _LOCAL:
        sizes.pop(letter, None)
    for row, dims in rows:
        name = at + row.removesuffix("?")
        tensor = header.by_name.get(name)
        if tensor is None:
            if not row.endswith("?"):
                yield _without(name)
        elif not _fits(tensor, dims, sizes):
            shape = "x".join(map(str, tensor.shape))
            yield f"has {shown(name)} as {shape}, which does not fit the rest"
        elif not _computes(tensor):
            yield f"has {shown(name)} in the type {tensor.type}"


def _fits(tensor: TensorInfo, dims: str, sizes: dict[str, int]) -> bool:
    """Whether a shape is what its letters say; a letter that is new takes its size from here."""
    wanted = dims.split()
    shape = list(tensor.shape)
    while len(shape) > len(wanted) and shape[-1] == 1:
        shape.pop()
    if len(shape) != len(wanted) or 0 in shape:
        return False
    for have, want in zip(shape, wanted, strict=True):
        letter = want.lstrip("0123456789")
        factor = int(want.removesuffix(letter) or 1)
        if have != factor * (sizes.setdefault(letter, have) if letter else 1):
            return False
    return True


def _computes(tensor: TensorInfo) -> bool:
    sides = [side for side in tensor.shape if side > 1]
    if len(sides) < 2 or tensor.name in _MUST_BE_F32:
        return tensor.type == "F32"
    if tensor.name.startswith("v.patch_embd.weight"):
        return tensor.type in _FLOATS
    return tensor.type not in _NO_MATRIX


def _qwen3vl(header: Header, sizes: dict[str, int]) -> Iterator[str]:
    if "v.class_embd" in header.by_name:
        yield "has a class token, which this projector does not know"
    if _merge(header, "qwen3vl_merger") != 2:
        yield f"merges {_merge(header, 'qwen3vl_merger')} patches a side; llama.cpp merges 2"
    if header.number(f"{_V}embedding_length") // header.number(f"{_V}attention.head_count") % 4:
        yield "has heads whose width is no multiple of 4"
    yield from _positions(header, math.isqrt(sizes["S"]) ** 2, sizes, ("F32",))


def _internvl(header: Header, sizes: dict[str, int]) -> Iterator[str]:
    side = header.number(f"{_V}image_size") // header.number(f"{_V}patch_size")
    merge = _merge(header, "internvl")
    least, most = header.number(f"{_V}preproc_min_tiles", 1), header.number(f"{_V}preproc_max_tiles", 12)
    if not 0 < merge <= side or side % merge:
        yield f"merges {merge} of {side} patches a side"
    if not 1 <= least <= most <= _MAX_TILES:
        yield f"cuts images into {least} to {most} tiles"
    yield from _positions(header, side**2 + 1, sizes, ("F32",))


def _resampler(header: Header, sizes: dict[str, int]) -> Iterator[str]:
    version = header.number("clip.minicpmv_version")
    queries = header.number("clip.minicpmv_query_num") or (96 if version in (0, 2) else 64)
    side = header.number(f"{_V}image_size") // header.number(f"{_V}patch_size")
    if "v.class_embd" in header.by_name:
        yield "has a class token, which this projector does not know"
    if "resampler.pos_embed_k" not in header.by_name:
        yield _without("resampler.pos_embed_k")
    if version not in (0, 2, 3, 4, 5, 6, 100045):
        yield f"is of MiniCPM-V version {version}, which this llama.cpp does not know"
    if queries != sizes["Q"]:
        yield f"has {sizes['Q']} queries and says {queries}"
    if sizes["T"] % 128:
        yield f"makes embeddings of {sizes['T']}, no multiple of 128"
    if not 0 < side <= _GRID:
        yield f"has {side} patches a side, and a resampler has at most {_GRID}"
    yield from _positions(header, max(sizes["S"], _GRID**2), sizes, ("F32", "F16"))


def _positions(header: Header, want: int, sizes: dict[str, int], types: tuple[str, ...]) -> Iterator[str]:
    tensor = header.by_name["v.position_embd.weight"]
    if sizes["S"] != want or tensor.type not in types:
        yield f"has {sizes['S']} positions of type {tensor.type} instead of {want} of {types[0]}"


def _without(name: str) -> str:
    return f"has no tensor {shown(name)}"


_SPECIAL = {"qwen3vl_merger": _qwen3vl, "internvl": _internvl, "resampler": _resampler}
