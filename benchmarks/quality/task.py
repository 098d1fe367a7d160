"""What is asked: scenes, where every cause is known, and easy-VQA, which others made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from macr_local import Prompt
from macr_local.evaluation.datasets import easy_vqa_records as records
from macr_local.images import Image, load
from macr_local.tiny.scenes.chain import Slot
from macr_local.tiny.scenes.examination import Item, examination
from macr_local.tiny.scenes.scene import Split
from macr_local.tiny.scenes.wording import PLAIN, Language


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """One question and its right answer.

    Attributes:
        key: Unique within a set.
        image: The picture.
        cluster: The same for all questions about one image, which are not independent.
        question: In words.
        answer: In the words of the pool's language.
        family: Kind of question.
        item: The question with its scene and its worked answer; None where nobody knows them.
        prompt: As the pool is asked; one object, by which members know that it is the same question.
    """

    key: str
    image: Image
    cluster: int
    question: str
    answer: str
    family: str
    item: Item | None = None
    prompt: Prompt = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "prompt", Prompt.of(self.question, self.image))

    @property
    def reference(self) -> Sequence[Slot]:
        """The worked answer; empty where nobody knows one."""
        return () if self.item is None else self.item.reference


def scenes(split: Split, seed: int, count: int, language: Language = PLAIN) -> Iterator[Task]:
    """Questions about scenes of one split."""
    for item in examination(split, seed, count, language):
        image = load(np.asarray(item.image), name=f"scene {item.image_number}")
        question, answer = language.rename(item.question.text), language.rename(item.answer)
        yield Task(
            f"{split}-{seed}-{item.number}",
            image,
            item.image_number,
            question,
            answer,
            item.question.family,
            item,
        )


def easy_vqa(split: records.Split, seed: int, count: int) -> Iterator[Task]:
    """easy-VQA questions, as many of each kind, yes and no as often, each on its own image."""
    pixels = records.images(split)
    for question in records.balanced(split, seed, count):
        yield Task(
            f"easy-vqa-{split}-{question.image}",
            load(pixels[question.image], name=f"easy-VQA {question.image}"),
            question.image,
            question.text,
            question.answer,
            question.kind,
        )
