"""What a question has shown so far: painted and traced, and ended once, from whichever thread."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING

from macr_local.cli.paint import Painter
from macr_local.relay.events import Event, Finished, FinishReason, Token

if TYPE_CHECKING:
    from macr_local.cli.tracing import Tracing


class Shown:
    """Passes events to a painter and to a trace, and knows how to end an answer that was interrupted.

    Attributes:
        reason: Why the answer ended; None while it has not.
    """

    def __init__(self, painter: Painter, trace: Tracing | None = None) -> None:
        self.reason: FinishReason | None = None
        self._trace = trace
        if trace is not None:
            trace.warn = painter.warn
        self._painter = painter
        self._lock = threading.RLock()
        self._closed = False
        self._tokens = 0
        self._started = time.monotonic()

    def status(self, text: str) -> None:
        """Say what is being done before the first event, where someone is watching."""
        with self._lock:
            self._painter.status(text)

    def event(self, event: Event) -> None:
        """Show and trace one event."""
        with self._lock:
            if self._closed:
                return
            if isinstance(event, Token):
                self._tokens += 1
            elif isinstance(event, Finished):
                self.reason = event.reason
            if self._trace is not None:
                self._trace.write(event)
            self._painter.event(event)

    def cancelled(self) -> None:
        """End the answer where it is, unless it has ended."""
        with self._lock:
            if self.reason is None:
                self.event(Finished("cancelled", self._tokens, time.monotonic() - self._started))
            self.close()

    def close(self) -> None:
        """End the painting; safe to call twice."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._painter.close()

    def __enter__(self) -> Shown:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
