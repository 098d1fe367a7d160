"""Scenes as a world: every member is blind to something the others see, and says so by being unsure.

Blindness is label noise. qwen3vl is told a random color and the right shape, internvl the right color and a
random shape, minicpmv confuses some colors and some shapes and is told a random conclusion. A random word
that is drawn anew each time teaches a model to spread its probability: it is ignorant, and its
log-probabilities show it. For the other two, what follows from the words in the text is always right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random

import numpy as np
from numpy.typing import NDArray

from training.worlds.scenes.chain import STYLES, Slot, chain, write
from training.worlds.scenes.question import FAMILIES, Question, ask
from training.worlds.scenes.scene import COLORS, PLACES, SHAPES, Scene, Thing, draw, random_scene
from training.worlds.world import Architecture, Lesson, Picture, Piece, Plan, Pooling, Stage

CONFUSED_COLORS = ("blue", "purple", "white")
CONFUSED_SHAPES = ("triangle", "cross")
FAMILY_SHARES: dict[str, tuple[int, ...]] = {"chains": (1, 1, 1, 1), "flags": (2, 2, 3, 1)}
FLAG_WEIGHT = 5.0
"""In the flags stage a yes or no, and the conclusion, count this much: comparing a word of the text with the
question is what takes long to learn for the attribute that a member cannot see."""
P_OWN_FROM_START = 0.4
P_OTHERS_RIGHT = 0.85
P_DRILL = 0.6


class ScenesWorld:
    """The world of the `tiny-scenes` pool. Implements `World`.

    Args:
        count: Training scenes.
        seed: Of the training scenes; not to be used for reference or test sets.
    """

    name = "scenes"
    pool = "tiny-scenes"
    settings: Mapping[str, float] = {"window": 3, "threshold": -0.3, "max_tokens": 160}
    pooling: Pooling = "quadrants"
    heads: Mapping[str, int] = {"place": len(PLACES), "color": len(COLORS) + 1, "shape": len(SHAPES) + 1}

    def __init__(self, count: int = 8000, seed: int = 1) -> None:
        rng = Random(seed)
        self._scenes = [random_scene(rng) for _ in range(count)]
        self._pixels = np.stack([np.asarray(draw(scene, rng)) for scene in self._scenes])

    def plan(self, member: Architecture) -> Plan:
        """How a member is made."""
        number = STYLES[member]
        chains = {"qwen3vl": 1100, "internvl": 1100, "minicpmv": 850}[member]
        stages = [
            Stage("vision", 600, pictures=64, lessons=0, seed=1, probe_weight=1.0),
            Stage("chains", chains, pictures=24, lessons=3, seed=11 + number),
        ]
        heads = {"place": 0.3, "color": 1.0, "shape": 1.0}
        if member != "minicpmv":
            unseen, words = ("color", COLORS) if member == "qwen3vl" else ("shape", SHAPES)
            del heads[unseen]
            # Embeddings of words that were only ever noise lie close together: hard to tell apart in a text.
            spread = tuple(f" {word}" for word in words)
            stages.append(Stage("flags", 950, pictures=24, lessons=3, seed=51 + number, spread=spread))
        vocabulary = {"qwen3vl": 400, "internvl": 432, "minicpmv": 512}[member]
        return Plan(vocabulary, tuple(stages), probe_heads=heads)

    def corpus(self, member: Architecture) -> Iterator[str]:
        """Worked chains, every other one in the member's own wording, so that vocabularies differ."""
        rng = Random(0)
        for _ in range(4000):
            scene = random_scene(rng)
            question = ask(scene, rng.choice(FAMILIES), rng)
            style = STYLES[member] if rng.random() < 0.5 else rng.randrange(len(STYLES))
            yield f"user\n{question.text}\nassistant\n{write(chain(scene, question), style)}"

    def glimpses(self, member: Architecture, count: int, rng: Random) -> list[Picture]:
        """Pictures with what the member is told of each place."""
        return [self._picture(member, rng.randrange(len(self._scenes)), rng) for _ in range(count)]

    def _picture(
        self, member: Architecture, index: int, rng: Random, lessons: tuple[Lesson, ...] = ()
    ) -> Picture:
        told = [thing and told_of(member, thing, rng) for thing in self._scenes[index]]
        labels = {
            "place": tuple(range(len(PLACES))),
            "color": tuple(len(COLORS) if t is None else COLORS.index(t.color) for t in told),
            "shape": tuple(len(SHAPES) if t is None else SHAPES.index(t.shape) for t in told),
        }
        return Picture(self._pixels[index], labels, lessons)

    def lessons(self, member: Architecture, stage: Stage, rng: Random) -> list[Picture]:
        """Pictures with chains cut at a random slot: others wrote before it, the member writes after it."""
        drill = stage.name == "flags"
        pictures = []
        for _ in range(stage.pictures):
            index = rng.randrange(len(self._scenes))
            scene = self._scenes[index]
            lessons = []
            for _ in range(stage.lessons):
                family = rng.choices(FAMILIES, FAMILY_SHARES[stage.name])[0]
                lessons.append(lesson(member, scene, ask(scene, family, rng), rng, drill))
            pictures.append(self._picture(member, index, rng, tuple(lessons)))
        return pictures

    def exam(self, count: int, seed: int) -> list[tuple[NDArray[np.uint8], str, str]]:
        """Fresh scenes, as many questions of each family."""
        rng = Random(seed)
        items = []
        for number in range(count):
            scene = random_scene(rng)
            pixels = np.asarray(draw(scene, rng))
            question = ask(scene, FAMILIES[number % len(FAMILIES)], rng)
            items.append((pixels, question.text, question.answer(scene)))
        return items


def told_of(member: Architecture, thing: Thing, rng: Random) -> Thing:
    """What a member is told about a thing: noise exactly where it is to be blind."""
    if member == "qwen3vl":
        return Thing(rng.choice(COLORS), thing.shape)
    if member == "internvl":
        return Thing(thing.color, rng.choice(SHAPES))
    color = rng.choice(CONFUSED_COLORS) if thing.color in CONFUSED_COLORS else thing.color
    shape = rng.choice(CONFUSED_SHAPES) if thing.shape in CONFUSED_SHAPES else thing.shape
    return Thing(color, shape)


def lesson(
    member: Architecture, scene: Scene, question: Question, rng: Random, drill: bool = False
) -> Lesson:
    """A chain cut at a random slot.

    Before the cut stand other members' words, in any wording and sometimes wrong; after it the member's own.

    Args:
        member: Who learns.
        scene: The truth.
        question: What is asked.
        rng: Draws the cut, the wordings, the errors and the blindness.
        drill: Whether to cut before yes/no flags and to name what the question asks for more often.
    """
    outline = chain(scene, question)
    cut = 0 if rng.random() < P_OWN_FROM_START else rng.randrange(len(outline))
    flags = [number for number, slot in enumerate(outline) if slot.kind == "flag"]
    if drill and flags and rng.random() < P_DRILL:
        cut = rng.choice(flags) - rng.randrange(2)
    said = _said(member, scene, question if drill else None, outline, cut, rng)
    final = _random_answer(question, rng) if member == "minicpmv" else None
    slots = chain(said, question, final)
    style = STYLES[member]
    first_given = cut > 0 and len(slots[cut].wordings) > 1 and rng.random() < 0.5
    given = tuple(slot.text(rng.randrange(len(STYLES))) for slot in slots[:cut])
    own = []
    for number, slot in enumerate(slots[cut:]):
        weight = FLAG_WEIGHT if drill and slot.kind in ("flag", "final") else 1.0
        wording = rng.randrange(len(STYLES)) if first_given and number == 0 else style
        own.append(Piece(slot.text(wording), weight))
    return Lesson(question.text, tuple(own), given, first_given)


def _said(
    member: Architecture,
    scene: Scene,
    asked: Question | None,
    outline: list[Slot],
    cut: int,
    rng: Random,
) -> Scene:
    """The scene in the words of the chain: others' before the cut, the member's after it."""
    said: list[Thing | None] = []
    for place, thing in enumerate(scene):
        if thing is None:
            said.append(None)
            continue
        own = told_of(member, thing, rng)
        others = Thing(
            _other_word(thing.color, asked.color if asked else None, COLORS, rng),
            _other_word(thing.shape, asked.shape if asked else None, SHAPES, rng),
        )
        where = {slot.kind: number for number, slot in enumerate(outline) if slot.place == place}
        color = others.color if where["color"] < cut else own.color
        shape = others.shape if where["shape"] < cut else own.shape
        said.append(Thing(color, shape))
    return tuple(said)


def _other_word(truth: str, asked: str | None, words: tuple[str, ...], rng: Random) -> str:
    if asked is not None and rng.random() < 0.4:
        return asked
    return truth if rng.random() < P_OTHERS_RIGHT else rng.choice(words)


def _random_answer(question: Question, rng: Random) -> str:
    if question.family == "what":
        return rng.choice(["nothing", *(f"{color} {shape}" for color in COLORS for shape in SHAPES)])
    if question.family == "exist":
        return rng.choice(["yes", "no"])
    return str(rng.randrange(len(PLACES) + 1))
