"""A pool: several loaded members, their calibrations, and the one lock that queues questions."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from macr_local.config import PoolSpec, load_pool, option_for
from macr_local.errors import CalibrationError, Cancelled, ConfigError, MacrError, PoolBusy
from macr_local.poolfile import chosen

if TYPE_CHECKING:
    from types import TracebackType

    from macr_local.calibration import MemberCalibration
    from macr_local.engine.member import LlamaMember


_POLL = 0.005
"""Seconds between two looks at whose turn it is."""


class Turn:
    """One question's turn on a pool, from its asking to its end.

    It knows the stream that is read only weakly. Nobody can end a turn whose stream is gone, so such a turn
    is over, however it came to that.

    Attributes:
        thread: The thread that reads the answer.
        cancelled: Set when the asker gives up.
    """

    def __init__(self, cancelled: threading.Event, stream: Closable) -> None:
        self.thread = threading.get_ident()
        self.cancelled = cancelled
        self._stream = weakref.ref(stream)
        self._over = False

    @property
    def is_over(self) -> bool:
        """Whether the pool is free again."""
        return self._over or self._stream() is None

    @is_over.setter
    def is_over(self, value: bool) -> None:
        self._over = value

    def abandon(self) -> None:
        """Close the stream, from the thread that reads it."""
        if (stream := self._stream()) is not None:
            stream.close()


class Closable(Protocol):
    """What a turn needs of a stream."""

    def close(self) -> None:
        """End it."""


class Pool:
    """Members that are loaded once and answer one question at a time.

    Safe to share between threads: questions queue. Close it, or use it as a context manager, to free the
    models.

    Attributes:
        spec: The pool file's entry, narrowed to the members that were asked for.
        members: The loaded members, in pool order.
    """

    def __init__(self, spec: PoolSpec, members: Sequence[LlamaMember]) -> None:
        self.spec = spec
        self.members = tuple(members)
        self._calibrations: dict[str, MemberCalibration] = {}
        self._guard = threading.Lock()
        self._holder: Turn | None = None
        self._closed = False
        self._process = os.getpid()

    @classmethod
    def open(
        cls,
        pool: str | Path | PoolSpec | None = None,
        *,
        members: Sequence[str] | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> Pool:
        """Check every file, plan the memory, then load.

        Args:
            pool: A pool's name, a models.toml (``FILE`` or ``FILE#NAME``) or a specification; None is the
                default pool.
            members: Names of the members to load, in the order wanted; None loads all.
            progress: Called with each member's name before it is loaded.

        Raises:
            ConfigError: No such pool or member, or the file is wrong.
            ModelFileError: A model file is missing, damaged or another than expected.
            CapacityError: The pool does not fit into memory.
        """
        from macr_local.engine import memory
        from macr_local.engine.files import check_model, check_projector
        from macr_local.engine.library import gpu_memory
        from macr_local.engine.member import LlamaMember

        if not isinstance(pool, PoolSpec):
            spec = load_pool(pool, members)
        elif members is None:
            spec = pool
        else:
            spec = replace(pool, members=chosen(pool.name, pool.members, members))
        checked = [(member, check_model(member)) for member in spec.members]
        planned = memory.plan([(m, header, check_projector(m, header)) for m, header in checked])
        offloads = any(member.n_gpu_layers != 0 for member in spec.members)
        memory.check(planned, memory.available_memory() + (gpu_memory() if offloads else 0))
        loaded: list[LlamaMember] = []
        try:
            for member, header in checked:
                if progress is not None:
                    progress(member.name)
                loaded.append(LlamaMember(member, header))
            return cls(spec, loaded)
        except BaseException:
            for one in loaded:
                one.close()
            raise

    def member(self, name: str) -> LlamaMember:
        """The member of that name.

        Raises:
            ConfigError: The pool has none; the message lists those it has.
        """
        for member in self.members:
            if member.name == name:
                return member
        names = ", ".join(member.name for member in self.members)
        raise ConfigError(f'The pool "{self.spec.name}" has no member "{name}"', f"It has: {names}")

    def calibration(self, name: str) -> MemberCalibration:
        """A member's calibration, checked against the files that are loaded.

        Raises:
            CalibrationError: There is none, or it was made with other files; says which command mends it.
        """
        from macr_local.calibration import MemberCalibration

        if name not in self._calibrations:
            folder = self.spec.calibration
            mend = f"macr-local calibrate REFERENCE --pool {option_for(self.spec)}"
            if folder is None:
                raise CalibrationError(f'The pool "{self.spec.name}" says no calibration folder', mend)
            calibration = MemberCalibration.load(folder, name, mend=mend)
            calibration.check(self.member(name).fingerprint)
            self._calibrations[name] = calibration
        return self._calibrations[name]

    @contextmanager
    def turn(self, turn: Turn) -> Iterator[None]:
        """Wait for one's turn and hold the pool for one question.

        Raises:
            PoolBusy: This thread holds the pool already, in an answer it has not finished reading.
            Cancelled: The question was cancelled while it waited.
            MacrError: The pool is closed, or was opened in the process that this one was forked from.
        """
        while not self._take(turn):
            if turn.cancelled.is_set():
                raise Cancelled("The question was cancelled while it waited for the pool")
            # No condition to wait on: a KeyboardInterrupt inside one could leave its lock held for ever.
            time.sleep(_POLL)
        try:
            yield
        except BaseException:
            # An answer that ends before its time may have left members computing.
            self.interrupt(turn)
            raise
        finally:
            turn.is_over = True

    def _take(self, turn: Turn) -> bool:
        with self._guard:
            if os.getpid() != self._process:
                raise MacrError(
                    f'The pool "{self.spec.name}" was opened in another process; its threads stayed there',
                    "Open a pool after forking, in the process that uses it",
                )
            if self._closed:
                raise MacrError(f'The pool "{self.spec.name}" is closed', "Open it again")
            if self._holder is not None and not self._holder.is_over:
                if self._holder.thread == turn.thread:
                    raise PoolBusy(
                        "This thread asks while an earlier answer of the same pool is still open",
                        "Read that answer to its end or close it, or ask from another thread",
                    )
                return False
            self._holder = turn
            return True

    def interrupt(self, turn: Turn) -> None:
        """From any thread: stop what the members compute, if it is for this question."""
        with self._guard:  # never between this look and the next holder's beginning
            if self._holder is turn and not turn.is_over:
                for member in self.members:
                    member.interrupt()

    def close(self) -> None:
        """Wait for the question that runs, then free the models; safe to call twice.

        An answer that this very thread has left open is closed.
        """
        while True:
            with self._guard:
                holder = self._holder
                if holder is None or holder.is_over or os.getpid() != self._process:
                    closed, self._closed = self._closed, True
                    break
            if holder.thread == threading.get_ident():
                holder.abandon()
            time.sleep(_POLL)
        if not closed and os.getpid() == self._process:
            for member in self.members:
                member.close()

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
