"""The cores of this machine, lent to decodes, so that running threads never outnumber them."""

from __future__ import annotations

import os
import threading
from types import TracebackType


def available_cores() -> int:
    """Cores this process may use (fewer than the machine has, in a container)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Cores:
    """Counts the cores that decodes of this process keep busy.

    llama.cpp's threads spin while they wait for each other. Two contexts with two threads each on two cores
    do not share them, they collapse to a hundredth of the speed; waiting for a turn is nothing against that.
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self._free = total
        self._changed = threading.Condition()

    def lend(self, count: int) -> Loan:
        """A context manager that holds ``count`` cores (all there are, if fewer), and waits until it can."""
        return Loan(self, min(count, self.total))

    def _take(self, count: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._free >= count)
            self._free -= count

    def _give(self, count: int) -> None:
        with self._changed:
            self._free += count
            self._changed.notify_all()


class Loan:
    """Cores held while a ``with`` block runs. May be entered again and again, by one thread at a time.

    The main thread holds none. A KeyboardInterrupt, which comes there and only there, between taking and
    giving back would lose cores for good; and only single tokens of one-thread members are decoded there.
    """

    def __init__(self, cores: Cores, count: int) -> None:
        self._cores, self._count, self._held = cores, count, False

    def __enter__(self) -> None:
        self._held = threading.current_thread() is not threading.main_thread()
        if self._held:
            self._cores._take(self._count)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._held:
            self._cores._give(self._count)


CORES = Cores(available_cores())
