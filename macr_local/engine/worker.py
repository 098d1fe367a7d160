"""The one thread that drives a member's context."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from macr_local.errors import Cancelled, EngineError

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
        self._name = name
        self._calls: queue.SimpleQueue[_Call[Any] | None] = queue.SimpleQueue()
        self._open: set[_Call[Any]] = set()
        self._lock = threading.Lock()
        self._stopped = False
        self._thread = threading.Thread(target=self._work, name=f"macr-{name}", daemon=True)
        self._thread.start()

    def submit(self, task: Callable[[], T]) -> Future[T]:
        """Queue a task and return at once.

        The future raises `Cancelled` when `interrupt` was called meanwhile and the task did not end soon.

        Raises:
            EngineError: The worker has been stopped.
        """
        future: Future[T] = Future()

        def tell(call: _Call[T]) -> None:
            if call.error is not None:
                future.set_exception(call.error)
            else:
                future.set_result(call.value)

        self._queue(_Call(task, tell))
        return future

    def run(self, task: Callable[[], T]) -> T:
        """Run a task on the thread and wait for it; directly, when already there.

        Raises:
            Cancelled: `interrupt` was called meanwhile and the task did not end soon.
            EngineError: The worker has been stopped.
        """
        if threading.current_thread() is self._thread:
            return task()
        call = _Call(task)
        self._queue(call)
        call.wait()
        if call.error is not None:
            raise call.error
        return call.value

    def interrupt(self) -> None:
        """Let every caller that waits now go, after a moment of grace."""
        with self._lock:
            waiting = tuple(self._open)
        if waiting:
            timer = threading.Timer(_GRACE, _give_up, [waiting])
            timer.daemon = True
            timer.start()

    def stop(self, last: Callable[[], None] = lambda: None) -> None:
        """End the thread after the tasks that are queued and a last one; safe to call twice."""
        with self._lock:
            stopped, self._stopped = self._stopped, True
        if not stopped:
            self._calls.put(_Call(last))
            self._calls.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _queue(self, call: _Call[T]) -> None:
        with self._lock:
            if self._stopped:
                raise EngineError(f"{self._name} is closed", "Open the pool again")
            self._open.add(call)
        self._calls.put(call)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call.run()
            with self._lock:
                self._open.discard(call)
            del call  # or the last task's objects would live until the next one comes


class _Call(Generic[T]):
    """One task on its way. It is settled once, by its end or by giving it up, whichever comes first.

    The caller waits on a bare lock: a KeyboardInterrupt can come at any step of Python code, and in a
    `Condition` it could leave a lock behind that the worker then waits for.
    """

    value: T

    def __init__(self, task: Callable[[], T], tell: Callable[[_Call[T]], None] | None = None) -> None:
        self._task: Callable[[], T] | None = task
        self._tell = tell
        self._claim, self._done = threading.Lock(), threading.Lock()
        self._done.acquire()
        self.error: BaseException | None = None

    def run(self) -> None:
        """On the worker's thread; does nothing, when it was given up before it began."""
        task, self._task = self._task, None
        if self._claim.locked() or task is None:
            return
        try:
            value = task()
        except BaseException as error:
            self._settle(error=error)
        else:
            self._settle(value=value)

    def give_up(self) -> None:
        """Let the caller go without a result."""
        self._settle(error=Cancelled("The question was cancelled while a member was computing"))

    def wait(self) -> None:
        """Until it is settled."""
        self._done.acquire()

    def _settle(self, **outcome: Any) -> None:
        if self._claim.acquire(blocking=False):
            for name, value in outcome.items():
                setattr(self, name, value)
            self._done.release()
            if self._tell is not None:
                self._tell(self)


def _give_up(calls: tuple[_Call[Any], ...]) -> None:
    for call in calls:
        call.give_up()
