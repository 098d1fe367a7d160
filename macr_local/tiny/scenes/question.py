"""Questions about a scene, in eight families."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Literal, get_args

from macr_local.tiny.scenes.scene import COLORS, DIGITS, SHAPES, SIZES, Scene, Thing, random_thing

Family = Literal["count", "exist", "none", "row", "compare", "side", "sum", "largest"]
FAMILIES: tuple[Family, ...] = get_args(Family)
Attribute = Literal["size", "color", "shape", "digit"]
VALUES: dict[Attribute, tuple[str, ...]] = {
    "size": SIZES,
    "color": COLORS,
    "shape": SHAPES,
    "digit": DIGITS,
}
ROWS: dict[str, tuple[int, ...]] = {
    "top row": (0, 1),
    "bottom row": (2, 3),
    "left column": (0, 2),
    "right column": (1, 3),
}
SIDES = ("left", "right", "above", "below")
_COUNTED: tuple[tuple[Attribute, ...], ...] = (
    ("color", "shape"),
    ("color", "shape"),
    ("color", "shape"),
    ("color",),
    ("shape",),
    ("size", "color"),
    ("size", "shape"),
)
"""What "count" asks for, each as often."""
P_SOME = 0.5
"""How often "count" and "sum" leave out filters that nothing fits, beyond what an even draw does."""
_PLURAL = {"circle": "circles", "square": "squares", "triangle": "triangles", "cross": "crosses"}


@dataclass(frozen=True, slots=True)
class Filter:
    """What a question asks for: things with these attributes; None takes any."""

    size: str | None = None
    color: str | None = None
    shape: str | None = None

    def fits(self, thing: Thing) -> bool:
        """Whether a thing is among what is asked for."""
        return (
            self.size in (None, thing.size)
            and self.color in (None, thing.color)
            and self.shape in (None, thing.shape)
        )

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The attributes that it names, in the order in which a chain looks at them."""
        named: tuple[tuple[Attribute, str | None], ...] = (
            ("size", self.size),
            ("color", self.color),
            ("shape", self.shape),
        )
        return tuple(attribute for attribute, value in named if value is not None)

    def named(self, *, plural: bool) -> str:
        """In words: "large red circles", "a blue object"."""
        noun = self.shape or "object"
        if plural:
            noun = _PLURAL.get(noun, "objects")
        return " ".join(word for word in (self.size, self.color, noun) if word)


ANYTHING = Filter()


@dataclass(frozen=True, slots=True)
class Question:
    """A question, in words and in parts.

    Attributes:
        family: What kind of question it is.
        text: What is asked.
        first: What to look for.
        second: In "compare", what to compare it with.
        places: In "row", the places that are asked for.
        side: In "side", one of `SIDES`.
        asked: In "side", the attribute that is asked for: color or shape.
    """

    family: Family
    text: str
    first: Filter = ANYTHING
    second: Filter = ANYTHING
    places: tuple[int, ...] = ()
    side: str = ""
    asked: Attribute = "color"


def beside(place: int, side: str) -> int | None:
    """The place on one side of another; None outside the image."""
    row, column = divmod(place, 2)
    row += (side == "below") - (side == "above")
    column += (side == "right") - (side == "left")
    return 2 * row + column if row in (0, 1) and column in (0, 1) else None


def ask(scene: Scene, family: Family, rng: Random) -> Question | None:
    """A question of a family about a scene.

    Returns:
        None where the scene has no such question: no place beside a thing that can be named by one attribute,
        or no largest digit.
    """
    things = [thing for thing in scene if thing is not None]
    if family == "count":
        return _count(things, rng)
    if family in ("exist", "none"):
        return _exist(family, things, rng)
    if family == "row":
        name = rng.choice(list(ROWS))
        return Question(family, f"what is in the {name}?", places=ROWS[name])
    if family == "compare":
        return _compare(things, rng)
    if family == "side":
        return _side(scene, rng)
    if family == "sum":
        sought = _evenly([Filter(color=c) for c in COLORS] + [Filter(shape=s) for s in SHAPES], things, rng)
        text = f"what is the sum of the digits on the {sought.named(plural=True)}?"
        return Question(family, text, sought)
    digits = [DIGITS.index(thing.digit) for thing in things]
    if digits.count(max(digits)) > 1:
        return None
    return Question(family, "which object has the largest digit?")


def _count(things: Sequence[Thing], rng: Random) -> Question:
    named = rng.choice(_COUNTED)
    values = product(*(VALUES[attribute] for attribute in named))
    filters = [Filter(**dict(zip(named, words, strict=True))) for words in values]
    sought = _evenly(filters, things, rng)
    return Question("count", f"how many {sought.named(plural=True)} are there?", sought)


def _evenly(filters: Sequence[Filter], things: Sequence[Thing], rng: Random) -> Filter:
    """One of the filters, such that no number of things that fit is much likelier than another."""
    by_number: dict[int, list[Filter]] = {}
    for sought in filters:
        by_number.setdefault(sum(map(sought.fits, things)), []).append(sought)
    if len(by_number) > 1 and rng.random() < P_SOME:
        by_number.pop(0, None)
    return rng.choice(by_number[rng.choice(list(by_number))])


def _exist(family: Family, things: Sequence[Thing], rng: Random) -> Question:
    thing = rng.choice(things)
    if rng.random() < 0.5:
        thing = _near_miss(things, rng)
    sought = Filter(color=thing.color, shape=thing.shape)
    article = "no" if family == "none" else "a"
    return Question(family, f"is there {article} {sought.named(plural=False)}?", sought)


def _near_miss(things: Sequence[Thing], rng: Random) -> Thing:
    """A thing that is not there, and shares an attribute with one that is (most often)."""
    while True:
        thing, other = rng.choice(things), random_thing(rng)
        if rng.random() < 0.5:
            near = Thing(thing.size, thing.color, other.shape, thing.digit)
        else:
            near = Thing(thing.size, other.color, thing.shape, thing.digit)
        if all((near.color, near.shape) != (one.color, one.shape) for one in things):
            return near


def _compare(things: Sequence[Thing], rng: Random) -> Question:
    """More of a color than of a shape, or of a shape than of a color; as often as not it is so."""
    colors, shapes = [Filter(color=c) for c in COLORS], [Filter(shape=s) for s in SHAPES]
    pairs = [*product(colors, shapes), *product(shapes, colors)]
    number = {sought: sum(map(sought.fits, things)) for sought in (*colors, *shapes)}
    more = rng.random() < 0.5
    # Pairs of which nothing is there have an answer that needs no look.
    fair = [(a, b) for a, b in pairs if number[a] + number[b] > 0 and (number[a] > number[b]) == more]
    close = [(a, b) for a, b in fair if number[b] > 0 and number[a] > 0] or fair
    first, second = rng.choice(close if rng.random() < 0.6 else fair)
    text = f"are there more {first.named(plural=True)} than {second.named(plural=True)}?"
    return Question("compare", text, first, second)


def _side(scene: Scene, rng: Random) -> Question | None:
    choices: list[tuple[Filter, str, Attribute]] = []
    for place, thing in enumerate(scene):
        if thing is None:
            continue
        others = [other for other in scene if other is not None and other is not thing]
        anchors: list[tuple[Filter, Attribute]] = []
        if all(other.color != thing.color for other in others):
            anchors.append((Filter(color=thing.color), "shape"))
        if all(other.shape != thing.shape for other in others):
            anchors.append((Filter(shape=thing.shape), "color"))
        for side in SIDES:
            there = beside(place, side)
            # A neighbour that is there is asked for more often than an empty place.
            if there is not None and (scene[there] is not None or rng.random() < 0.2):
                choices += [(anchor, side, asked) for anchor, asked in anchors]
    if not choices:
        return None
    anchor, side, asked = rng.choice(choices)
    where = f"{side} of" if side in ("left", "right") else side
    text = f"what {asked} is {where} the {anchor.named(plural=False)}?"
    return Question("side", text, anchor, side=side, asked=asked)
