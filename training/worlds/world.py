"""What training needs of a world: pictures, what to say about them, and how long to practise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Architecture = Literal["qwen3vl", "internvl", "minicpmv"]
ARCHITECTURES: tuple[Architecture, ...] = ("qwen3vl", "internvl", "minicpmv")
THINKERS: frozenset[Architecture] = frozenset({"minicpmv"})
"""Members that think aloud when they are asked to."""

Pooling = Literal["whole", "quadrants"]
"""Where a probe looks: at all image tokens at once, or at the four of each quadrant."""

TokenizerKind = Literal["gpt2", "llama"]
"""llama.cpp's names: byte-level BPE, or SentencePiece's pieces with a mark for the blank."""

UNLABELLED = -100
"""The class of what a member is not told; PyTorch's cross entropy leaves it out."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text that the member learns to write."""

    text: str
    weight: float = 1.0
    """How much each of its tokens counts in the loss."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """One question about one picture, and the answer from some point on."""

    question: str
    own: tuple[Piece, ...]
    given: tuple[str, ...] = ()
    """The answer so far, as others may have written it; it carries no loss."""
    first_given: bool = False
    """Whether the first token of ``own`` belongs to what is given (the wording is not the member's)."""
    think: bool = False
    """Whether the prompt opens a thought, which ``own`` closes."""


@dataclass(frozen=True, slots=True)
class Picture:
    """An image with what is said about it."""

    pixels: NDArray[np.uint8]
    """(64, 64, 3) RGB."""
    labels: Mapping[str, tuple[int, ...]]
    """For each probe head the class at each place it looks at (one, or four quadrants)."""
    lessons: tuple[Lesson, ...] = ()


@dataclass(frozen=True, slots=True)
class Stage:
    """A stretch of training with its own learning rate schedule. Budgets are steps, never seconds."""

    name: str
    steps: int
    pictures: int
    """Pictures in a step."""
    lessons: int
    """Questions about each picture; 0 trains the vision encoder and the projector alone."""
    seed: int
    probe_weight: float = 0.2
    learning_rate: float = 1.5e-3
    emphasis: float = 1.0
    """How many times more than usual those tokens count that are worked out from the text."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How one member of a world is made."""

    vocabulary: int
    stages: tuple[Stage, ...]
    tokenizer: TokenizerKind = "gpt2"
    label_smoothing: float = 0.0
    probe_heads: Mapping[str, float] = field(default_factory=dict)
    """Probe heads that train this member's vision, with their weights in the probe's loss."""


class World(Protocol):
    """Pictures and what each member is taught about them."""

    @property
    def name(self) -> str:
        """The name on the command line and of the output folder."""
        ...

    @property
    def pool(self) -> str:
        """The pool's name in models.toml."""
        ...

    @property
    def description(self) -> str:
        """One line for the pool file."""
        ...

    @property
    def settings(self) -> Mapping[str, float]:
        """The pool's relay settings."""
        ...

    @property
    def pooling(self) -> Pooling | Mapping[str, Pooling]:
        """Where the probe looks, with all heads or with each."""
        ...

    @property
    def heads(self) -> Mapping[str, int]:
        """Probe heads and their numbers of classes."""
        ...

    def plan(self, member: Architecture) -> Plan:
        """How a member is made."""
        ...

    def corpus(self, member: Architecture) -> Iterator[str]:
        """Texts for the member's tokenizer."""
        ...

    def glimpses(self, member: Architecture, count: int, rng: Random) -> list[Picture]:
        """Pictures with labels and without lessons: the vision stage's step."""
        ...

    def lessons(self, member: Architecture, stage: Stage, rng: Random) -> list[Picture]:
        """Pictures with lessons: a later stage's step."""
        ...

    def exam(self, count: int, seed: int) -> list[tuple[NDArray[np.uint8], str, str]]:
        """(pixels, question, right answer), none of it seen in training."""
        ...
