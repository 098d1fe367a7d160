"""What a pool will need in memory, told from the headers before anything is loaded.

The estimate follows what `Context` and `Projector` ask llama.cpp for. Weights and the KV cache are exact for
architectures that keep keys and values per layer; what the computation itself needs is an upper estimate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from macr_local.config import MemberSpec
from macr_local.engine.header import Header
from macr_local.engine.projectors import projector_type
from macr_local.errors import CapacityError

KV_BYTES = {"f16": 2.0, "q8_0": 34 / 32, "q4_0": 18 / 32}
"""Bytes of one element of the KV cache."""

_PAD = 256
"""llama.cpp rounds a context up to this many cells."""
_SEQUENCES = 2
"""Recurrent states per context: a bid is a forked sequence (`rollback.Fork`)."""
_OUTPUT_ROWS = 8
"""As many rows of logits as a context holds (`Context`), in the graph and again on the host."""
_FIXED = 5 << 20
_PER_TOKEN = 128
"""What a loaded model takes beside its tensors, as measured: at all, and for each token of its vocabulary."""
_RECURRENT = frozenset({"mamba", "mamba2", "rwkv6", "rwkv6qwen2", "rwkv7", "arwkv7"})
_BOTH = frozenset({"falcon-h1"})
"""Every layer of these has attention and a recurrent state."""
_TILED = frozenset({"internvl", "resampler", "gemma3", "idefics3", "llama4", "nemotron_v2_vl"})
"""Kinds of projectors that encode an image in pieces of their own image size."""


_GROUPS_V2 = ("memory.max", "memory.current", "inactive_file")
_GROUPS_V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
"""A control group's files for its limit and its use, and the part of its use that is given back on demand."""


@dataclass(frozen=True, slots=True)
class MemberMemory:
    """What one member needs, in bytes.

    Attributes:
        name: The member's name.
        weights: All tensors of the model.
        projector: All tensors of the projector; 0 without one.
        kv: The KV cache and recurrent states of the whole context.
        compute: What decoding a full batch and encoding the largest image need on top (estimated).
        tables: The vocabulary's tables and what else a loaded model takes beside its tensors (estimated).
    """

    name: str
    weights: int
    projector: int
    kv: int
    compute: int
    tables: int = 0

    @property
    def total(self) -> int:
        """All of it."""
        return self.weights + self.projector + self.kv + self.compute + self.tables


def plan(parts: Sequence[tuple[MemberSpec, Header, Header | None]]) -> tuple[MemberMemory, ...]:
    """What each member will need: its specification, its model's header and its projector's, if any."""
    return tuple(
        MemberMemory(
            name=spec.name,
            weights=model.weights,
            projector=projector.weights if projector else 0,
            kv=kv_bytes(spec, model),
            compute=_decode_bytes(spec, model) + (_encode_bytes(spec, projector) if projector else 0),
            tables=_FIXED + _PER_TOKEN * len(model.tokens or ()),
        )
        for spec, model, projector in parts
    )


def check(planned: Sequence[MemberMemory], available: int | None = None) -> None:
    """Refuse a pool that does not fit.

    Args:
        planned: As `plan` gives it.
        available: Bytes there are; None is this machine's main memory that is free now. Where layers go to a
            GPU, the caller adds what is free there.

    Raises:
        CapacityError: Names what each member needs, the sum, and what there is.
    """
    have = available_memory() if available is None else available
    need = sum(member.total for member in planned)
    if need <= have:
        return
    members = "; ".join(
        f"{member.name} {shown_bytes(member.total)} ({_parts(member)})"
        for member in sorted(planned, key=lambda member: -member.total)
    )
    raise CapacityError(
        f"The pool needs about {shown_bytes(need)} of memory and {shown_bytes(have)} are free: {members}",
        "Lower n_ctx, load fewer members or smaller quantizations, or close other programs",
    )


def kv_bytes(spec: MemberSpec, model: Header) -> int:
    """The KV cache and the recurrent states of a member's context.

    A layer keeps n_ctx cells of head_count_kv keys and values. Layers with a sliding window do so too: a
    context keeps their windows in full, so that a lost bid never moves later bits.
    """
    name = model.architecture
    cells = -(-spec.n_ctx // _PAD) * _PAD
    per_element = KV_BYTES[spec.kv_type]
    recurrent_state = _SEQUENCES * 4 * _recurrent_elements(model)
    sizes = 0.0
    for layer, heads in enumerate(_kv_heads(model)):
        recurrent = name in _RECURRENT or heads == 0 or _is_recurrent(model, layer)
        if recurrent or name in _BOTH:
            sizes += recurrent_state
        if not recurrent or name in _BOTH:
            key, value = _head_lengths(model, layer)
            sizes += cells * heads * (key + value) * per_element
    return int(sizes)


def _kv_heads(model: Header) -> list[int]:
    """KV heads of each layer that has a cache of its own."""
    name = model.architecture
    layers = model.number(f"{name}.block_count") - model.number(f"{name}.nextn_predict_layers")
    shared = 10 if name == "gemma3n" else model.number(f"{name}.attention.shared_kv_layers")
    heads = model.metadata.get(f"{name}.attention.head_count_kv")
    if heads is None:
        heads = model.metadata.get(f"{name}.attention.head_count", 0)
    per_layer = _per_layer(heads, min(max(layers, 0), 4096))
    return per_layer[: len(per_layer) - shared] if 0 < shared < len(per_layer) else per_layer


def _per_layer(value: Any, layers: int) -> list[int]:
    if isinstance(value, np.ndarray):
        given = [int(one) for one in value[:layers]]
        return given + [0] * (layers - len(given))
    return [int(value)] * layers


def _head_lengths(model: Header, layer: int) -> tuple[int, int]:
    """Elements of one head's key and value."""
    name = model.architecture
    heads = max(_per_layer(model.metadata.get(f"{name}.attention.head_count", 0), layer + 1)[layer], 1)
    whole = model.number(f"{name}.embedding_length") // heads
    key = model.number(f"{name}.attention.key_length", whole)
    value = model.number(f"{name}.attention.value_length", whole)
    if _flag(model, f"{name}.attention.sliding_window_pattern", layer):
        key = model.number(f"{name}.attention.key_length_swa", key)
        value = model.number(f"{name}.attention.value_length_swa", value)
    # Latent attention keeps one compressed vector, from which keys and values are made again.
    return key, 0 if f"{name}.attention.key_length_mla" in model.metadata else value


def _is_recurrent(model: Header, layer: int) -> bool:
    name = model.architecture
    listed = f"{name}.attention.recurrent_layers"
    if listed in model.metadata:
        return _flag(model, listed, layer)
    interval = model.number(f"{name}.full_attention_interval")
    return interval > 0 and (layer + 1) % interval != 0


def _flag(model: Header, key: str, layer: int) -> bool:
    """What an array with a flag for each layer says of this one; False without such an array."""
    flags = model.metadata.get(key)
    return isinstance(flags, np.ndarray) and layer < len(flags) and bool(flags[layer])


def _recurrent_elements(model: Header) -> int:
    """Floats of one recurrent layer's state, for one sequence (`llama_hparams::n_embd_r` and `n_embd_s`)."""
    name = model.architecture
    width = model.number(f"{name}.embedding_length")
    if head := model.number(f"{name}.wkv.head_size"):
        return width * (model.number(f"{name}.token_shift_count", 2) + head)
    if cache := model.number(f"{name}.shortconv.l_cache"):
        return width * (cache - 1)
    kernel = max(model.number(f"{name}.ssm.conv_kernel") - 1, 0)
    if head := model.number(f"{name}.kda.head_dim"):
        heads = _per_layer(model.metadata.get(f"{name}.attention.head_count", 0), 1)[0]
        return heads * head * (3 * (kernel or 3) + head)
    inner, state = model.number(f"{name}.ssm.inner_size"), model.number(f"{name}.ssm.state_size")
    return kernel * (inner + 2 * model.number(f"{name}.ssm.group_count") * state) + state * inner


def _decode_bytes(spec: MemberSpec, model: Header) -> int:
    """An upper estimate of a context's compute buffers.

    The rows of logits; for each token of a batch some activations as wide as the model and two as wide as its
    feed-forward layers; and the attention mask, once in f32 and once in f16.
    """
    name = model.architecture
    batch = min(spec.n_batch, spec.n_ctx)
    logits = 2 * _OUTPUT_ROWS * 4 * len(model.tokens or ())
    feed_forward = max(_per_layer(model.metadata.get(f"{name}.feed_forward_length", 0), 64), default=0)
    activations = 4 * batch * (8 * model.number(f"{name}.embedding_length") + 2 * feed_forward)
    mask = 6 * batch * (-(-spec.n_ctx // _PAD) * _PAD)
    return logits + activations + mask


def _encode_bytes(spec: MemberSpec, projector: Header) -> int:
    """An upper estimate of a vision encoder's compute buffers, for the largest image that reaches it."""
    side = projector.number("clip.vision.image_size")
    patch = max(projector.number("clip.vision.patch_size"), 1)
    pixels = side**2
    if projector_type(projector) not in _TILED:
        pixels = spec.images.square**2 if spec.images.square else max(pixels, spec.images.max_pixels)
    width = projector.number("clip.vision.embedding_length")
    feed_forward = projector.number("clip.vision.feed_forward_length") or 4 * width
    return 4 * 3 * pixels + 4 * (pixels // patch**2) * (8 * width + 2 * feed_forward)


def available_memory(root: Path = Path("/")) -> int:
    """Bytes of main memory that can be had now without swapping, control groups considered.

    Args:
        root: Where ``proc`` and ``sys`` are mounted.
    """
    free = [int(psutil.virtual_memory().available)]
    try:
        groups = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        groups = []
    for line in groups:
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if not controllers:
            free += _left_in_groups(root / "sys/fs/cgroup", path, _GROUPS_V2)
        elif "memory" in controllers.split(","):
            free += _left_in_groups(root / "sys/fs/cgroup/memory", path, _GROUPS_V1)
    return max(min(free), 0)


def _left_in_groups(mount: Path, path: str, names: tuple[str, str, str]) -> list[int]:
    """What each group from this one up to the root may still take; groups without a limit say nothing."""
    limit, usage, reclaimable = names
    left = []
    parts = [part for part in path.split("/") if part and part != ".."]
    for depth in range(len(parts) + 1):
        group = mount.joinpath(*parts[:depth])
        try:
            most, used = int((group / limit).read_text()), int((group / usage).read_text())
            stat = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        except (OSError, ValueError):
            continue
        left.append(most - used + int(stat.get(reclaimable, 0)))
    return left


def shown_bytes(count: int) -> str:
    """Bytes as a message shows them, for instance ``4.7 GiB``."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count / 1024:,.1f} KiB"


def _parts(member: MemberMemory) -> str:
    parts = (
        ("weights", member.weights), ("projector", member.projector), ("KV cache", member.kv),
        ("computation", member.compute),
    )  # fmt: skip
    return ", ".join(f"{name} {shown_bytes(size)}" for name, size in parts if size)
