"""What is asked: scenes, where every cause is known, and easy-VQA, which others made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from macr_local import Prompt
from macr_local.images import Image, load
from macr_local.tiny.scenes.chain import Slot
from macr_local.tiny.scenes.examination import Item, examination
from macr_local.tiny.scenes.scene import Split
from macr_local.tiny.scenes.wording import PLAIN, Language
from training.worlds.easy_vqa import records


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
    """

    key: str
    image: Image
    cluster: int
    question: str
    answer: str
    family: str
    item: Item | None = None

    @property
    def prompt(self) -> Prompt:
        """As the pool is asked."""
        return Prompt.of(self.question, self.image)

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
    """easy-VQA questions, as many of each kind (asks by kind, color or shape), yes and no as often.

    The data set repeats itself: the same few texts, and far more "no" than "yes" in some. So a question is
    drawn for each kind and answer in turn, and every image is used once.
    """
    rng = Random(seed)
    everything = [q for q in records.questions(split) if q.attribute in records.attributes(split)[q.image]]
    rng.shuffle(everything)
    groups: dict[tuple[str, str], list[records.Question]] = {}
    for question in everything:
        groups.setdefault((question.kind, question.answer), []).append(question)
    by_kind = {kind: [groups[key] for key in sorted(groups) if key[0] == kind] for kind in records.KINDS}
    pixels = records.images(split)
    used: set[int] = set()
    for number in range(count):
        kind = records.KINDS[number % len(records.KINDS)]
        answers = by_kind[kind]
        question = _unused(answers[number // len(records.KINDS) % len(answers)], used)
        used.add(question.image)
        yield Task(
            f"easy-vqa-{split}-{question.image}",
            load(pixels[question.image], name=f"easy-VQA {question.image}"),
            question.image,
            question.text,
            question.answer,
            kind,
        )


def _unused(questions: list[records.Question], used: set[int]) -> records.Question:
    while questions:
        question = questions.pop()
        if question.image not in used:
            return question
    raise ValueError("easy-VQA has no more questions of this kind on images that were not asked about")
