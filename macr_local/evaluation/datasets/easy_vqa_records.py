"""The easy-VQA data set, and what its questions tell about each image."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from macr_local.errors import DataError

Split = Literal["train", "test"]
Attribute = Literal["color", "shape"]
Kind = Literal["open_color", "open_shape", "yes_no_color", "yes_no_shape"]
KINDS: tuple[Kind, ...] = ("open_color", "open_shape", "yes_no_color", "yes_no_shape")
COLORS = ("black", "gray", "red", "green", "blue", "yellow", "teal", "brown")
SHAPES = ("circle", "rectangle", "triangle")
VALUES: dict[Attribute, tuple[str, ...]] = {"color": COLORS, "shape": SHAPES}


@dataclass(frozen=True, slots=True)
class Question:
    """One question of the data set."""

    text: str
    answer: str
    image: int

    @property
    def words(self) -> frozenset[str]:
        """The words of the question."""
        return frozenset(re.findall(r"\w+", self.text))

    @property
    def negated(self) -> bool:
        """Whether it asks for an absence ("is there not a circle?")."""
        return bool(self.words & {"not", "no"})

    @property
    def yes_no(self) -> bool:
        """Whether the answer is yes or no."""
        return self.answer in ("yes", "no")

    @property
    def attribute(self) -> Attribute:
        """What the question is about."""
        if self.yes_no:
            return "color" if self.words & set(COLORS) else "shape"
        return "color" if self.answer in COLORS else "shape"

    @property
    def kind(self) -> Kind:
        """One of the four kinds of question."""
        if self.yes_no:
            return "yes_no_color" if self.attribute == "color" else "yes_no_shape"
        return "open_color" if self.attribute == "color" else "open_shape"

    def named(self, attribute: Attribute) -> str | None:
        """The color or shape that the question itself names."""
        return next((value for value in VALUES[attribute] if value in self.words), None)


def folder() -> Path:
    """Where the installed easy-vqa package keeps its data.

    Raises:
        DataError: It is not installed.
    """
    try:
        import easy_vqa
    except ImportError:
        raise DataError(
            "The easy-vqa package is not installed", "Install it: pip install 'macr-local[eval]'"
        ) from None
    return Path(easy_vqa.__file__).parent / "data"


@cache
def questions(split: Split) -> tuple[Question, ...]:
    """All questions of a split, in the data set's order."""
    rows = json.loads((folder() / split / "questions.json").read_text(encoding="utf-8"))
    return tuple(Question(text, answer, image) for text, answer, image in rows)


@cache
def attributes(split: Split) -> dict[int, dict[Attribute, str]]:
    """Color and shape of each image as far as its questions tell; the data set does not store them."""
    known: dict[int, dict[Attribute, str]] = {}
    for question in questions(split):
        facts = known.setdefault(question.image, {})
        if question.yes_no:
            if (question.answer == "yes") == question.negated:
                continue
        else:
            facts[question.attribute] = question.answer
        for attribute in VALUES:
            value = question.named(attribute)
            if value is not None and (question.yes_no or attribute != question.attribute):
                facts[attribute] = value
    return known


@cache
def images(split: Split) -> NDArray[np.uint8]:
    """All images of a split as (n, 64, 64, 3) RGB."""
    paths = folder() / split / "images"
    count = sum(1 for _ in paths.glob("*.png"))
    return np.stack([np.asarray(Image.open(paths / f"{i}.png").convert("RGB")) for i in range(count)])


def balanced(split: Split, seed: int, count: int) -> Iterator[Question]:
    """Questions of each kind in turn, yes and no as often, each on its own image.

    The data set repeats itself: the same few texts, and far more "no" than "yes" in some; who never looks at
    an image is right about two thirds of it. So a question is drawn for each kind and answer in turn.

    Args:
        split: The half of the data set.
        seed: The same gives the same questions.
        count: Questions; each on an image that no other is on.

    Raises:
        DataError: There are not so many.
    """
    everything = [q for q in questions(split) if q.attribute in attributes(split)[q.image]]
    Random(seed).shuffle(everything)
    groups: dict[tuple[str, str], list[Question]] = {}
    for question in everything:
        groups.setdefault((question.kind, question.answer), []).append(question)
    by_kind = {kind: [groups[key] for key in sorted(groups) if key[0] == kind] for kind in KINDS}
    used: set[int] = set()
    for number in range(count):
        answers = by_kind[KINDS[number % len(KINDS)]]
        question = _unused(answers[number // len(KINDS) % len(answers)], used)
        used.add(question.image)
        yield question


def _unused(questions: list[Question], used: set[int]) -> Question:
    while questions:
        question = questions.pop()
        if question.image not in used:
            return question
    raise DataError(
        f"easy-VQA has only {len(used)} balanced questions on images of their own", "Ask for fewer"
    )
