"""A run's folder: a manifest, one line for each asked item, and a trace of each."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from macr_local.errors import DataError
from macr_local.evaluation.manifest import NAME, Manifest
from macr_local.evaluation.record import Record
from macr_local.linefile import LineFile, complete_lines
from macr_local.lock import alone_in

_ANSWERS = "answers*.jsonl"
_PLAIN = re.compile(r"[\w.\-]{1,80}")


class Run:
    """One method's answers to one data set, open for more.

    Attributes:
        folder: Where it lies.
        manifest: What it is made with.
        records: What is finished, by item and seed; failures are not.
    """

    def __init__(self, folder: Path, manifest: Manifest, lines: LineFile) -> None:
        self.folder, self.manifest = folder, manifest
        self._lines = lines
        self.records: dict[tuple[str, int], Record] = {}
        for record in read(folder):
            if not record.error:
                self.records[record.key] = record

    @classmethod
    @contextmanager
    def open(cls, folder: Path, manifest: Manifest, part: str = "") -> Iterator[Run]:
        """Begin a run, or go on with it.

        Args:
            folder: The run's own folder.
            manifest: What is asked now, and how.
            part: Which shard of the data set this process asks; each has a file of its own.

        Raises:
            DataError: The run was begun with something else, another process is at it, it is damaged, or it
                cannot be written.
        """
        name = f"answers{f'-{part}' if part else ''}.jsonl"
        with ExitStack() as stack:
            try:
                stack.enter_context(alone_in(folder, doing="writing", error=DataError, part=part))
                _agree(folder, manifest)
                lines = stack.enter_context(LineFile.open(folder / name))
                lines.mend()
            except OSError as error:
                raise cannot_be_written(folder, error) from None
            yield cls(folder, manifest, lines)

    def add(self, record: Record) -> None:
        """Keep a record; it is on the disk when this returns.

        Raises:
            DataError: It cannot be written. What was written before is whole.
        """
        try:
            self._lines.append(record.encode())
        except OSError as error:
            raise cannot_be_written(self._lines.path, error) from None
        if not record.error:
            self.records[record.key] = record

    def trace(self, record: tuple[str, int]) -> Path:
        """Where the trace of an item, asked with a seed, belongs."""
        return trace_path(self.folder, *record)


def read(folder: Path) -> Iterator[Record]:
    """Every record of a run, of all its parts; a later one replaces an earlier one of the same key.

    Raises:
        DataError: One is damaged, or the folder cannot be read.
    """
    for path in sorted(folder.glob(_ANSWERS)):
        try:
            for number, line in enumerate(complete_lines(path), 1):
                yield Record.decode(line, f"{path}, line {number}")
        except OSError as error:
            raise DataError(f"{path} cannot be read ({error.strerror})", "Check its permissions") from None


def trace_path(folder: Path, item: str, seed: int) -> Path:
    """Where the trace of an item, asked with a seed, belongs; ids need not be names of files."""
    name = (
        item if _PLAIN.fullmatch(item) else hashlib.sha256(item.encode("utf-8", "replace")).hexdigest()[:24]
    )
    return folder / "traces" / str(seed) / f"{name}.jsonl"


def cannot_be_written(path: Path, error: OSError) -> DataError:
    """What to say when a disk is full or a folder read-only."""
    where = error.filename or path
    return DataError(
        f"{where} cannot be written ({error.strerror})",
        "Make room or give another --out; the same command then goes on where it stopped",
    )


def _agree(folder: Path, manifest: Manifest) -> None:
    try:
        begun = Manifest.load(folder)
    except DataError:
        if any(folder.glob(_ANSWERS)) or (folder / NAME).exists():
            raise
        manifest.save(folder)
        return
    different = manifest.differences(begun)
    if different or (begun.dataset, begun.method) != (manifest.dataset, manifest.method):
        more = f" and {len(different) - 3} more" if len(different) > 3 else ""
        raise DataError(
            f"The run in {folder} was begun with {'; '.join(different[:3])}{more}",
            "Go on as it began, or give another --out",
        )


def folders(given: Iterable[Path]) -> list[Path]:
    """The folders of runs that are given, or that lie below what is given, each once.

    Raises:
        DataError: There is no run.
    """
    found: dict[Path, None] = {}
    for path in given:
        below = sorted(one.parent for one in path.rglob(NAME)) if path.is_dir() else []
        if not below:
            raise DataError(f"{path} holds no run", "Give a folder that macr-local eval has made")
        found |= dict.fromkeys(below)
    return list(found)
