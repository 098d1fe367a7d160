"""JSONL, a question in each line; and the JSON files in which some benchmarks are published."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from macr_local.errors import DataError
from macr_local.evaluation.datasets.benchmarks import plain, reader_of
from macr_local.evaluation.datasets.cells import encoded, found, is_name
from macr_local.evaluation.datasets.dataset import FileDataSet, Reader
from macr_local.evaluation.datasets.row import Images, Row, blank

_IMAGES = ("images", "image", "imagename", "filename")


class JsonlDataSet(FileDataSet):
    """A JSON object in each line: question, image or images (paths from the file, or base64), answer, ...

    See docs/evaluation.md for the keys.
    """

    def __init__(self, path: Path, reader: Reader = plain) -> None:
        super().__init__(path.absolute().parent.name if path.stem == "questions" else path.stem, path, reader)

    def rows(self) -> Iterator[Row]:
        """See `FileDataSet`."""
        with self.path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if number == 1:
                    line = line.removeprefix(b"\xef\xbb\xbf")
                if line.strip():
                    yield self._row(number, line)

    def _row(self, number: int, line: bytes) -> Row:
        where = f"{self.path.name}, line {number}"
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError) as error:
            return Row(number, where, {}, problem=f"it is not JSON ({error})")
        if not isinstance(fields, dict):
            return Row(number, where, {}, problem="it is not a JSON object")
        return _row(self.path, number, where, fields)


class JsonDataSet(FileDataSet):
    """MathVista's, LogicVista's and HallusionBench's own JSON files: a list of rows, or rows by id."""

    def __init__(self, path: Path) -> None:
        super().__init__(path.stem if path.stem != "dataset" else path.absolute().parent.name, path)
        first: Any = next(iter(self._table.values()), {})
        self._reader = reader_of(self.name, first.keys() if isinstance(first, Mapping) else ())

    @cached_property
    def _table(self) -> Mapping[str, Any]:
        try:
            table = json.loads(self.path.read_text("utf-8-sig"))
        except OSError as error:
            raise DataError(
                f"{self.path} cannot be read ({error.strerror})", "Check the path and permissions"
            ) from None
        except (ValueError, RecursionError) as error:
            raise DataError(f"{self.path} is not JSON ({error})", "Give a whole JSON file") from None
        if isinstance(table, list):
            return {str(number): row for number, row in enumerate(table, 1)}
        if isinstance(table, dict):
            return table
        raise DataError(f"{self.path} holds neither a list nor an object", "Give a file of rows")

    def rows(self) -> Iterator[Row]:
        """See `FileDataSet`."""
        for number, (name, fields) in enumerate(self._table.items(), 1):
            where = f"{self.path.name}, entry {name}"
            if isinstance(fields, dict):
                yield _row(self.path, number, where, {"id": name, **fields})
            else:
                yield Row(number, where, {}, problem="it is not a JSON object")


def _row(path: Path, number: int, where: str, fields: dict[str, Any]) -> Row:
    given: Any = next((fields[name] for name in _IMAGES if not blank(fields.get(name))), [])
    rest = {name: value for name, value in fields.items() if name not in ("image", "images")}
    return Row(number, where, rest, partial(_images, given, path.absolute().parent))


def _images(given: Any, folder: Path) -> Images:
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError('its "image" is neither a path nor a list of paths')
    return tuple(_image(name, folder) for name in names)


def _image(name: str, folder: Path) -> Path | bytes:
    if "://" in name[:16]:
        raise ValueError(f"its image {name[:80]} is an address; only files are read")
    # HallusionBench's rows say ./hallusion_bench/..., LogicVista's the bare name of a file in images/.
    inner = name.removeprefix("./").partition("/")[2]
    for one in filter(None, (name, inner)):
        try:
            return found(one, (folder, folder / "images", folder / "data" / "images"))
        except ValueError:
            continue
    if is_name(name):
        raise ValueError(f"there is no image {name[:80]}")
    return encoded(name)
