"""The process's own streams where they are closed, full, or read by nobody.

An answer that is lost must not look like one that was given, so a write to stdout that fails ends the
program. What cannot be written to stderr is only about the answer, and is dropped.
"""

from __future__ import annotations

import io
import os
import select
import sys
from typing import TYPE_CHECKING, Any, TextIO

from macr_local.errors import MacrError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

IO_ERROR = 74
"""Exit code where the answer or its trace could not be written (EX_IOERR)."""
BROKEN_PIPE = 141
"""Exit code when the reader of stdout went away, as of a program that SIGPIPE ends."""


class StdoutError(MacrError):
    """A write to stdout failed.

    Attributes:
        reader_left: Whether its reader went away, which is nothing to complain about.
    """

    def __init__(self, cause: OSError) -> None:
        super().__init__(
            f"stdout cannot be written: {cause.strerror or cause}",
            "Make room there, or redirect it elsewhere",
        )
        self.reader_left = isinstance(cause, BrokenPipeError)
        self.exit_code = BROKEN_PIPE if self.reader_left else IO_ERROR  # type: ignore[misc]


class Guarded(io.RawIOBase):
    """A raw stream that fails once at most: what is written after a failed write is dropped.

    So neither the clean-up after an error nor Python's own flush at its end can fail again.

    Args:
        raw: The stream below; it is never closed from here.
        fatal: Whether the failure raises `StdoutError`, or is ignored too.
    """

    def __init__(self, raw: Any, *, fatal: bool) -> None:
        super().__init__()
        self._raw = raw
        self._fatal = fatal
        self._lost = False

    def write(self, data: ReadableBuffer, /) -> int:
        """Write some bytes; how many were taken."""
        if not self._lost:
            try:
                while (taken := self._raw.write(data)) is None:  # non-blocking and full: wait
                    select.select((), (self._raw,), ())
            except OSError as error:
                self._lost = True
                if self._fatal:
                    raise StdoutError(error) from error
            else:
                return int(taken)
        return memoryview(data).nbytes

    def writable(self) -> bool:
        """Always."""
        return True

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return bool(self._raw.isatty())

    def fileno(self) -> int:
        """The descriptor of the stream below."""
        return int(self._raw.fileno())


def prepare_streams() -> None:
    """Make every standard stream one that can be used, whatever the process was started with.

    No character can crash a write, whatever the terminal's encoding; see `StdoutError` for what else can.
    """
    for descriptor in range(3):
        _occupy(descriptor)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = _guarded(sys.stdout, 1, fatal=True)
    sys.stderr = _guarded(sys.stderr, 2, fatal=False)


def _occupy(descriptor: int) -> None:
    """Put the null device where a standard descriptor is closed, before a file of ours gets its number."""
    try:
        os.fstat(descriptor)
    except OSError:
        null = os.open(os.devnull, os.O_RDWR)
        if null != descriptor:
            os.dup2(null, descriptor)
            os.close(null)


def _guarded(stream: TextIO | None, descriptor: int, *, fatal: bool) -> TextIO:
    if stream is None:  # as it was closed, until `_occupy`
        return _text(io.FileIO(descriptor, "w", closefd=False), fatal=fatal, encoding="utf-8")
    if not isinstance(stream, io.TextIOWrapper):
        return stream  # a stand-in of whoever runs the program inside another one
    stream.flush()
    return _text(
        getattr(stream.buffer, "raw", stream.buffer),  # with PYTHONUNBUFFERED there is no buffer
        fatal=fatal,
        encoding=stream.encoding,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def _text(raw: Any, *, fatal: bool, **how: Any) -> TextIO:
    return io.TextIOWrapper(io.BufferedWriter(Guarded(raw, fatal=fatal)), errors="backslashreplace", **how)
