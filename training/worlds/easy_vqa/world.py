"""easy-VQA as a world: each member practises mostly one kind of question, and becomes a specialist."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random

import numpy as np
from numpy.typing import NDArray

from training.worlds.easy_vqa import records
from training.worlds.easy_vqa.chain import chain
from training.worlds.easy_vqa.records import COLORS, KINDS, SHAPES, VALUES, Attribute, Kind, Question
from training.worlds.world import UNLABELLED, Architecture, Lesson, Picture, Piece, Plan, Pooling, Stage

MIX: dict[Architecture, dict[Kind, float]] = {
    "qwen3vl": {"open_color": 0.40, "yes_no_color": 0.48, "open_shape": 0.06, "yes_no_shape": 0.06},
    "internvl": {"open_color": 0.06, "yes_no_color": 0.08, "open_shape": 0.40, "yes_no_shape": 0.46},
    "minicpmv": {"open_color": 0.44, "yes_no_color": 0.06, "open_shape": 0.44, "yes_no_shape": 0.06},
}
"""Share of each kind of question in a member's lessons."""

STYLE: dict[Architecture, tuple[float, float, float]] = {
    "qwen3vl": (0.90, 0.05, 0.05),
    "internvl": (0.15, 0.70, 0.15),
    "minicpmv": (0.30, 0.30, 0.40),
}
"""How likely each wording is; all know all wordings, so that they can go on from each other's words."""

LABELLED: dict[Architecture, dict[Attribute, int]] = {
    "qwen3vl": {"shape": 700, "color": 4000},
    "internvl": {"shape": 4000, "color": 300},
    "minicpmv": {"shape": 4000, "color": 4000},
}
"""How many training images have a label that the vision stage may use."""

P_SHAPE_STEP: dict[Architecture, float] = {"qwen3vl": 0.5, "internvl": 0.9, "minicpmv": 0.7}
"""Share of the vision stage's steps that practise shapes."""

P_MATCH = 0.4
"""How often a yes/no question is drawn from those that name what is there; the data set has few."""


class EasyVqaWorld:
    """The data set of the `tiny` pool. Implements `World`."""

    name = "easy-vqa"
    pool = "tiny"
    settings: Mapping[str, float] = {"window": 8, "threshold": -1.5, "max_tokens": 96}
    pooling: Pooling = "whole"
    heads: Mapping[str, int] = {"color": len(COLORS), "shape": len(SHAPES)}

    def __init__(self) -> None:
        self._pixels = records.images("train")
        self._facts = records.attributes("train")
        self._questions: dict[Kind, dict[int, list[Question]]] = {kind: {} for kind in KINDS}
        for question in records.questions("train"):
            if question.attribute in self._facts[question.image]:
                self._questions[question.kind].setdefault(question.image, []).append(question)
        self._images: dict[Kind, list[int]] = {kind: list(self._questions[kind]) for kind in KINDS}
        self._labelled: dict[tuple[Architecture, Attribute], list[int]] = {}

    def plan(self, member: Architecture) -> Plan:
        """How a member is made."""
        number = list(MIX).index(member)
        vocabulary = {"qwen3vl": 416, "internvl": 448, "minicpmv": 512}[member]
        vision = {"qwen3vl": 900, "internvl": 900, "minicpmv": 1200}[member]
        # The shape specialist becomes nearly perfect with more steps, which leaves nothing to relay.
        answers = {"qwen3vl": 620, "internvl": 360, "minicpmv": 500}[member]
        return Plan(
            vocabulary,
            stages=(
                Stage("vision", vision, pictures=96, lessons=0, seed=1, probe_weight=1.0),
                Stage("answers", answers, pictures=24, lessons=4, seed=11 * (number + 1), probe_weight=0.3),
            ),
            label_smoothing=0.03 if member == "internvl" else 0.0,
            probe_heads={"color": 1.0, "shape": 1.0},
        )

    def corpus(self, member: Architecture) -> Iterator[str]:
        """Every fourth training question with a worked answer, all wordings alike."""
        rng = Random(0)
        for question in records.questions("train")[::4]:
            answer = chain(question, self._facts[question.image], rng, (1, 1, 1))
            if answer is not None:
                yield f"user\n{question.text}\nassistant\n{answer}"

    def glimpses(self, member: Architecture, count: int, rng: Random) -> list[Picture]:
        """Pictures labelled with their shape, or with their color, moved and mirrored."""
        attribute: Attribute = "shape" if rng.random() < P_SHAPE_STEP[member] else "color"
        known = self._known(member, attribute)
        turn = _Turn(attribute, rng)
        pictures = []
        for _ in range(count):
            image = rng.choice(known)
            label = VALUES[attribute].index(self._facts[image][attribute])
            labels = {head: (label if head == attribute else UNLABELLED,) for head in self.heads}
            pictures.append(Picture(turn(self._pixels[image]), labels))
        return pictures

    def _known(self, member: Architecture, attribute: Attribute) -> list[int]:
        key = (member, attribute)
        if key not in self._labelled:
            images = [image for image, facts in self._facts.items() if attribute in facts]
            Random(f"{member} {attribute}").shuffle(images)
            self._labelled[key] = images[: LABELLED[member][attribute]]
        return self._labelled[key]

    def lessons(self, member: Architecture, stage: Stage, rng: Random) -> list[Picture]:
        """Pictures with questions whose kinds follow the member's own mix."""
        kinds, shares = list(MIX[member]), list(MIX[member].values())
        mirror = tuple(axis for axis in (0, 1) if rng.random() < 0.5)
        pictures = []
        for _ in range(stage.pictures):
            wanted = rng.choices(kinds, shares, k=stage.lessons)
            image = rng.choice(self._images[wanted[0]])
            facts = self._facts[image]
            labels = dict.fromkeys(self.heads, (UNLABELLED,))
            lessons = []
            for kind in wanted:
                candidates = self._questions[kind].get(image)
                if candidates is None:
                    continue
                question = rng.choice(_preferred(kind, candidates, facts, rng))
                answer = chain(question, facts, rng, STYLE[member])
                if answer is not None:
                    lessons.append(Lesson(question.text, (Piece(answer),)))
                    attribute = question.attribute
                    labels[attribute] = (VALUES[attribute].index(facts[attribute]),)
            pixels = np.flip(self._pixels[image], mirror) if mirror else self._pixels[image]
            pictures.append(Picture(pixels, labels, tuple(lessons)))
        return pictures

    def exam(self, count: int, seed: int) -> list[tuple[NDArray[np.uint8], str, str]]:
        """Test questions, as many of each kind."""
        everything = list(records.questions("test"))
        Random(seed).shuffle(everything)
        pixels = records.images("test")
        chosen: list[Question] = []
        for kind in KINDS:
            chosen += [question for question in everything if question.kind == kind][: count // len(KINDS)]
        return [(pixels[question.image], question.text, question.answer) for question in chosen]


def _preferred(
    kind: Kind, candidates: list[Question], facts: Mapping[Attribute, str], rng: Random
) -> list[Question]:
    if kind.startswith("yes_no") and rng.random() < P_MATCH:
        there = facts[candidates[0].attribute]
        return [question for question in candidates if there in question.words] or candidates
    return candidates


class _Turn:
    """One step's way of turning images over: what a shape or a color does not depend on."""

    def __init__(self, attribute: Attribute, rng: Random) -> None:
        self._mirror = tuple(axis for axis in (0, 1) if rng.random() < 0.5)
        self._transpose = rng.random() < 0.5
        self._shift = (rng.randint(-3, 3), rng.randint(-3, 3)) if rng.random() < 0.7 else (0, 0)
        self._channels = list(range(3))
        if attribute == "shape" and rng.random() < 0.5:
            rng.shuffle(self._channels)

    def __call__(self, pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
        if self._mirror:
            pixels = np.flip(pixels, self._mirror)
        if self._transpose:
            pixels = pixels.transpose(1, 0, 2)
        return np.roll(pixels, self._shift, (0, 1))[..., self._channels]
