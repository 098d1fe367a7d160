"""A file that only grows, line by line: a kill loses at most the line that was being written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path


class LineFile:
    """Lines, each on the disk before the next is written. One process writes it at a time.

    Attributes:
        path: Where it lies.
        torn: What a kill has left of a last line; it is not among the lines.
    """

    def __init__(self, path: Path, file: FileIO) -> None:
        self.path, self._file = path, file
        self.torn = b""
        self._end = 0
        for line in _stored(path):
            if line.endswith(b"\n"):
                self._end += len(line)
            else:
                self.torn = line

    @classmethod
    @contextmanager
    def open(cls, path: Path) -> Iterator[LineFile]:
        """Open a file to go on with it, or begin one; its folder is made if need be.

        Raises:
            OSError: It cannot be made or read.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        # Without a buffer, a line that a full disk has refused is gone and does not come again at the end.
        with path.open("ab", buffering=0) as file:
            yield cls(path, file)

    def __iter__(self) -> Iterator[bytes]:
        """The complete lines, without their ends."""
        return complete_lines(self.path)

    def mend(self) -> None:
        """Cut off what is torn, now that the file is known to be one of ours.

        Raises:
            OSError: It cannot be written.
        """
        self._file.truncate(self._end)
        self.torn = b""

    def append(self, line: bytes) -> None:
        """Add a line.

        Raises:
            OSError: It cannot be written; the file is left as it was, as far as the disk lets it.
        """
        rest = memoryview(line + b"\n")
        try:
            self.mend()
            while rest:
                rest = rest[self._file.write(rest) :]
            os.fsync(self._file.fileno())
        except OSError:
            with suppress(OSError):  # what cannot be cut off now is cut off when the file is opened next
                self._file.truncate(self._end)
            raise
        self._end += len(line) + 1


def complete_lines(path: Path) -> Iterator[bytes]:
    """The lines of a file without their ends; one that a kill has torn is left out.

    Raises:
        OSError: It cannot be read.
    """
    return (line[:-1] for line in _stored(path) if line.endswith(b"\n"))


def _stored(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from file
