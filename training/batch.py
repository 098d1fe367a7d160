"""Pictures and lessons as tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from training.chat import Chat
from training.worlds.world import Picture

SHEETS = 3
"""Lessons of a step are sorted by length into so many sheets: padding is computed like all else."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """Lessons of about the same length; a row is a lesson."""

    ids: Tensor
    """(rows, tokens) inputs."""
    picture: Tensor
    """(rows,) which picture a row is about."""
    at: Tensor
    """(learnt,) places in ``ids``, flattened, behind which a token is learnt."""
    targets: Tensor
    """(learnt,) those tokens."""
    weights: Tensor
    """(learnt,) what each counts."""


@dataclass(frozen=True, slots=True)
class Batch:
    """One step's tensors."""

    pixels: Tensor
    """(pictures, 64, 64, 3) uint8."""
    labels: dict[str, Tensor]
    """For each probe head (pictures, places)."""
    sheets: tuple[Sheet, ...]


@dataclass(frozen=True, slots=True)
class _Row:
    ids: list[int]
    weights: list[float]
    start: int
    """The first token that is learnt."""
    picture: int


def assemble(pictures: Sequence[Picture], chat: Chat) -> Batch:
    """Tokenise and pad; pieces are encoded one by one, so that no token spans two of them."""
    rows = sorted(_rows(pictures, chat), key=lambda row: len(row.ids))
    labels = {head: torch.tensor([item.labels[head] for item in pictures]) for head in pictures[0].labels}
    pixels = torch.from_numpy(np.stack([item.pixels for item in pictures]))
    size = -(-len(rows) // SHEETS) or 1
    sheets = tuple(_sheet(rows[first : first + size]) for first in range(0, len(rows), size))
    return Batch(pixels, labels, sheets)


def _rows(pictures: Sequence[Picture], chat: Chat) -> Iterator[_Row]:
    for number, item in enumerate(pictures):
        for lesson in item.lessons:
            ids = chat.prompt(lesson.question, lesson.think)
            for text in lesson.given:
                ids = ids + chat.encode(text)
            start = len(ids) + lesson.first_given
            weights = [0.0] * len(ids)
            for piece in lesson.own:
                own = chat.encode(piece.text)
                ids = ids + own
                weights += [piece.weight] * len(own)
            yield _Row([*ids, chat.end], [*weights, 1.0], start, number)


def _sheet(rows: Sequence[_Row]) -> Sheet:
    length = max(len(row.ids) for row in rows) - 1
    ids = torch.zeros(len(rows), length, dtype=torch.long)
    at: list[int] = []
    targets: list[int] = []
    weights: list[float] = []
    for number, row in enumerate(rows):
        ids[number, : len(row.ids) - 1] = torch.tensor(row.ids[:-1])
        at += range(number * length + row.start - 1, number * length + len(row.ids) - 1)
        targets += row.ids[row.start :]
        weights += row.weights[row.start :]
    picture = torch.tensor([row.picture for row in rows])
    return Sheet(ids, picture, torch.tensor(at), torch.tensor(targets), torch.tensor(weights))
