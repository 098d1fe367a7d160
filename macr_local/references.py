"""Reference sets: the questions, with images, on which members are calibrated."""

from __future__ import annotations

import hashlib
import json
import random
from dataclasses import dataclass
from pathlib import Path

from macr_local.errors import DataError
from macr_local.evaluation.asking import question
from macr_local.evaluation.datasets import DataSet, open_dataset
from macr_local.evaluation.datasets.pictures import Pictures
from macr_local.evaluation.item import Item
from macr_local.utf8 import is_text

_WHOLE = {"easy-vqa": "all-train", "easy-vqa:train": "all-train", "easy-vqa:test": "all"}
"""Calibrating wants many questions, evaluating balanced ones: the same names mean more of easy-VQA here."""


@dataclass(frozen=True, slots=True)
class Reference:
    """One reference question.

    Attributes:
        where: The row or file it comes from, for messages.
        question: What is asked, options included.
        images: Encoded images, in order.
        problem: Why it cannot be used; empty where it can.
    """

    where: str
    question: str
    images: tuple[Path | bytes, ...]
    problem: str = ""

    @classmethod
    def of(cls, item: Item) -> Reference:
        """An item of a data set, asked in VLMEvalKit's words."""
        asked = "" if item.problem else question(item, "vlmevalkit")
        if not item.problem and not asked.strip():
            return cls(item.where, "", (), "it has no question")
        if not is_text(asked):
            return cls(item.where, "", (), "its question holds half a character (a lone surrogate)")
        return cls(item.where, asked, item.images, item.problem)

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


def read(source: str | Path, limit: int | None = None, seed: int = 0) -> ReferenceSet:
    """Read a reference set, or a sample of it; only what is taken is kept in memory.

    Args:
        source: Any data set that can be evaluated (`macr_local.evaluation.datasets.open_dataset`),
            ``easy-vqa`` (its whole training half; ``easy-vqa:test`` is the other), or a folder of images with
            their questions in ``.txt`` files of the same names.
        limit: So many questions, the first of a seeded random order; None takes all, in their order.
        seed: Of that order.

    Raises:
        DataError: There is no such set, it is in no form that is known, or no question in it can be used. One
            bad row is no error here; it carries its problem.
    """
    dataset = _opened(source)
    try:
        count = sum(1 for _ in dataset.ids())
        if limit is None or limit >= count:
            found = ReferenceSet(dataset.name, tuple(map(Reference.of, dataset.items())))
        else:
            order = random.Random(f"macr-local references {seed}").sample(range(count), limit)
            name = f"{dataset.name} ({limit} of {count}, seed {seed})"
            found = ReferenceSet(name, _picked(dataset, order))
    except OSError as error:
        raise DataError(f"{source} cannot be read ({error.strerror})", "Check its permissions") from None
    if not found.items:
        raise DataError(f"{source} holds no question", "See docs/calibration.md for the forms that are read")
    if all(item.problem for item in found.items):
        first = found.items[0]
        raise DataError(
            f"No question of {source} can be used: {first.where}: {first.problem}",
            "See docs/calibration.md for the forms that are read",
        )
    return found


def _opened(source: str | Path) -> DataSet:
    text = str(source)
    if text == "easy-vqa" or text.startswith("easy-vqa:"):
        part = text.partition(":")[2]
        if text not in _WHOLE and text != "easy-vqa:all":
            raise DataError(f'easy-vqa has no part "{part}"', "Use easy-vqa:train or easy-vqa:test")
        return open_dataset(f"easy-vqa:{_WHOLE.get(text, part)}")
    path = Path(source).expanduser()
    if path.is_dir():
        for name in ("questions.jsonl", "questions.tsv"):
            if (path / name).is_file():
                return open_dataset(path / name)
        if any(file.suffix.lower() == ".txt" for file in path.iterdir()):
            return Pictures(path)
    return open_dataset(source)


def _picked(dataset: DataSet, order: list[int]) -> tuple[Reference, ...]:
    """The items at these places, in this order."""
    wanted = set(order)
    items = {place: Reference.of(item) for place, item in enumerate(dataset.items()) if place in wanted}
    return tuple(items[place] for place in order)
