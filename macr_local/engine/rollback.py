"""How a lost bid is undone: by cutting, by forking or by a snapshot, whichever this memory can do exactly.

A context remembers in different ways, and a name does not tell which: what is used is what has proved itself
on the loaded model (`open_context`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from macr_local.engine.context import Context
from macr_local.engine.model import Model
from macr_local.errors import EngineError


class Rollback(ABC):
    """One open branch at a time: `mark`, then `drop` or `keep`."""

    kind: ClassVar[str]
    sequences: ClassVar[int] = 1
    """Sequences the context must have been made for."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._n_past = self._cells = 0

    def mark(self) -> None:
        """Begin a branch here."""
        self._n_past, self._cells = self.context.n_past, self.context.cells
        self._mark()

    def drop(self) -> None:
        """Make the memory what it was at the mark. The caller keeps the logits of that place.

        Raises:
            EngineError: The memory could not be restored; it must be cleared before it is used again.
        """
        self._drop()
        self.context.n_past, self.context.cells = self._n_past, self._cells

    def keep(self) -> None:
        """Make the branch the trunk."""
        self._keep()

    def go_back(self, n_past: int, cells: int) -> bool:
        """Forget what stands behind an earlier place, which no branch is open at.

        Returns:
            False where this memory cannot do so exactly; it must then be cleared.
        """
        return False

    @abstractmethod
    def _mark(self) -> None: ...

    @abstractmethod
    def _drop(self) -> None: ...

    @abstractmethod
    def _keep(self) -> None: ...


class Trim(Rollback):
    """Cut the sequence back: exact and free for a plain KV cache, and for a sliding window's kept in full."""

    kind = "trim"

    def __init__(self, context: Context, window: int = 0) -> None:
        super().__init__(context)
        self._window = window

    def _mark(self) -> None:
        pass

    def _drop(self) -> None:
        if not self._cut(self._n_past):
            raise EngineError(f"{self.context.name}: a bid could not be undone exactly")

    def go_back(self, n_past: int, cells: int) -> bool:
        """See `Rollback.go_back`."""
        if not self._cut(n_past):
            return False
        self.context.n_past, self.context.cells = n_past, cells
        return True

    def _cut(self, n_past: int) -> bool:
        cut = self.context.remove(self.context.sequence, n_past)
        # A window's cache answers True even where it has already lost what the next token must see.
        seen_from = max(0, n_past - self._window + 1) if self._window else 0
        return cut and self.context.first_position() <= seen_from

    def _keep(self) -> None:
        pass


class Fork(Rollback):
    """Bid on a second sequence that shares all cells: recurrent and hybrid memories cannot be cut."""

    kind = "fork"
    sequences = 2

    def _mark(self) -> None:
        trunk = self.context.sequence
        self.context.copy(trunk, 1 - trunk)
        self.context.sequence = 1 - trunk

    def _drop(self) -> None:
        branch = self.context.sequence
        if not self.context.remove(branch, -1):
            raise EngineError(f"{self.context.name}: a bid's sequence could not be removed")
        self.context.sequence = 1 - branch

    def _keep(self) -> None:
        if not self.context.remove(1 - self.context.sequence, -1):
            raise EngineError(f"{self.context.name}: the sequence before a bid could not be removed")


class Snapshot(Rollback):
    """Copy the whole state aside: always possible, and costs its size at each bid."""

    kind = "snapshot"

    def _mark(self) -> None:
        self._state = self.context.state()

    def _drop(self) -> None:
        self.context.restore(self._state)
        self._state = b""

    def _keep(self) -> None:
        self._state = b""


def open_context(model: Model) -> tuple[Context, Rollback]:
    """Make a context whose bids can be undone, shown by a trial and not assumed from a name.

    Raises:
        EngineError: No way leaves the next logits bit-identical; such a model cannot bid.
        CapacityError: The context does not fit into memory.
    """
    kinds: tuple[type[Rollback], ...]
    kinds = (Trim, Snapshot) if model.memory_kind in ("plain", "sliding window") else (Fork, Snapshot)
    for kind in kinds:
        context = Context(model, sequences=kind.sequences)
        rollback = Trim(context, model.window) if kind is Trim else kind(context)
        if _proves_itself(context, rollback):
            context.clear()
            return context, rollback
        context.close()
    raise EngineError(
        f"{model.spec.name}: no lost bid can be undone exactly in this model's memory ({model.memory_kind})",
        "Use it alone, with another runtime, or choose another model for the pool",
    )


def _proves_itself(context: Context, rollback: Rollback) -> bool:
    """Whether a dropped branch leaves the next logits bit-identical, and a kept one goes on as if written."""
    prompt, words = [t % context.n_vocab for t in (5, 7, 11, 13)], [t % context.n_vocab for t in (17, 19, 23)]
    context.clear()
    context.decode(prompt, logits=True)
    for word in words:
        context.decode([word], logits=True)
    straight = context.logits().copy()
    context.clear()
    context.decode(prompt, logits=True)
    try:
        rollback.mark()
        for token in reversed(prompt):
            context.decode([token], logits=True)
        rollback.drop()
        context.decode(words[:1], logits=True)
        rollback.mark()
        context.decode(words[1:2], logits=True)
        rollback.keep()
        context.decode(words[2:], logits=True)
    except EngineError:
        return False
    return bool(np.array_equal(context.logits(), straight))
