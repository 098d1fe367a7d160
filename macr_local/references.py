"""Reference sets: questions with images, from a folder, a JSONL or TSV file, or a package by name."""

from __future__ import annotations

import ast
import base64
import binascii
import csv
import hashlib
import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from macr_local.errors import DataError

IMAGE_SUFFIXES = frozenset((".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff"))
_LONGEST_REFERENCE = 64
"""A TSV image cell up to this long may name another row; a base64 image is never that short."""


@dataclass(frozen=True, slots=True)
class Reference:
    """One reference question.

    Attributes:
        where: The row or file it comes from, for messages.
        question: What is asked.
        images: Encoded images, in order.
        problem: Why it cannot be used; empty where it can.
    """

    where: str
    question: str
    images: tuple[Path | bytes, ...]
    problem: str = ""

    def key(self) -> str:
        """A hash of the question and of the images' bytes; the same wherever the files lie.

        Raises:
            OSError: An image cannot be read.
        """
        digest = hashlib.sha256(json.dumps(self.question).encode())
        for image in self.images:
            data = image.read_bytes() if isinstance(image, Path) else image
            digest.update(hashlib.sha256(data).digest())
        return digest.hexdigest()[:24]


@dataclass(frozen=True, slots=True)
class ReferenceSet:
    """Reference questions in a fixed order.

    Attributes:
        name: What it is called in a calibration.
        items: The questions, those with a problem included.
    """

    name: str
    items: tuple[Reference, ...]

    def sample(self, limit: int | None, seed: int) -> ReferenceSet:
        """The first ``limit`` of the questions in a seeded random order; all, in theirs, for None."""
        if limit is None or limit >= len(self.items):
            return self
        order = random.Random(f"macr-local references {seed}").sample(range(len(self.items)), limit)
        name = f"{self.name} ({limit} of {len(self.items)}, seed {seed})"
        return ReferenceSet(name, tuple(self.items[i] for i in order))


def read(source: str | Path) -> ReferenceSet:
    """Read a reference set.

    Args:
        source: ``easy-vqa`` (its training half; ``easy-vqa:test`` is the other), a folder, or a file that
            ends in ``.jsonl`` or ``.tsv``. A folder holds ``questions.jsonl`` or ``questions.tsv``, or images
            with their question in a ``.txt`` file of the same name. Image paths are relative to the file
            that names them. A TSV row with options (columns A, B, ...) is asked with them.

    Raises:
        DataError: There is no such set, or it is in no form that is known. A row that cannot be used is no
            error here; it carries its problem.
    """
    text = str(source)
    if text == "easy-vqa" or text.startswith("easy-vqa:"):
        return _easy_vqa(text.partition(":")[2] or "train")
    path = Path(source).expanduser()
    if path.is_dir():
        for name in ("questions.jsonl", "questions.tsv"):
            if (path / name).is_file():
                return read(path / name)
        return _checked(path.name, _folder(path), path)
    readers: Mapping[str, Callable[[Path], Iterable[Reference]]] = {".jsonl": _jsonl, ".tsv": _tsv}
    if not path.is_file():
        raise DataError(
            f"There is no reference set {source}", "Give a folder, a .jsonl or .tsv file, or easy-vqa"
        )
    if path.suffix.lower() not in readers:
        raise DataError(f"{path} is neither .jsonl nor .tsv", "Give one of these, a folder, or easy-vqa")
    try:
        name = path.stem if path.stem != "questions" else path.absolute().parent.name
        return _checked(name, readers[path.suffix.lower()](path), path)
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} cannot be read ({error})", "Save it as UTF-8") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror})", "Check its permissions") from None


def _checked(name: str, items: Iterable[Reference], path: Path) -> ReferenceSet:
    found = tuple(items)
    if not found:
        raise DataError(f"{path} holds no question", "See docs/calibration.md for the forms that are read")
    return ReferenceSet(name, found)


def _easy_vqa(half: str) -> ReferenceSet:
    if half not in ("train", "test"):
        raise DataError(f'easy-vqa has no part "{half}"', "Use easy-vqa:train or easy-vqa:test")
    try:
        import easy_vqa
    except ImportError:
        raise DataError(
            "The easy-vqa package is not installed", "Install it: pip install 'macr-local[eval]'"
        ) from None
    questions, _, images = getattr(easy_vqa, f"get_{half}_questions")()
    paths = getattr(easy_vqa, f"get_{half}_image_paths")()
    items = (
        Reference(f"easy-vqa:{half} {i}", question, (Path(paths[image]),))
        for i, (question, image) in enumerate(zip(questions, images, strict=True))
    )
    return ReferenceSet(f"easy-vqa:{half}", tuple(items))


def _folder(path: Path) -> Iterator[Reference]:
    for image in sorted(path.iterdir()):
        if image.suffix.lower() in IMAGE_SUFFIXES:
            beside = image.with_suffix(".txt")
            try:
                question = beside.read_text("utf-8-sig").strip()
            except FileNotFoundError:
                yield Reference(image.name, "", (), f"there is no {beside.name} with its question")
            except (OSError, UnicodeDecodeError) as error:
                yield Reference(image.name, "", (), f"{beside.name} cannot be read ({error})")
            else:
                yield _reference(image.name, question, [image])


def _jsonl(path: Path) -> Iterator[Reference]:
    with path.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            where = f"{path.name}:{number}"
            try:
                row = json.loads(line)
            except ValueError as error:
                yield Reference(where, "", (), f"it is not JSON ({error})")
                continue
            if not isinstance(row, dict):
                yield Reference(where, "", (), "it is not a JSON object")
                continue
            given = row.get("images", row.get("image", []))
            images = [given] if isinstance(given, str) else given
            if not isinstance(images, list) or not all(isinstance(image, str) for image in images):
                yield Reference(where, "", (), '"image" is neither a path nor a list of paths')
                continue
            yield _reference(where, row.get("question"), [path.parent / image for image in images])


def _tsv(path: Path) -> Iterator[Reference]:
    limit = csv.field_size_limit(1 << 30)  # an image in base64 is one field
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t"))
    finally:
        csv.field_size_limit(limit)
    if rows and "question" not in rows[0]:
        columns = ", ".join(column for column in rows[0] if column)
        raise DataError(f'{path} has no column "question" (it has {columns})', "Name it in the first line")
    by_index = {str(row.get("index")): row.get("image") or "" for row in rows}
    for number, row in enumerate(rows, 2):
        where = f"{path.name}:{row.get('index') or number}"
        try:
            images = _cells(row, by_index, path.parent)
        except ValueError as error:
            yield Reference(where, "", (), str(error))
        else:
            yield _reference(where, _asked(row), images)


def _asked(row: Mapping[str, Any]) -> str | None:
    """The question of a TSV row; with its options, in VLMEvalKit's default words, where it has some."""
    question: str | None = row["question"]
    options = [f"{letter}. {text}" for letter in ascii_uppercase if (text := row.get(letter))]
    if not question or not options:
        return question
    hint = [f"Hint: {row['hint']}"] if row.get("hint") else []
    end = "Please select the correct answer from the options above. \n"
    return "\n".join([*hint, f"Question: {question}", "Options:", *options, end])


def _cells(row: Mapping[str, Any], by_index: Mapping[str, str], folder: Path) -> list[Path | bytes]:
    """The images of a TSV row: base64, a path, another row's index, or a list of these.

    Raises:
        ValueError: It is none of them.
    """
    if (path := (row.get("image_path") or "").strip()) and not (row.get("image") or "").strip():
        return [folder / one for one in _listed(path)]
    cell = (row.get("image") or "").strip()
    if len(cell) <= _LONGEST_REFERENCE and cell in by_index and cell != row.get("image_path"):
        target = by_index[cell].strip()
        if len(target) <= _LONGEST_REFERENCE and not _is_file(folder / target):
            raise ValueError(f"its image is that of row {cell}, which has none")
        cell = target
    return [_cell(one, folder) for one in _listed(cell)]


def _listed(cell: str) -> list[str]:
    if not (cell.startswith("[") and cell.endswith("]")):
        return [cell] if cell else []
    try:
        values = ast.literal_eval(cell)
    except (ValueError, SyntaxError):
        raise ValueError("its image is a list that cannot be read") from None
    if not all(isinstance(value, str) for value in values):
        raise ValueError("its image is a list with something else than text in it")
    return list(values)


def _cell(cell: str, folder: Path) -> Path | bytes:
    if len(cell) <= 1024 and _is_file(folder / cell):
        return folder / cell
    try:
        data = base64.b64decode(cell, validate=True)
    except binascii.Error:
        data = b""
    if len(data) < 8:
        raise ValueError(f"its image ({cell[:40]}) is no file and not base64")
    return data


def _reference(where: str, question: object, images: list[Path] | list[Path | bytes]) -> Reference:
    if not isinstance(question, str) or not question.strip():
        return Reference(where, "", (), "it has no question")
    if any("\ud800" <= char <= "\udfff" for char in question):
        return Reference(where, "", (), "its question holds half a character (a lone surrogate)")
    missing = [image for image in images if isinstance(image, Path) and not _is_file(image)]
    if missing:
        return Reference(where, question, (), f"there is no image {missing[0]}")
    return Reference(where, question, tuple(images))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # base64 is too long for a name; a name may not hold a NUL
        return False
