"""A data set: items, read as they are asked."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from macr_local.errors import DataError
from macr_local.evaluation.datasets.row import Row
from macr_local.evaluation.item import Item

Reader = Callable[[Row], Item | str]
"""Makes an item of a row, without its images; or says why the row is no question at all."""


class DataSet(ABC):
    """A data set.

    Attributes:
        name: Its name; a run's folder has it.
        left_out: Rows that are no questions, by reason, once `items` or `ids` has gone through.
    """

    name: str

    def __init__(self, name: str) -> None:
        self.name = name
        self.left_out: Counter[str] = Counter()

    @abstractmethod
    def items(self) -> Iterator[Item]:
        """Items in order. One that cannot be asked carries its problem."""

    def ids(self) -> Iterator[str]:
        """The ids of all items, in order."""
        return (item.id for item in self.items())

    @abstractmethod
    def identity(self) -> Mapping[str, Any]:
        """What must be the same for answers to belong together."""


class FileDataSet(DataSet):
    """A data set in one file of rows.

    Args:
        name: Its name.
        path: The file.
        reader: Makes items of rows.
    """

    def __init__(self, name: str, path: Path, reader: Reader | None = None) -> None:
        super().__init__(name)
        self.path = path
        self._reader = reader

    @abstractmethod
    def rows(self) -> Iterator[Row]:
        """All rows, in order, without their images."""

    def items(self) -> Iterator[Item]:
        """See `DataSet`."""
        for row, item in self._read():
            yield item if item.problem else _with_images(item, row)

    def ids(self) -> Iterator[str]:
        """See `DataSet`; no image is read."""
        return (item.id for _, item in self._read())

    def identity(self) -> Mapping[str, Any]:
        """The file's sha256."""
        return {"sha256": self.digests[0]}

    @cached_property
    def digests(self) -> tuple[str, str]:
        """The file's sha256, and its MD5, by which published files are known."""
        digest, published = hashlib.sha256(), hashlib.md5(usedforsecurity=False)
        try:
            with self.path.open("rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
                    published.update(block)
        except OSError as error:
            raise cannot_be_read(self.path, error) from None
        return digest.hexdigest(), published.hexdigest()

    def _read(self) -> Iterator[tuple[Row, Item]]:
        self.left_out = Counter()
        try:
            for row in self.rows():
                found = self._item(row)
                if isinstance(found, str):
                    self.left_out[found] += 1
                else:
                    yield row, found
        except OSError as error:
            raise cannot_be_read(self.path, error) from None

    def _item(self, row: Row) -> Item | str:
        problem = row.problem
        if not problem and self._reader is not None:
            try:
                return self._reader(row)
            except ValueError as error:
                problem = str(error)
        return Item(
            id=row.text("index", "id", "pid") or f"row {row.number}",
            where=row.where,
            question="",
            images=(),
            answer="",
            answer_type="text",
            problem=problem,
        )


def cannot_be_read(path: Path, error: OSError) -> DataError:
    """What to say when the system refuses a file."""
    where = error.filename or path
    return DataError(f"{where} cannot be read ({error.strerror or error})", "Check the path and permissions")


def _with_images(item: Item, row: Row) -> Item:
    try:
        images = row.images()
        cluster = item.cluster or _cluster(images)
    except ValueError as error:
        return replace(item, problem=str(error))
    except OSError as error:
        return replace(item, problem=f"its image {error.filename} cannot be read ({error.strerror})")
    return replace(item, images=images, cluster=cluster)


def _cluster(images: tuple[Path | bytes, ...]) -> str:
    if not images:
        return ""
    first = images[0]
    data = first.read_bytes() if isinstance(first, Path) else first
    return hashlib.sha256(data).hexdigest()[:16]
