"""VLMEvalKit's TSV files, row by row: a file of gigabytes needs no more memory than its largest row."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import BinaryIO

from macr_local.errors import DataError
from macr_local.evaluation.datasets.benchmarks import reader_of
from macr_local.evaluation.datasets.cells import encoded, found, is_name, listed
from macr_local.evaluation.datasets.dataset import FileDataSet
from macr_local.evaluation.datasets.row import Images, Row, blank

_LONGEST_FIELD = 1 << 30
"""A field is an image in base64, or several; csv's own limit is 128 KiB."""
_REFERENCE = 64
"""An image cell up to this long names another row; an image in base64 is never that short."""
_HEAVY = ("image", "image_path")


class TsvDataSet(FileDataSet):
    """A TSV file as VLMEvalKit reads it.

    An image cell is base64, a list of base64, or the index of the row that has the image, before or behind.
    Rows without an image are left out where the file has an image column. Cells that are empty or "nan" say
    nothing; other words that pandas takes for an empty cell ("None", "NA") are kept, since they are options.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path.stem, path)
        self._reader = reader_of(self.name, self._columns)

    def rows(self) -> Iterator[Row]:
        """See `FileDataSet`."""
        pictured = "image" in self._columns
        with self._open() as file:
            records = _records(file)
            next(records, None)
            for number, (line, _, cells) in enumerate(records, 2):
                row = self._row(number, line, cells)
                if pictured and not row.problem and all(blank(self._cell(cells, name)) for name in _HEAVY):
                    self.left_out["no image"] += 1
                    continue
                yield row

    @cached_property
    def _columns(self) -> list[str]:
        try:
            with self._open() as file:
                _, _, columns = next(_records(file), (1, 0, []))
        except OSError as error:
            raise DataError(
                f"{self.path} cannot be read ({error.strerror})", "Check the path and permissions"
            ) from None
        if "question" not in columns:
            raise DataError(
                f'{self.path} has no column "question" (it has {", ".join(columns)[:200] or "none"})',
                "Name the columns in the first line, separated by tabs",
            )
        return columns

    def _open(self) -> BinaryIO:
        file = self.path.open("rb")
        if file.read(3) != b"\xef\xbb\xbf":  # a byte-order mark is no part of the first column's name
            file.seek(0)
        return file

    def _cell(self, cells: list[str], column: str) -> str:
        return cells[self._columns.index(column)] if column in self._columns else ""

    def _row(self, number: int, line: int, cells: list[str]) -> Row:
        fields = {
            column: cell
            for column, cell in zip(self._columns, cells, strict=False)
            if column not in _HEAVY and not blank(cell)
        }
        where = f"{self.path.name}, line {line} (index {fields.get('index', '?')})"
        problem = ""
        if len(cells) != len(self._columns):
            problem = f"it has {len(cells)} cells, and the first line has {len(self._columns)}"
        elif any("\udc80" <= char <= "\udcff" for cell in fields.values() for char in cell):
            problem = "it is not UTF-8"
        fields = {name: cell.encode("utf-8", "replace").decode() for name, cell in fields.items()}
        image, path = self._cell(cells, "image"), self._cell(cells, "image_path")
        return Row(number, where, fields, partial(self._images, image, path), problem)

    def _images(self, image: str, path: str) -> Images:
        folders = (self.path.parent, self.path.parent / "images" / self.name)
        if blank(image):
            return () if blank(path) else tuple(found(one, folders) for one in listed(path))
        cell = image.strip()
        if len(cell) <= _REFERENCE and not cell.startswith("[") and not is_name(cell):
            cell = self._referred(cell)
        return tuple(found(one, folders) if is_name(one) else encoded(one) for one in listed(cell))

    def _referred(self, index: str) -> str:
        offset = self._offsets.get(index)
        if offset is None:
            raise ValueError(f'its image is that of index "{index}", and no row has it')
        with self._open() as file:
            file.seek(offset)
            _, _, cells = next(_records(file))
        cell = self._cell(cells, "image").strip()
        if len(cell) <= _REFERENCE and not cell.startswith("["):
            raise ValueError(f'its image is that of index "{index}", which has none of its own')
        return cell

    @cached_property
    def _offsets(self) -> dict[str, int]:
        """Where each row begins, by its index."""
        with self._open() as file:
            return {self._cell(cells, "index").strip(): offset for _, offset, cells in _records(file)}


def _records(file: BinaryIO) -> Iterator[tuple[int, int, list[str]]]:
    """Line number, offset in the file, and cells of each record; a cell may hold line ends."""
    place = file.tell()
    number = 0

    def lines() -> Iterator[str]:
        nonlocal place, number
        for line in file:
            place += len(line)
            number += 1
            yield line.decode("utf-8", "surrogateescape")

    if csv.field_size_limit() < _LONGEST_FIELD:
        csv.field_size_limit(_LONGEST_FIELD)
    reader = csv.reader(lines(), delimiter="\t")
    while True:
        line, offset = number + 1, place
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise DataError(
                f"{file.name}, line {line}: this is no TSV ({str(error).partition(' - ')[0]})",
                "Save it as tab-separated UTF-8 text, with cells that hold line ends in quotes",
            ) from None
        if cells is None:
            return
        if cells:
            yield line, offset, cells
