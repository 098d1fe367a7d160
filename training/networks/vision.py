"""The vision encoders with their projectors: qwen3vl_merger, internvl, resampler.

Each turns (batch, 3, 64, 64) normalised pixels into (batch, 16, width) image embeddings; qwen3vl gives a
second tensor of the same shape, which is added behind the language model's first layer (deepstack).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from training.chat import IMAGE_TOKENS
from training.networks.attention import attend, gelu, rotate
from training.networks.sizes import (
    GRID,
    INTERNVL_MLP_EPS,
    PATCH,
    ROPE_BASE,
    VISION_EPS,
    VISION_FFN,
    VISION_HEADS,
    VISION_LAYERS,
    VISION_WIDTH,
    WIDTH,
)

Angles = tuple[Tensor, Tensor]
Seen = tuple[Tensor, Tensor | None]
PATCHES = GRID * GRID


class VisionBlock(nn.Module):
    """One pre-norm layer, with layer scale where the architecture has it."""

    def __init__(self, layer_scale: bool = False) -> None:
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(VISION_WIDTH, VISION_EPS), nn.LayerNorm(VISION_WIDTH, VISION_EPS)
        self.qkv, self.out = nn.Linear(VISION_WIDTH, 3 * VISION_WIDTH), nn.Linear(VISION_WIDTH, VISION_WIDTH)
        self.up, self.down = nn.Linear(VISION_WIDTH, VISION_FFN), nn.Linear(VISION_FFN, VISION_WIDTH)
        self.ls1 = nn.Parameter(torch.ones(VISION_WIDTH)) if layer_scale else None
        self.ls2 = nn.Parameter(torch.ones(VISION_WIDTH)) if layer_scale else None

    def forward(self, x: Tensor, rope: Angles | None = None) -> Tensor:
        h: Tensor
        batch, tokens, _ = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(batch, tokens, 3, VISION_HEADS, -1).permute(2, 0, 3, 1, 4)
        if rope is not None:
            q, k = rotate(q, *rope).to(v.dtype), rotate(k, *rope).to(v.dtype)
        h = self.out(attend(q, k, v).transpose(1, 2).reshape(batch, tokens, VISION_WIDTH))
        x = x + (h if self.ls1 is None else h * self.ls1)
        h = self.down(gelu(self.up(self.ln2(x))))
        return x + (h if self.ls2 is None else h * self.ls2)


class VisionEncoder(nn.Module):
    """What the three share: patches, positions, layers."""

    def __init__(self, positions: int = PATCHES, layer_scale: bool = False) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, VISION_WIDTH, PATCH, PATCH)
        self.pos = nn.Parameter(torch.randn(positions, VISION_WIDTH) * 0.02)
        self.blk = nn.ModuleList(VisionBlock(layer_scale) for _ in range(VISION_LAYERS))

    def patches(self, image: Tensor) -> Tensor:
        """(batch, 64, vision width), in raster order, without positions."""
        out: Tensor = self.patch(image)
        return out.flatten(2).transpose(1, 2)


def merge_2x2(x: Tensor) -> Tensor:
    """(batch, 64, c) in raster order -> (batch, 16, 4c) with channels in the order (dy, dx, c)."""
    batch, _, channels = x.shape
    half = GRID // 2
    x = x.view(batch, half, 2, half, 2, channels).permute(0, 1, 3, 2, 4, 5)
    return x.reshape(batch, IMAGE_TOKENS, 4 * channels)


class QwenVision(VisionEncoder):
    """qwen3vl_merger: learned positions and 2D RoPE, a norm before the merge, deepstack after layer 0."""

    cos: Tensor
    sin: Tensor

    def __init__(self) -> None:
        super().__init__()
        merged = 4 * VISION_WIDTH
        self.post_ln = nn.LayerNorm(VISION_WIDTH, VISION_EPS)
        self.fc1, self.fc2 = nn.Linear(merged, merged), nn.Linear(merged, WIDTH)
        self.ds_norm = nn.LayerNorm(merged, VISION_EPS)
        self.ds_fc1, self.ds_fc2 = nn.Linear(merged, merged), nn.Linear(merged, WIDTH)
        head = VISION_WIDTH // VISION_HEADS
        frequencies = ROPE_BASE ** (-4.0 * torch.arange(head // 4) / head)
        y, x = torch.meshgrid(torch.arange(GRID), torch.arange(GRID), indexing="ij")
        angles = torch.cat([y.reshape(-1, 1) * frequencies, x.reshape(-1, 1) * frequencies], 1)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, image: Tensor) -> Seen:
        x = self.patches(image) + self.pos
        x = self.blk[0](x, (self.cos, self.sin))
        deepstack = self.ds_fc2(gelu(self.ds_fc1(self.ds_norm(merge_2x2(x)))))
        for block in self.blk[1:]:
            x = block(x, (self.cos, self.sin))
        return self.fc2(gelu(self.fc1(merge_2x2(self.post_ln(x))))), deepstack


class InternVision(VisionEncoder):
    """internvl: class token and its position last, as llama.cpp has them; layer scale; 2x2 pixel shuffle."""

    def __init__(self) -> None:
        super().__init__(PATCHES + 1, layer_scale=True)
        self.cls = nn.Parameter(torch.randn(VISION_WIDTH) * 0.02)
        self.ln = nn.LayerNorm(4 * VISION_WIDTH, INTERNVL_MLP_EPS)
        self.fc1, self.fc2 = nn.Linear(4 * VISION_WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, image: Tensor) -> Seen:
        x = self.patches(image)
        x = torch.cat([x, self.cls.expand(len(x), 1, VISION_WIDTH).to(x.dtype)], 1) + self.pos
        for block in self.blk:
            x = block(x)
        return self.fc2(gelu(self.fc1(self.ln(merge_2x2(x[:, :-1]))))), None


class ResamplerVision(VisionEncoder):
    """resampler (MiniCPM-V): 16 learned queries attend to the patches; keys carry computed 2D positions.

    llama.cpp looks positions up in a 70x70 table; only the 64 rows that an 8x8 grid reaches are trained.
    """

    pe: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.post_ln = nn.LayerNorm(VISION_WIDTH, VISION_EPS)
        self.query = nn.Parameter(torch.randn(IMAGE_TOKENS, WIDTH) * 0.5)
        self.kv = nn.Linear(VISION_WIDTH, WIDTH, bias=False)
        self.ln_q, self.ln_kv, self.ln_post = (nn.LayerNorm(WIDTH, VISION_EPS) for _ in range(3))
        self.q, self.k, self.v, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.proj = nn.Linear(WIDTH, WIDTH, bias=False)
        omega = ROPE_BASE ** (-torch.arange(WIDTH // 4) / (WIDTH // 4))
        patch = torch.arange(PATCHES)
        x, y = (patch % GRID)[:, None] * omega, (patch // GRID)[:, None] * omega
        self.register_buffer("pe", torch.cat([x.sin(), x.cos(), y.sin(), y.cos()], 1), persistent=False)

    def forward(self, image: Tensor) -> Seen:
        x = self.patches(image) + self.pos
        for block in self.blk:
            x = block(x)
        values = self.ln_kv(self.kv(self.post_ln(x)))
        batch = len(values)
        q = _heads(self.q(self.ln_q(self.query))[None].expand(batch, -1, -1))
        out = attend(q, _heads(self.k(values + self.pe)), _heads(self.v(values)))
        out = out.transpose(1, 2).reshape(batch, IMAGE_TOKENS, WIDTH)
        return self.proj(self.ln_post(self.out(out))), None


def _heads(x: Tensor) -> Tensor:
    """Heads are 128 wide, whatever the width."""
    return x.view(x.shape[0], -1, WIDTH // 128, 128).transpose(1, 2)
