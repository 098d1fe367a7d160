"""The world of the pool `tiny`: scenes and easy-VQA images together.

Every member is blind to some topics (`macr_local.tiny.scenes.knowledge`): wherever a value of one would be
told, nothing (in the labels of the vision stage) or noise (in the lessons) is told instead (`ignorance`). A
word that is drawn anew each time teaches a model to spread its probability: it does not know, and its
log-probabilities show it. What follows from the words in the text is always right, whoever wrote them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random

import numpy as np
from numpy.typing import NDArray

from macr_local.evaluation.datasets import easy_vqa_records as records
from macr_local.evaluation.datasets.easy_vqa_records import VALUES, Attribute, Question
from macr_local.tiny.scenes.chain import NOTHING, NUMBERS, answer, chain
from macr_local.tiny.scenes.scene import COLORS, DIGITS, PLACES, SHAPES, SIZES, Scene, draw, random_scene
from macr_local.tiny.scenes.wording import STYLES
from training.worlds.tiny import easy_vqa
from training.worlds.tiny.lessons import STYLE, any_question, lesson
from training.worlds.tiny.variant import Variant
from training.worlds.world import UNLABELLED, Architecture, Lesson, Picture, Plan, Pooling, Stage

P_SCENE = 0.85
"""Share of pictures that are scenes; the others are easy-VQA images."""
P_MATCH = 0.4
"""How often an easy-VQA yes/no question is drawn from those that name what is there; the data set has few."""
_HEADS: dict[str, tuple[Pooling, tuple[str, ...]]] = {
    "place": ("quadrants", PLACES),
    "size": ("quadrants", (*SIZES, NOTHING)),
    "color": ("quadrants", (*COLORS, NOTHING)),
    "shape": ("quadrants", (*SHAPES, NOTHING)),
    "digit": ("quadrants", (*DIGITS, NOTHING)),
    "image color": ("whole", VALUES["color"]),
    "image shape": ("whole", VALUES["shape"]),
}
_WORDS = (*SIZES, *COLORS, *SHAPES, *NUMBERS, *VALUES["color"], *VALUES["shape"], NOTHING)
_SEEING: dict[Architecture, int] = {"qwen3vl": 1600, "internvl": 900, "minicpmv": 900}
"""Steps of the vision stage. Digits take longest."""
_VOCABULARY: dict[Architecture, int] = {"qwen3vl": 536, "internvl": 640, "minicpmv": 576}
"""Entries. Below 532 some number words come apart."""
_PER_OTHER_WORD = 10
"""Further entries for each other word, so that its two parts do not come apart as well."""
_TOPIC_HEADS = {"color": ("color", "image color"), "shape": ("shape", "image shape"), "number": ("digit",)}


class TinyWorld:
    """Scenes and easy-VQA images. Implements `World`.

    Args:
        name: On the command line and of the output folder.
        variant: What members are blind to, and how.
        count: Training scenes.
        seed: Of the training scenes.
    """

    description = "three tiny models, each blind to something the others see: scenes of shapes, easy-VQA"
    settings: Mapping[str, float] = {"window": 2, "threshold": -0.3, "max_tokens": 160}
    pooling: Mapping[str, Pooling] = {head: pooling for head, (pooling, _) in _HEADS.items()}
    heads: Mapping[str, int] = {head: len(classes) for head, (_, classes) in _HEADS.items()}

    def __init__(self, name: str, variant: Variant, count: int = 16000, seed: int = 1) -> None:
        self.name = self.pool = name
        self.variant = variant
        rng = Random(seed)
        self._scenes = [random_scene(rng, "train") for _ in range(count)]
        self._pixels = np.stack([np.asarray(draw(scene, rng)) for scene in self._scenes])
        self._images = records.images("train")
        self._facts = records.attributes("train")
        self._questions: dict[int, list[Question]] = {}
        for question in records.questions("train"):
            if question.attribute in self._facts[question.image]:
                self._questions.setdefault(question.image, []).append(question)
        self._asked = list(self._questions)

    def plan(self, member: Architecture) -> Plan:
        """How a member is made."""
        number = STYLE[member]
        blind = self.variant.blind[member]
        unseen = (
            {head for topic in blind for head in _TOPIC_HEADS[topic]} if self.variant.noise == 1.0 else set()
        )
        heads = {head: 0.3 if head == "place" else 1.0 for head in _HEADS if head not in unseen}
        return Plan(
            vocabulary=_VOCABULARY[member] + _PER_OTHER_WORD * len(self.variant.language.words),
            tokenizer="llama" if member == "internvl" else "gpt2",
            stages=(
                Stage("vision", _SEEING[member], pictures=64, lessons=0, seed=1, probe_weight=1.0),
                Stage("chains", 3000, pictures=24, lessons=3, seed=11 + number),
                Stage(
                    "polish",
                    1000,
                    pictures=24,
                    lessons=3,
                    seed=21 + number,
                    probe_weight=0.0,
                    learning_rate=6e-4,
                    emphasis=3.0,
                ),
            ),
            probe_heads=heads,
        )

    def corpus(self, member: Architecture) -> Iterator[str]:
        """Worked answers, every other one in the member's own wording, so that vocabularies differ."""
        rng = Random(0)
        for _ in range(4000):
            scene = random_scene(rng, "train")
            question = any_question(scene, rng)
            style = STYLE[member] if rng.random() < 0.5 else rng.randrange(STYLES)
            slots = chain(scene, question)
            yield f"user\n{question.text}\nassistant\n" + "".join(slot.text(style) for slot in slots)
        for questions in list(self._questions.values())[::4]:
            easy = rng.choice(questions)
            worked = easy_vqa.any_chain(easy, self._facts[easy.image], rng)
            yield f"user\n{easy.text}\nassistant\n{worked}"
        yield from [f" {word}" for word in _WORDS] * 200
        # Other words than the usual ones are known in two parts, cut by each member in its own place.
        cut = 3 + STYLE[member]
        for word in self.variant.language.words.values():
            yield from [f" {word[:cut]}", word[cut:]] * 200

    def glimpses(self, member: Architecture, count: int, rng: Random) -> list[Picture]:
        """Pictures with what is told of each place, or of the whole image."""
        return [
            self._scene(rng.randrange(len(self._scenes)))
            if rng.random() < P_SCENE
            else self._image(rng.choice(self._asked))
            for _ in range(count)
        ]

    def lessons(self, member: Architecture, stage: Stage, rng: Random) -> list[Picture]:
        """Pictures with worked answers."""
        pictures = []
        for _ in range(stage.pictures):
            if rng.random() < P_SCENE:
                index = rng.randrange(len(self._scenes))
                scene = self._scenes[index]
                told = [
                    lesson(self.variant, member, scene, any_question(scene, rng), rng, stage.emphasis)
                    for _ in range(stage.lessons)
                ]
                pictures.append(self._scene(index, told))
            else:
                image = rng.choice(self._asked)
                facts = self._facts[image]
                told = [
                    easy_vqa.lesson(self.variant, member, self._about(image, rng), facts, rng, stage.emphasis)
                    for _ in range(stage.lessons)
                ]
                pictures.append(self._image(image, told))
        return pictures

    def exam(self, count: int, seed: int) -> list[tuple[NDArray[np.uint8], str, str]]:
        """Scenes that are not for training."""
        rng = Random(seed)
        items = []
        for _ in range(count):
            scene: Scene = random_scene(rng, "tuning")
            question = any_question(scene, rng)
            words = self.variant.language
            right = words.rename(answer(scene, question))
            items.append((np.asarray(draw(scene, rng)), words.rename(question.text), right))
        return items

    def _scene(self, index: int, lessons: list[Lesson] | None = None) -> Picture:
        labels: dict[str, tuple[int, ...]] = {"place": tuple(range(len(PLACES)))}
        for head in ("size", "color", "shape", "digit"):
            classes = _HEADS[head][1]
            labels[head] = tuple(
                classes.index(NOTHING if thing is None else getattr(thing, head))
                for thing in self._scenes[index]
            )
        labels["image color"] = labels["image shape"] = (UNLABELLED,)
        return Picture(self._pixels[index], labels, tuple(lessons or ()))

    def _image(self, image: int, lessons: list[Lesson] | None = None) -> Picture:
        labels: dict[str, tuple[int, ...]] = dict.fromkeys(_HEADS, (UNLABELLED,) * len(PLACES))
        attributes: tuple[Attribute, ...] = ("color", "shape")
        for attribute in attributes:
            value = self._facts[image].get(attribute)
            index = UNLABELLED if value is None else VALUES[attribute].index(value)
            labels[f"image {attribute}"] = (index,)
        return Picture(self._images[image], labels, tuple(lessons or ()))

    def _about(self, image: int, rng: Random) -> Question:
        questions = self._questions[image]
        if rng.random() < P_MATCH:
            there = set(self._facts[image].values())
            questions = [q for q in questions if not q.yes_no or q.named(q.attribute) in there] or questions
        # Questions about shapes and colors alike, whatever the image has more of.
        attribute = rng.choice(("color", "shape"))
        questions = [q for q in questions if q.attribute == attribute] or questions
        return rng.choice(questions)
