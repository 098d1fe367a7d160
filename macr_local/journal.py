"""What one member has answered so far while it is calibrated: one JSON line per question, each on the disk.

A kill at any moment loses at most the question that was being answered.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from macr_local.errors import CalibrationError
from macr_local.linefile import LineFile

_HEAD = b'{"macr_calibrating": '


class Journal:
    """The log-probabilities of finished answers, by question key.

    Attributes:
        answers: One list per finished question, natural log, the end token included.
    """

    def __init__(self, lines: LineFile) -> None:
        self.answers: dict[str, list[float]] = {}
        self._lines, self._path = lines, lines.path

    @classmethod
    @contextmanager
    def open(cls, path: Path, run: str, *, restart: bool = False) -> Iterator[Journal]:
        """Open a journal to go on with it, or begin one.

        Args:
            path: Where it lies.
            run: What must agree for its answers to be of use: questions, settings, files.
            restart: Drop what is there.

        Raises:
            CalibrationError: It is of another run, is damaged, or cannot be written.
        """
        head = _HEAD + json.dumps(run).encode() + b"}"
        with ExitStack() as stack:
            try:
                if restart:
                    path.unlink(missing_ok=True)
                journal = cls(stack.enter_context(LineFile.open(path)))
            except OSError as error:
                raise _cannot_be_written(path, error) from None
            journal._read(head)
            yield journal

    def write(self, key: str, answer: list[float]) -> None:
        """Add one finished question.

        Raises:
            CalibrationError: It cannot be written.
        """
        self._append(json.dumps({"key": key, "logprobs": answer}, allow_nan=False).encode())
        self.answers[key] = answer

    def remove(self) -> None:
        """The run is complete and saved, so the journal has done its work."""
        self._path.unlink(missing_ok=True)

    def _read(self, head: bytes) -> None:
        # A kill can tear the last line; its question is asked again.
        lines, torn = list(self._lines), self._lines.torn
        first = lines[0] if lines else torn[: len(_HEAD)]
        if not (first.startswith(_HEAD) if lines else _HEAD.startswith(first)):
            raise self._damaged(1)
        if lines and lines[0] != head:
            raise CalibrationError(
                f"{self._path} is an interrupted run with other questions, settings or model files",
                "Run that command again to finish it, or add --restart to drop it",
            )
        for number, line in enumerate(lines[1:], 2):
            try:
                key, answer = _row(json.loads(line))
            except (ValueError, KeyError, TypeError, RecursionError):
                raise self._damaged(number) from None
            self.answers[key] = answer
        if lines:
            self._lines.mend()
        else:
            self._append(head)

    def _damaged(self, line: int) -> CalibrationError:
        return CalibrationError(f"{self._path}, line {line} is damaged", "Add --restart to begin anew")

    def _append(self, line: bytes) -> None:
        try:
            self._lines.append(line)
        except OSError as error:
            raise _cannot_be_written(self._path, error) from None


def _row(row: Any) -> tuple[str, list[float]]:
    """A finished question's key and log-probabilities.

    Raises:
        ValueError, KeyError, TypeError: They are not what `Journal.write` writes.
    """
    key, answer = row["key"], row["logprobs"]
    if not isinstance(key, str) or not isinstance(answer, list) or not answer:
        raise TypeError("no key with a list")
    if not all(type(value) in (int, float) and value <= 0 and math.isfinite(value) for value in answer):
        raise ValueError("a log-probability is not one")
    return key, [float(value) for value in answer]


def _cannot_be_written(path: Path, error: OSError) -> CalibrationError:
    return CalibrationError(
        f"{error.filename or path} cannot be written ({error.strerror})", "Give another folder with --out"
    )
