"""Layouts of small models, one for each kind of memory that llama.cpp has.

Keys, tensor names and shapes are those that llama.cpp's `src/models/*.cpp` load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

VOCABULARY = 269
LAYERS = 4
WIDTH = 128
HEADS, KV_HEADS = 4, 2
HEAD = WIDTH // HEADS
FEED_FORWARD = 192
WKV_HEAD = 64
"""As in every real RWKV model: llama.cpp's AVX-512 kernel reads and writes 64 floats at a time."""
INNER, STATE, RANK, KERNEL = 2 * WIDTH, 16, 8, 4
WINDOW = 32
"""Positions that a layer of the gemma3 model sees."""

Keys = dict[str, int | float | list[int]]
Shape = tuple[int, ...]
"""As numpy sees it: llama.cpp's dimensions reversed."""
Tensors = Iterator[tuple[str, Shape]]


@dataclass(frozen=True)
class Architecture:
    """What a GGUF file of one architecture holds.

    Attributes:
        name: `general.architecture`.
        memory: The kind of memory a context of it has, as `MemberInfo.memory` says it.
        layer: Gives the tensors of one layer, without their ``blk.N.`` prefix.
        keys: Integers in the header, without the architecture's prefix.
        attention_layers: Layers with attention; the others are recurrent. None is all.
        extra: Tensors outside the layers.
        final_norm: The name of the last norm.
    """

    name: str
    memory: str
    layer: Callable[[bool], Tensors]
    keys: Keys = field(default_factory=dict)
    attention_layers: frozenset[int] | None = None
    extra: Callable[[], Tensors] = lambda: iter(())
    final_norm: str = "output_norm"


def _attention(gate: int = 1) -> Tensors:
    yield "attn_norm.weight", (WIDTH,)
    yield "attn_q.weight", (gate * WIDTH, WIDTH)
    yield "attn_k.weight", (KV_HEADS * HEAD, WIDTH)
    yield "attn_v.weight", (KV_HEADS * HEAD, WIDTH)
    yield "attn_output.weight", (WIDTH, WIDTH)


def _norms_of_heads() -> Tensors:
    yield "attn_q_norm.weight", (HEAD,)
    yield "attn_k_norm.weight", (HEAD,)


def _feed_forward(norm: str = "ffn_norm") -> Tensors:
    yield f"{norm}.weight", (WIDTH,)
    yield "ffn_gate.weight", (FEED_FORWARD, WIDTH)
    yield "ffn_up.weight", (FEED_FORWARD, WIDTH)
    yield "ffn_down.weight", (WIDTH, FEED_FORWARD)


def _selective_scan() -> Tensors:
    yield "attn_norm.weight", (WIDTH,)
    yield "ssm_in.weight", (2 * INNER, WIDTH)
    yield "ssm_conv1d.weight", (INNER, KERNEL)
    yield "ssm_conv1d.bias", (INNER,)
    yield "ssm_x.weight", (RANK + 2 * STATE, INNER)
    yield "ssm_dt.weight", (INNER, RANK)
    yield "ssm_dt.bias", (INNER,)
    yield "ssm_a", (INNER, STATE)
    yield "ssm_d", (INNER,)
    yield "ssm_out.weight", (WIDTH, INNER)


def _llama(_: bool) -> Tensors:
    yield from _attention()
    yield from _feed_forward()


def _gemma3(_: bool) -> Tensors:
    yield from _attention()
    yield from _norms_of_heads()
    yield "post_attention_norm.weight", (WIDTH,)
    yield from _feed_forward()
    yield "post_ffw_norm.weight", (WIDTH,)


def _mamba(_: bool) -> Tensors:
    yield from _selective_scan()


def _jamba(attention: bool) -> Tensors:
    if attention:
        yield from _attention()
    else:
        yield from _selective_scan()
        yield "ssm_dt_norm.weight", (RANK,)
        yield "ssm_b_norm.weight", (STATE,)
        yield "ssm_c_norm.weight", (STATE,)
    yield from _feed_forward()


def _lfm2(attention: bool) -> Tensors:
    if attention:
        yield from _attention()
        yield from _norms_of_heads()
    else:
        yield "attn_norm.weight", (WIDTH,)
        yield "shortconv.conv.weight", (WIDTH, KERNEL)
        yield "shortconv.in_proj.weight", (3 * WIDTH, WIDTH)
        yield "shortconv.out_proj.weight", (WIDTH, WIDTH)
    yield from _feed_forward()


def _qwen35(attention: bool) -> Tensors:
    if attention:
        yield from _attention(gate=2)
        yield from _norms_of_heads()
    else:
        yield "attn_norm.weight", (WIDTH,)
        yield "attn_qkv.weight", (3 * WIDTH, WIDTH)
        yield "attn_gate.weight", (WIDTH, WIDTH)
        yield "ssm_conv1d.weight", (3 * WIDTH, KERNEL)
        yield "ssm_dt.bias", (HEADS,)
        yield "ssm_a", (HEADS,)
        yield "ssm_beta.weight", (HEADS, WIDTH)
        yield "ssm_alpha.weight", (HEADS, WIDTH)
        yield "ssm_norm.weight", (HEAD,)
        yield "ssm_out.weight", (WIDTH, WIDTH)
    yield from _feed_forward(norm="post_attention_norm")


def _rwkv7(_: bool) -> Tensors:
    for norm in ("attn_norm", "attn_norm_2", "time_mix_ln"):
        yield f"{norm}.weight", (WIDTH,)
        yield f"{norm}.bias", (WIDTH,)
    for part in ("w", "a", "v"):
        yield f"time_mix_{part}0.weight", (WIDTH,)
        yield f"time_mix_{part}1.weight", (RANK, WIDTH)
        yield f"time_mix_{part}2.weight", (WIDTH, RANK)
    yield "time_mix_g1.weight", (RANK, WIDTH)
    yield "time_mix_g2.weight", (WIDTH, RANK)
    yield "time_mix_lerp_fused.weight", (6, 1, 1, WIDTH)
    for part in ("k_k", "k_a", "r_k"):
        yield f"time_mix_{part}.weight", (WIDTH,)
    for part in ("key", "value", "receptance", "output"):
        yield f"time_mix_{part}.weight", (WIDTH, WIDTH)
    yield "channel_mix_lerp_k.weight", (1, 1, WIDTH)
    yield "channel_mix_key.weight", (FEED_FORWARD, WIDTH)
    yield "channel_mix_value.weight", (WIDTH, FEED_FORWARD)


def _rwkv7_extra() -> Tensors:
    yield "token_embd_norm.weight", (WIDTH,)
    yield "token_embd_norm.bias", (WIDTH,)
    yield "output_norm.bias", (WIDTH,)
    yield "output.weight", (VOCABULARY, WIDTH)


_SCAN: Keys = {
    "ssm.conv_kernel": KERNEL, "ssm.inner_size": INNER, "ssm.state_size": STATE, "ssm.time_step_rank": RANK,
}  # fmt: skip

_HEAD_SIZE: Keys = {"attention.key_length": HEAD, "attention.value_length": HEAD}

ARCHITECTURES: dict[str, Architecture] = {
    one.name: one
    for one in (
        Architecture("llama", "plain", _llama),
        Architecture(
            "gemma3", "sliding window", _gemma3,
            {"attention.sliding_window": WINDOW} | _HEAD_SIZE,
        ),
        Architecture("mamba", "recurrent", _mamba, _SCAN),
        Architecture(
            "rwkv7", "recurrent", _rwkv7,
            {
                "wkv.head_size": WKV_HEAD, "attention.decay_lora_rank": RANK,
                "attention.iclr_lora_rank": RANK, "attention.gate_lora_rank": RANK,
                "attention.value_residual_mix_lora_rank": RANK,
                "attention.layer_norm_epsilon": 1e-5, "token_shift_count": 2,
            },
            extra=_rwkv7_extra,
        ),
        Architecture("jamba", "hybrid", _jamba, _SCAN, frozenset({1, 3})),
        Architecture(
            "lfm2", "hybrid", _lfm2, {"shortconv.l_cache": KERNEL}, frozenset({1, 3}),
            final_norm="token_embd_norm",
        ),
        Architecture(
            "qwen35", "hybrid", _qwen35,
            {
                "ssm.conv_kernel": KERNEL, "ssm.inner_size": WIDTH, "ssm.state_size": HEAD,
                "ssm.time_step_rank": HEADS, "ssm.group_count": HEADS, "full_attention_interval": 2,
                **_HEAD_SIZE,
                "rope.dimension_sections": [HEAD // 4, HEAD // 8, HEAD // 8, 0],
            },
            frozenset({1, 3}),
        ),
    )
}  # fmt: skip
