"""The language model: llama.cpp's qwen3, and qwen3vl with interleaved M-RoPE and one deepstack layer."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training.chat import IMAGE_TOKENS
from training.networks.attention import attend, rotate
from training.networks.sizes import (
    FFN,
    GRID,
    HEAD_WIDTH,
    HEADS,
    KV_HEADS,
    M_ROPE_SECTIONS,
    RMS_EPS,
    ROPE_BASE,
    WIDTH,
)


class RmsNorm(nn.Module):
    """Root mean square norm with a learned scale."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, x.shape[-1:], self.weight.to(x.dtype), RMS_EPS)


class Block(nn.Module):
    """One layer; attributes carry GGUF's tensor names, so that export can walk over them."""

    def __init__(self) -> None:
        super().__init__()
        self.attn_norm, self.ffn_norm = RmsNorm(WIDTH), RmsNorm(WIDTH)
        self.attn_q = nn.Linear(WIDTH, HEADS * HEAD_WIDTH, bias=False)
        self.attn_k = nn.Linear(WIDTH, KV_HEADS * HEAD_WIDTH, bias=False)
        self.attn_v = nn.Linear(WIDTH, KV_HEADS * HEAD_WIDTH, bias=False)
        self.attn_output = nn.Linear(HEADS * HEAD_WIDTH, WIDTH, bias=False)
        self.attn_q_norm, self.attn_k_norm = RmsNorm(HEAD_WIDTH), RmsNorm(HEAD_WIDTH)
        self.ffn_gate = nn.Linear(WIDTH, FFN, bias=False)
        self.ffn_up = nn.Linear(WIDTH, FFN, bias=False)
        self.ffn_down = nn.Linear(FFN, WIDTH, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        batch, tokens, _ = x.shape
        h = self.attn_norm(x)
        q = self.attn_q_norm(self.attn_q(h).view(batch, tokens, HEADS, HEAD_WIDTH)).transpose(1, 2)
        k = self.attn_k_norm(self.attn_k(h).view(batch, tokens, KV_HEADS, HEAD_WIDTH)).transpose(1, 2)
        v = self.attn_v(h).view(batch, tokens, KV_HEADS, HEAD_WIDTH).transpose(1, 2)
        q, k = rotate(q, cos, sin).to(v.dtype), rotate(k, cos, sin).to(v.dtype)
        k, v = (t.repeat_interleave(HEADS // KV_HEADS, 1) for t in (k, v))
        out = attend(q, k, v, causal=True).transpose(1, 2).reshape(batch, tokens, -1)
        x = x + self.attn_output(out)
        h = self.ffn_norm(x)
        down: Tensor = self.ffn_down(F.silu(self.ffn_gate(h)) * self.ffn_up(h))
        return x + down


def rope_angles(tokens: int) -> Tensor:
    """Angles (tokens, head/2) of plain positions."""
    frequencies = ROPE_BASE ** (-2.0 * torch.arange(HEAD_WIDTH // 2) / HEAD_WIDTH)
    return torch.arange(tokens)[:, None] * frequencies


def m_rope_angles(tokens: int, image_at: int) -> Tensor:
    """Angles (tokens, head/2) of qwen3vl's interleaved M-RoPE around one image of 4x4 tokens.

    Inside the image time stands still and height and width count; the text after it resumes where the larger
    side ends, so 16 image tokens take 4 positions.
    """
    side = GRID // 2
    position = torch.arange(tokens)
    cell = position - image_at
    inside = (cell >= 0) & (cell < IMAGE_TOKENS)
    text = torch.where(cell < 0, position, position - IMAGE_TOKENS + side)
    time = torch.where(inside, image_at, text)
    height = torch.where(inside, image_at + cell // side, time)
    width = torch.where(inside, image_at + cell % side, time)
    pair = torch.arange(HEAD_WIDTH // 2)
    is_height = (pair % 3 == 1) & (pair < 3 * M_ROPE_SECTIONS[1])
    is_width = (pair % 3 == 2) & (pair < 3 * M_ROPE_SECTIONS[2])
    axis = torch.where(is_height, 1, torch.where(is_width, 2, 0))
    frequencies = ROPE_BASE ** (-2.0 * pair / HEAD_WIDTH)
    return torch.stack([time, height, width], 1)[:, axis] * frequencies
