"""The trace of ``ask --trace``: a file whose failure costs the trace, not the answer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING

from macr_local.errors import ConfigError

if TYPE_CHECKING:
    from macr_local.relay.events import Event
    from macr_local.relay.trace import TraceHeader, TraceWriter


class Tracing:
    """Writes a question's events to a file until it ends, or until a write fails.

    Args:
        path: Created here and now, before anything is loaded, so that a wrong path costs no time.

    Attributes:
        warn: Told, once, that the trace was given up.
        failed: Whether it was.

    Raises:
        ConfigError: The file cannot be created.
    """

    def __init__(self, path: str) -> None:
        self.warn: Callable[[str], None] = lambda _: None
        self.failed = False
        self._path = path
        self._writer: TraceWriter | None = None
        try:
            self._file = open(path, "wb")  # noqa: SIM115
        except OSError as error:
            raise ConfigError(
                f"The trace {path} cannot be written: {error.strerror}", "Give another path"
            ) from None

    def begin(self, header: TraceHeader) -> None:
        """Write what is asked of whom; only then are events written too."""
        from macr_local.relay.trace import TraceWriter

        try:
            self._writer = TraceWriter(self._file, header)
        except OSError as error:
            self._give_up(error)

    def write(self, event: Event) -> None:
        """Write one event."""
        if self._writer is not None:
            try:
                self._writer.write(event)
            except OSError as error:
                self._give_up(error)

    def close(self) -> None:
        """Close the file, which may be when a network disk says that it is full."""
        try:
            self._file.close()
        except OSError as error:
            self._give_up(error)

    def __enter__(self) -> Tracing:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _give_up(self, error: OSError) -> None:
        self.failed, self._writer = True, None
        with suppress(OSError):
            self._file.close()  # which tries to write what is left
        self.warn(
            f"macr-local: warning: the trace {self._path} cannot be written on: {error.strerror or error}"
        )
