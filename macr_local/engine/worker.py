"""The one thread that drives a member's context."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import TypeVar

from macr_local.errors import Cancelled

T = TypeVar("T")

_GRACE = 0.25
"""Seconds a task may still take after an interrupt before its caller stops waiting. A decode stops within
milliseconds; an image that is being encoded cannot be stopped, and goes on unwatched."""


class Worker:
    """Runs tasks one after the other on one thread, and lets waiting callers go when interrupted.

    The thread is a daemon: a process that ends while an image is being encoded must not wait for it.
    OpenMP keeps one team of threads per calling thread, so the same thread makes every call that has a team.
    """

    def __init__(self, name: str) -> None:
        self._tasks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._open: set[Future[object]] = set()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._work, name=f"macr-{name}", daemon=True)
        self._thread.start()

    def submit(self, task: Callable[[], T]) -> Future[T]:
        """Queue a task and return at once.

        The future raises `Cancelled` when `interrupt` was called meanwhile and the task did not end soon.
        """
        future: Future[T] = Future()

        def work() -> None:
            if future.done():  # given up before it began
                return
            try:
                result = task()
            except BaseException as error:
                with suppress(InvalidStateError):  # its caller was let go meanwhile
                    future.set_exception(error)
            else:
                with suppress(InvalidStateError):
                    future.set_result(result)

        with self._lock:
            self._open.add(future)  # type: ignore[arg-type]
        future.add_done_callback(self._forget)
        self._tasks.put(work)
        return future

    def run(self, task: Callable[[], T]) -> T:
        """Run a task on the thread and wait for it; directly, when already there.

        Raises:
            Cancelled: As `submit`'s future.
        """
        if threading.current_thread() is self._thread:
            return task()
        return self.submit(task).result()

    def interrupt(self) -> None:
        """Let every caller that waits now go, after a moment of grace."""
        with self._lock:
            waiting = tuple(self._open)
        if waiting:
            timer = threading.Timer(_GRACE, _give_up, [waiting])
            timer.daemon = True
            timer.start()

    def stop(self) -> None:
        """End the thread after the tasks that are queued."""
        self._tasks.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _forget(self, future: Future[T]) -> None:
        with self._lock:
            self._open.discard(future)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            task()
            del task  # or the last task's objects would live until the next one comes


def _give_up(futures: tuple[Future[object], ...]) -> None:
    for future in futures:
        with suppress(InvalidStateError):
            future.set_exception(Cancelled("The question was cancelled while a member was computing"))
