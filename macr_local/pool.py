"""A pool: several loaded members, their calibrations, and the one lock that queues questions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from macr_local.config import PoolSpec, load_pool, option_for
from macr_local.errors import CalibrationError, Cancelled, ConfigError, MacrError, PoolBusy

if TYPE_CHECKING:
    from types import TracebackType

    from macr_local.calibration import MemberCalibration
    from macr_local.engine.member import LlamaMember


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
        self._queue = threading.Lock()
        self._guard = threading.Lock()
        self._holder: tuple[int, object] | None = None
        self._closed = False

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

        spec = narrow(pool if isinstance(pool, PoolSpec) else load_pool(pool), members)
        headers = [(member, check_model(member)) for member in spec.members]
        planned = memory.plan([(m, header, check_projector(m, header)) for m, header in headers])
        offloads = any(member.n_gpu_layers != 0 for member in spec.members)
        memory.check(planned, memory.available_memory() + (gpu_memory() if offloads else 0))
        loaded: list[LlamaMember] = []
        try:
            for member in spec.members:
                if progress is not None:
                    progress(member.name)
                loaded.append(LlamaMember(member))
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
    def turn(self, owner: object, cancelled: Callable[[], bool] = lambda: False) -> Iterator[None]:
        """Wait for one's turn and hold the pool for one question.

        Args:
            owner: Who holds it; `interrupt` of the same owner stops its members.
            cancelled: Looked at while waiting, so that a queued question can be cancelled too.

        Raises:
            PoolBusy: This thread holds the pool already, in an answer it has not finished reading.
            Cancelled: ``cancelled()`` became true before the turn came.
            MacrError: The pool is closed.
        """
        me = threading.get_ident()
        if self._holder is not None and self._holder[0] == me:
            raise PoolBusy(
                "This thread asks while an earlier answer of the same pool is still open",
                "Read that answer to its end or close it, or ask from another thread",
            )
        while not self._queue.acquire(timeout=0.05):
            if cancelled():
                raise Cancelled("The question was cancelled while it waited for the pool")
        try:
            if self._closed:
                raise MacrError(f'The pool "{self.spec.name}" is closed', "Open it again")
            self._hold((me, owner))
            try:
                yield
            except BaseException:
                # An answer that ends before its time may have left members computing.
                self.interrupt(owner)
                raise
        finally:
            self._hold(None)
            self._queue.release()

    def interrupt(self, owner: object) -> None:
        """From any thread: stop what the members compute, if it is for this owner."""
        with self._guard:
            if self._holder is not None and self._holder[1] is owner:
                for member in self.members:
                    member.interrupt()

    def _hold(self, holder: tuple[int, object] | None) -> None:
        with self._guard:  # never between `interrupt`'s look and its deed
            self._holder = holder

    def close(self) -> None:
        """Wait for the question that runs, then free the models; safe to call twice."""
        with self._queue:
            if not self._closed:
                self._closed = True
                for member in self.members:
                    member.close()

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def narrow(spec: PoolSpec, names: Sequence[str] | None) -> PoolSpec:
    """The same pool with only these members, in this order.

    Raises:
        ConfigError: A name is not in the pool, or stands twice.
    """
    if names is None:
        return spec
    by_name = {member.name: member for member in spec.members}
    if unknown := [name for name in names if name not in by_name]:
        has = ", ".join(by_name)
        raise ConfigError(f'The pool "{spec.name}" has no member "{unknown[0]}"', f"It has: {has}")
    if len(set(names)) != len(names) or not names:
        given = ", ".join(names) or "(none)"
        raise ConfigError(f"The members {given} make no pool", "Name at least one, each once")
    return replace(spec, members=tuple(by_name[name] for name in names))
