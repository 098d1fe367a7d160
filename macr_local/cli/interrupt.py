"""Ctrl-C: cancels the question wherever it is, and ends the process in time even if something hangs."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

GRACE = 1.4
"""Seconds between a Ctrl-C and the hard end of the process."""


class Interrupts:
    """Within this context, Ctrl-C cancels in an orderly way and is bound to end the process.

    Python runs signal handlers only on the main thread and only between two byte codes, which may be long
    after the signal when that thread waits for C code. The signal's arrival is therefore also seen by a
    thread of its own (`signal.set_wakeup_fd`): it calls `cancel` at once, waits `GRACE` seconds for the main
    thread to finish, then calls `give_up` and ends the process with 130. A second Ctrl-C ends it at once.

    Attributes:
        cancel: Stops the question; while it is None (before the question runs), KeyboardInterrupt is raised.
        give_up: Shows what there is of the answer, when the main thread could not.
        happened: Whether there was a Ctrl-C.
    """

    def __init__(self) -> None:
        self.cancel: Callable[[], None] | None = None
        self.give_up: Callable[[], None] | None = None
        self.happened = False
        self._restore: Callable[[], None] | None = None

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is not threading.main_thread():
            return self  # signals reach the main thread only
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        before_fd = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
        before: Any = signal.signal(signal.SIGINT, self._handle)

        def restore() -> None:
            signal.signal(signal.SIGINT, before)
            signal.set_wakeup_fd(before_fd)
            if not self.happened:  # else the watcher goes on, until the process has ended
                theirs.close()

        self._restore = restore
        threading.Thread(target=self._watch, args=(ours, theirs), name="macr-interrupts", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._restore is not None:
            self._restore()

    def _handle(self, _: int, __: FrameType | None) -> None:
        self.happened = True
        if self.cancel is None:
            raise KeyboardInterrupt

    def _watch(self, signals: socket.socket, _kept_open: socket.socket) -> None:
        with signals:
            while (byte := signals.recv(1)) != bytes([signal.SIGINT]):
                if not byte:  # the context was left
                    return
            self.happened = True
            if self.cancel is not None:
                self.cancel()
            signals.settimeout(GRACE)
            with contextlib.suppress(OSError):
                signals.recv(1)
        last = threading.Thread(target=self._last_words, daemon=True)
        last.start()
        last.join(0.3)  # a full pipe must not keep the process alive
        os._exit(130)

    def _last_words(self) -> None:
        if self.give_up is not None:
            with contextlib.suppress(Exception):  # such as a full disk; the process ends in any case
                self.give_up()
