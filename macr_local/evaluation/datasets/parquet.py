"""Parquet files as hubs have them, read in small batches (extra "parquet")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from macr_local.errors import DataError
from macr_local.evaluation.datasets.benchmarks import reader_of
from macr_local.evaluation.datasets.cells import encoded, found, is_name
from macr_local.evaluation.datasets.dataset import FileDataSet
from macr_local.evaluation.datasets.row import Images, Row, blank

_BATCH = 16
"""Rows in memory at once: a row may hold images of several megabytes."""
_IMAGES = ("decoded_image", "images", "image", *(f"image_{number}" for number in range(1, 8)))


class ParquetDataSet(FileDataSet):
    """A parquet file; an image is a struct of bytes and path, plain bytes, base64 or a path.

    Raises:
        DataError: pyarrow is not installed, or this is no parquet file.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(_name(path), path)
        with self._open() as file:
            self._columns = [str(name) for name in file.schema_arrow.names]
        self._reader = reader_of(self.name, self._columns)

    def rows(self) -> Iterator[Row]:
        """See `FileDataSet`."""
        number = 0
        with self._open() as file:
            for batch in file.iter_batches(batch_size=_BATCH):
                for fields in batch.to_pylist():
                    number += 1
                    rest = {name: value for name, value in fields.items() if name not in _IMAGES}
                    images = partial(_images, _given(fields), self.path.absolute().parent)
                    yield Row(number, f"{self.path.name}, row {number}", rest, images)

    def _open(self) -> Any:
        try:
            import pyarrow
            from pyarrow.parquet import ParquetFile
        except ImportError:
            raise DataError(
                "Parquet files need pyarrow, which is not installed",
                "Install it: pip install 'macr-local[parquet]'",
            ) from None
        try:
            return ParquetFile(self.path)
        except (pyarrow.ArrowInvalid, OSError) as error:
            raise DataError(
                f"{self.path} is no parquet file ({error})", "Fetch it again; LFS pointers are no files"
            ) from None


def _name(path: Path) -> str:
    """The benchmark's name, where the file has only its split's: MathVista/data/testmini-00000-of-00001."""
    if "-of-" not in path.stem:
        return path.stem
    above = [part for part in path.absolute().parts[:-1] if part != "data"]
    return f"{above[-1]}-{path.stem.split('-')[0]}" if above else path.stem


def _given(fields: Mapping[str, Any]) -> list[Any]:
    found: list[Any] = []
    for name in _IMAGES:
        value = fields.get(name)
        if blank(value) or (name == "image" and found):  # MathVista has both a path and the decoded image
            continue
        found += value if isinstance(value, list) else [value]
    return found


def _images(given: list[Any], folder: Path) -> Images:
    return tuple(_image(one, folder) for one in given if one is not None)


def _image(value: Any, folder: Path) -> Path | bytes:
    if isinstance(value, Mapping):
        value = value.get("bytes") or value.get("path")
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return found(value, (folder,)) if is_name(value) else encoded(value)
    raise ValueError(f"its image is of type {type(value).__name__}")
