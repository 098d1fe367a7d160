"""Data sets by name, file or folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from macr_local.errors import DataError
from macr_local.evaluation.datasets.dataset import DataSet
from macr_local.evaluation.datasets.easy_vqa import EasyVqa
from macr_local.evaluation.datasets.json_files import JsonDataSet, JsonlDataSet
from macr_local.evaluation.datasets.parquet import ParquetDataSet
from macr_local.evaluation.datasets.scenes import Scenes
from macr_local.evaluation.datasets.tsv import TsvDataSet

NAMED: Mapping[str, tuple[Callable[[], DataSet], str]] = {
    "scenes": (Scenes, "1,000 questions about 500 scenes of the tiny pool's world"),
    "scenes:tuning": (lambda: Scenes("tuning"), "1,000 others, to choose settings on"),
    "easy-vqa": (EasyVqa, "600 questions of easy-VQA's test half, balanced, each on its own image"),
    "easy-vqa:train": (lambda: EasyVqa("train"), "600 of its training half, balanced"),
    "easy-vqa:all": (lambda: EasyVqa("all"), "its whole test half: 9,673 questions"),
    "easy-vqa:all-train": (lambda: EasyVqa("all-train"), "its whole training half: 38,575 questions"),
}
"""Data sets that have a name, and what they are."""

_FORMS: Mapping[str, Callable[[Path], DataSet]] = {
    ".tsv": TsvDataSet,
    ".jsonl": JsonlDataSet,
    ".json": JsonDataSet,
    ".parquet": ParquetDataSet,
}
_IN_FOLDERS = ("questions.jsonl", "dataset.json", "testmini.json", "HallusionBench.json")


def open_dataset(source: str | Path) -> DataSet:
    """Open a data set; nothing but its first line is read yet.

    Args:
        source: A name of `NAMED`, a file (.tsv, .jsonl, .json, .parquet), a folder with one such file, or the
            name of a VLMEvalKit table in its own folder (``$LMUData``, or ``~/LMUData``).

    Raises:
        DataError: There is no such data set, or its form is not known.
    """
    if str(source) in NAMED:
        return NAMED[str(source)][0]()
    path = Path(source).expanduser()
    if path.is_dir():
        path = _in_folder(path)
    elif not path.exists() and (table := tables().get(str(source))):
        path = table
    if not path.is_file():
        raise DataError(
            f"There is no data set {source}", f"Give a file, or one of {', '.join([*NAMED, *tables()])}"
        )
    if path.suffix.lower() not in _FORMS:
        raise DataError(f"{path} is in no known form", f"Give a file that ends in {', '.join(_FORMS)}")
    return _FORMS[path.suffix.lower()](path)


def tables() -> dict[str, Path]:
    """VLMEvalKit's tables on this machine, by name."""
    given = os.environ.get("LMUData", "")  # noqa: SIM112 (spelt so)
    folder = Path(given) if given and Path(given).is_dir() else Path.home() / "LMUData"
    try:
        return {path.stem: path for path in sorted(folder.glob("*.tsv"))}
    except OSError:
        return {}


def _in_folder(folder: Path) -> Path:
    for name in _IN_FOLDERS:
        if (folder / name).is_file():
            return folder / name
    found = sorted(path for path in folder.iterdir() if path.suffix.lower() in _FORMS)
    if len(found) == 1:
        return found[0]
    what = "several data files" if found else "no data file"
    raise DataError(f"{folder} holds {what}", f"Give the file itself ({', '.join(_FORMS)})")
