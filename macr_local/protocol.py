"""What a relay needs of a member, and nothing more.

The relay is written against this Protocol; `macr_local.engine` implements it for llama.cpp, and the tests
implement it with scripted tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol, TypeVar

from macr_local.prompt import Prompt
from macr_local.settings import Sampling

T = TypeVar("T")

Draw = Callable[[], float]
"""A stream of uniform numbers in [0, 1): each call gives the next one."""


@dataclass(frozen=True, slots=True)
class Token:
    """One sampled token, not yet in any cache.

    Attributes:
        id: The id in the member's own vocabulary.
        text: The bytes it adds to the answer; may be part of a character, and is empty for control tokens.
        logprob: Natural-log probability over the full vocabulary at temperature 1, at most 0.
        is_end: Whether it ends the generation (EOG).
    """

    id: int
    text: bytes
    logprob: float
    is_end: bool = False


@dataclass(frozen=True, slots=True)
class PromptSize:
    """What a prompt takes in one member, in cells of its context (not positions)."""

    text: int
    image: int
    images: int
    notes: tuple[str, ...] = ()
    """What was done to an image to make it fit this member."""

    @property
    def cells(self) -> int:
        """All cells the prompt fills."""
        return self.text + self.image


@dataclass(frozen=True, slots=True)
class Work:
    """What a member has really computed since `begin`, counted where the computing happens."""

    decoded: int = 0
    """Tokens and image cells that went through a decode."""
    images_encoded: int = 0
    """Images that went through the vision encoder (cached ones do not)."""
    reused: int = 0
    """Cells of the prompt that were still in the memory, from a question that began the same way."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What a calibration must agree with: the files and the template that made its log-probabilities."""

    model: str
    """sha256 of the model file, in hex."""
    projector: str | None
    """sha256 of the projector file, in hex; None without one."""
    quantization: str
    """As the header names it, for instance ``Q4_K_M``."""
    template: str
    """sha256 of the chat template's text, in hex."""


class Member(Protocol):
    """One model with its own context. All calls but `interrupt` may block while the model computes.

    A member holds a *trunk* (the prompt and the answer so far) and at most one *branch* (a bid). Tokens that
    are accepted and text that is ingested wait until logits are needed and are then decoded at once, so
    that nothing is decoded whose successor is never asked for.
    """

    @property
    def name(self) -> str:
        """The name users know it by; unique in a pool."""
        ...

    @property
    def n_ctx(self) -> int:
        """Cells of the context."""
        ...

    @property
    def room(self) -> int:
        """Cells that are left, waiting tokens already taken off."""
        ...

    @property
    def work(self) -> Work:
        """What was computed since `begin`."""
        ...

    @property
    def opens_thought(self) -> bool:
        """Whether the prompt ends inside an open thought, so that the answer begins with one."""
        ...

    def prepare(self, prompt: Prompt) -> PromptSize:
        """Render and tokenise the prompt; decode nothing.

        Raises:
            TemplateError: The chat template is broken or refuses.
            CapacityError: An image needs more than the member can take.
            ConfigError: The prompt has images and the member has no projector.
        """
        ...

    def begin(self, prompt: Prompt, sampling: Sampling, cancelled: Callable[[], bool]) -> None:
        """Forget all but a beginning that this prompt shares, and prefill the rest; the logits are ready."""
        ...

    def ingest(self, text: bytes) -> int:
        """Take in words that another member wrote (whole UTF-8 characters); returns their tokens here.

        What one call takes in is decoded as a batch of its own, so that the bits of the logits do not depend
        on whether a member read two pieces in two rounds or late in one.
        """
        ...

    def propose(self, draw: Draw, forbid: Collection[bytes] = (), sampling: Sampling | None = None) -> Token:
        """Sample the next token; the cache does not change.

        Args:
            draw: One call of it is used where the sampling is not greedy.
            forbid: Texts whose single tokens must not be sampled now (a second ``<think>``).
            sampling: How to sample this token; None is as `begin` was told.
        """
        ...

    def accept(self, token: Token) -> None:
        """Take a token that was proposed here as written; it is decoded when its successor is asked for."""
        ...

    def branch(self, length: int) -> None:
        """Start a bid of at most ``length`` tokens from the trunk."""
        ...

    def adopt(self) -> None:
        """Keep the bid: its words become part of the trunk."""
        ...

    def drop(self) -> None:
        """Leave no trace of the bid; the trunk's logits are ready again, bit for bit."""
        ...

    def run(self, task: Callable[[], T]) -> T:
        """Run a task on the member's own thread and wait for it (at once, if already there)."""
        ...

    def submit(self, task: Callable[[], T]) -> Future[T]:
        """Start a task on the member's own thread."""
        ...

    def interrupt(self) -> None:
        """From any thread: make what is computing now stop with `Cancelled`."""
        ...
