"""A set of questions about scenes of one split, the same for the same seed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

from PIL import Image

from macr_local.tiny.scenes.chain import Slot, chain
from macr_local.tiny.scenes.question import FAMILIES, Question, ask
from macr_local.tiny.scenes.scene import Scene, Split, draw, random_scene
from macr_local.tiny.scenes.wording import PLAIN, Language

PER_IMAGE = 2
"""Questions about each image, of different families."""


@dataclass(frozen=True, slots=True)
class Item:
    """One question, its image and its worked answer."""

    number: int
    scene: Scene
    image: Image.Image
    image_number: int
    question: Question
    reference: tuple[Slot, ...]

    @property
    def answer(self) -> str:
        """The right answer."""
        return self.reference[-1].value

    def record(self, image: str) -> dict[str, Any]:
        """The item as a line of ``questions.jsonl``, for an image file of that name."""
        return {
            "image": image,
            "question": self.question.text,
            "answer": self.answer,
            "family": self.question.family,
            "scene": [thing and list(asdict(thing).values()) for thing in self.scene],
            "chain": [[slot.kind, slot.value] for slot in self.reference if slot.value],
        }


def examination(split: Split, seed: int, count: int, language: Language = PLAIN) -> Iterator[Item]:
    """Questions of all families alike, `PER_IMAGE` about each image.

    Args:
        split: Whose scenes.
        seed: The same seed gives the same questions, and the same images to the byte with the same Pillow.
        count: Questions.
        language: The words.
    """
    rng = Random(f"{split} {seed}")
    for number in range(0, count, PER_IMAGE):
        scene, questions = _asked(split, number, rng)
        image = draw(scene, rng)
        for offset, question in enumerate(questions[: count - number]):
            reference = tuple(chain(scene, question, language=language))
            yield Item(number + offset, scene, image, number // PER_IMAGE, question, reference)


def _asked(split: Split, number: int, rng: Random) -> tuple[Scene, list[Question]]:
    """A scene that has a question of each of the families whose turn it is."""
    turns = [FAMILIES[(number + number // len(FAMILIES) + k) % len(FAMILIES)] for k in range(PER_IMAGE)]
    while True:
        scene = random_scene(rng, split)
        questions = [ask(scene, family, rng) for family in turns]
        found = [question for question in questions if question is not None]
        if len(found) == PER_IMAGE:
            return scene, found


def write(folder: Path, items: Iterator[Item]) -> Path:
    """Write PNG files and ``questions.jsonl`` into a folder; return the latter's path."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for item in items:
        name = f"{item.image_number:04d}.png"
        item.image.save(folder / name)
        lines.append(json.dumps(item.record(name)) + "\n")
    path = folder / "questions.jsonl"
    path.write_text("".join(lines), encoding="utf-8", newline="\n")
    return path
