"""Pictures and lessons as tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from training.chat import Chat
from training.worlds.world import Picture

IGNORED = -100


@dataclass(frozen=True, slots=True)
class Batch:
    """One step's tensors; a row is a lesson."""

    pixels: Tensor
    """(pictures, 64, 64, 3) uint8."""
    labels: dict[str, Tensor]
    """For each probe head (pictures, places)."""
    ids: Tensor
    """(rows, tokens) inputs."""
    targets: Tensor
    """(rows, tokens) the next ids, `IGNORED` where there is no loss."""
    weights: Tensor
    """(rows, tokens) of the targets."""
    picture: Tensor
    """(rows,) which picture a row is about."""


def assemble(pictures: Sequence[Picture], chat: Chat) -> Batch:
    """Tokenise and pad; pieces are encoded one by one, so that no token spans two of them."""
    rows: list[tuple[list[int], list[int], list[float]]] = []
    picture: list[int] = []
    for number, item in enumerate(pictures):
        for lesson in item.lessons:
            ids = chat.prompt(lesson.question)
            for text in lesson.given:
                ids = ids + chat.encode(text)
            start = len(ids) + lesson.first_given
            weights = [0.0] * len(ids)
            for piece in lesson.own:
                own = chat.encode(piece.text)
                ids = ids + own
                weights += [piece.weight] * len(own)
            ids, weights = [*ids, chat.end], [*weights, 1.0]
            targets = [IGNORED] * start + ids[start:]
            rows.append((ids, targets, weights))
            picture.append(number)
    length = max((len(ids) for ids, _, _ in rows), default=1) - 1
    x = torch.zeros(len(rows), length, dtype=torch.long)
    y = torch.full((len(rows), length), IGNORED)
    w = torch.ones(len(rows), length)
    for row, (ids, targets, weights) in enumerate(rows):
        x[row, : len(ids) - 1] = torch.tensor(ids[:-1])
        y[row, : len(ids) - 1] = torch.tensor(targets[1:])
        w[row, : len(ids) - 1] = torch.tensor(weights[1:])
    labels = {
        head: torch.tensor([item.labels[head] for item in pictures]) for head in pictures[0].labels
    }
    pixels = torch.from_numpy(np.stack([item.pixels for item in pictures]))
    return Batch(pixels, labels, x, y, w, torch.tensor(picture, dtype=torch.long))
