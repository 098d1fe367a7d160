"""A probe on the image embeddings: classifiers that exist only while training."""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training.chat import IMAGE_TOKENS
from training.networks.sizes import WIDTH
from training.worlds.world import UNLABELLED, Architecture, Pooling

# Image tokens of each quadrant in the 4x4 grid; a resampler's queries have no place and go four by four.
_GRID_QUADRANTS = ((0, 1, 4, 5), (2, 3, 6, 7), (8, 9, 12, 13), (10, 11, 14, 15))
_QUERY_QUADRANTS = ((0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11), (12, 13, 14, 15))


class Probe(nn.Module):
    """Linear heads on all image tokens, or shared heads on the mean of each quadrant's tokens.

    Learning to see from the words of an answer alone is slow; the probe tells the encoder directly.

    Args:
        member: The architecture, which decides the tokens of a quadrant.
        pooling: Where all heads look, or where each does.
        heads: Heads and their numbers of classes.
    """

    quadrants: Tensor

    def __init__(
        self, member: Architecture, pooling: Pooling | Mapping[str, Pooling], heads: Mapping[str, int]
    ) -> None:
        super().__init__()
        self.pooling = {name: pooling if isinstance(pooling, str) else pooling[name] for name in heads}
        width = {"quadrants": WIDTH, "whole": IMAGE_TOKENS * WIDTH}
        self.heads = nn.ModuleDict(
            {name: nn.Linear(width[self.pooling[name]], classes) for name, classes in heads.items()}
        )
        quadrants = _QUERY_QUADRANTS if member == "minicpmv" else _GRID_QUADRANTS
        self.register_buffer("quadrants", torch.tensor(quadrants), persistent=False)

    def forward(
        self,
        image: Tensor,
        deepstack: Tensor | None,
        labels: Mapping[str, Tensor],
        weights: Mapping[str, float],
    ) -> tuple[Tensor, dict[str, float]]:
        """Weighted loss of the heads named in ``weights``, and the accuracy of each where labels are there.

        Args:
            image: (batch, 16, width).
            deepstack: The same shape, or None.
            labels: For each head (batch, places) classes, `UNLABELLED` where nothing is told.
            weights: Heads that count, with their weights.
        """
        seen = (image if deepstack is None else image + deepstack).float()
        features = {"quadrants": seen[:, self.quadrants].mean(2).flatten(0, 1), "whole": seen.flatten(1)}
        loss = seen.new_zeros(())
        accuracy = {}
        for name, weight in weights.items():
            target = labels[name].flatten()
            told = target != UNLABELLED
            if not told.any():
                continue
            scores = self.heads[name](features[self.pooling[name]])[told]
            loss = loss + weight * F.cross_entropy(scores, target[told])
            accuracy[name] = (scores.argmax(1) == target[told]).float().mean().item()
        return loss, accuracy
