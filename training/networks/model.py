"""A whole tiny vision-language model."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from training.chat import IMAGE_TOKENS
from training.networks.language import Block, RmsNorm, m_rope_angles, rope_angles
from training.networks.sizes import IMAGE_MEAN_STD, LAYERS, WIDTH
from training.networks.vision import InternVision, QwenVision, ResamplerVision, Seen
from training.worlds.world import Architecture

_ENCODERS: dict[Architecture, type[QwenVision] | type[InternVision] | type[ResamplerVision]] = {
    "qwen3vl": QwenVision,
    "internvl": InternVision,
    "minicpmv": ResamplerVision,
}


class TinyModel(nn.Module):
    """Vision encoder, projector and language model with tied embeddings.

    Args:
        member: The architecture.
        n_vocab: Size of the vocabulary.
        image_at: Where the image's 16 slots begin in every prompt.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, member: Architecture, n_vocab: int, image_at: int) -> None:
        super().__init__()
        self.member, self.image_at = member, image_at
        self.vision = _ENCODERS[member]()
        self.embed = nn.Embedding(n_vocab, WIDTH)
        self.blk = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = RmsNorm(WIDTH)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=0.8 / math.sqrt(module.in_features))
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        nn.init.normal_(self.embed.weight, std=0.05)
        mean, std = IMAGE_MEAN_STD[member]
        self.register_buffer("mean", torch.tensor(mean).view(3, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(std).view(3, 1, 1), persistent=False)

    def see(self, pixels: Tensor) -> Seen:
        """Encode (batch, 64, 64, 3) uint8 images to (batch, 16, width), and the deepstack tensor or None."""
        x = pixels.permute(0, 3, 1, 2).float() / 255
        seen: Seen = self.vision((x - self.mean) / self.std)
        return seen

    def forward(
        self, ids: Tensor, image: Tensor, deepstack: Tensor | None = None, at: Tensor | None = None
    ) -> Tensor:
        """Logits (batch, tokens, n_vocab) for ids (batch, tokens) whose image slots hold any id.

        Args:
            ids: Tokens.
            image: (batch, 16, width).
            deepstack: The same shape, or None.
            at: (places,) positions in ``ids``, flattened; the logits are then (places, n_vocab).
        """
        x: Tensor = self.embed(ids)
        begin, end = self.image_at, self.image_at + IMAGE_TOKENS
        x = torch.cat([x[:, :begin], image.to(x.dtype), x[:, end:]], 1)
        tokens = ids.shape[1]
        angles = m_rope_angles(tokens, begin) if self.member == "qwen3vl" else rope_angles(tokens)
        cos, sin = angles.cos(), angles.sin()
        for layer, block in enumerate(self.blk):
            x = block(x, cos, sin)
            if layer == 0 and deepstack is not None:
                x = torch.cat([x[:, :begin], x[:, begin:end] + deepstack.to(x.dtype), x[:, end:]], 1)
        if at is not None:
            x = x.flatten(0, 1)[at]
        logits: Tensor = self.norm(x) @ self.embed.weight.T
        return logits
