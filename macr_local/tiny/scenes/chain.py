"""The worked answer to a question: what is where, what that means for the question, what follows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, get_args

from macr_local.tiny.scenes import wording
from macr_local.tiny.scenes.question import Attribute, Question, beside
from macr_local.tiny.scenes.scene import COLORS, DIGITS, PLACES, SHAPES, SIZES, Scene, Thing
from macr_local.tiny.scenes.wording import PLAIN, Language, Wordings

Kind = Literal[
    "frame", "place", "size", "color", "shape", "digit",
    "flag", "tally", "total", "most", "count", "verdict", "copy", "answer",
]  # fmt: skip
"""What a slot says. A frame is wording. Place, size, color, shape and digit are seen. The others follow from
what the text says by then: a flag (yes or no: is this asked for?), numbers that are worked out (tally, total,
most, count), a verdict (yes or no), a copy of an earlier value, the answer line."""
KINDS: tuple[Kind, ...] = get_args(Kind)

NUMBERS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
)  # fmt: skip
NOTHING = "nothing"
WORDS: dict[Kind, tuple[str, ...]] = {
    "size": SIZES,
    "color": COLORS,
    "shape": SHAPES,
    "digit": DIGITS,
    "tally": NUMBERS[:5],
    "count": NUMBERS[:5],
    "most": DIGITS,
    "total": NUMBERS,
}
"""The values that may stand in a slot of a kind."""

Say = Callable[[Kind, str, int], str]
"""What is written at a value slot, given its kind, what is right there by the text so far, and its number."""

_LOOKED_AT: dict[str, tuple[Attribute, ...]] = {
    "row": ("color", "shape", "digit"),
    "side": ("color", "shape"),
    "compare": ("color", "shape"),
    "largest": ("digit", "color", "shape"),
}
"""The attributes that a family describes; the others describe those that the question names."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One step of a chain: worded by each style in its own way, or the same for all."""

    kind: Kind
    wordings: tuple[str, ...]
    value: str = ""
    """The word that the slot is about, as it was said; empty in a frame."""

    def text(self, style: int) -> str:
        """The slot in one style."""
        return self.wordings[style] if len(self.wordings) > 1 else self.wordings[0]


def right(kind: Kind, word: str, number: int) -> str:
    """Say what is right: the reference chain."""
    return word


def chain(scene: Scene, question: Question, say: Say = right, language: Language = PLAIN) -> list[Slot]:
    """Work through a scene.

    Args:
        scene: The truth.
        question: The question.
        say: What is written at each value; what comes later follows from what was written.
        language: The words.
    """
    return _Writer(scene, question, say, language).write()


def write(slots: list[Slot], style: int) -> str:
    """A whole chain in one style."""
    return "".join(slot.text(style) for slot in slots)


def answer(scene: Scene, question: Question, language: Language = PLAIN) -> str:
    """The right answer."""
    return chain(scene, question, language=language)[-1].value


class _Writer:
    """Writes one chain, and keeps what it has said."""

    def __init__(self, scene: Scene, question: Question, say: Say, language: Language) -> None:
        self.scene, self.question, self.say, self.language = scene, question, say, language
        self.slots: list[Slot] = []
        self.said: dict[int, Thing] = {}
        self.tally = [0, 0]
        self.total = self.most = self.matches = 0
        self.found: int | None = None
        """Where the first thing is that fits."""

    def write(self) -> list[Slot]:
        for place in self.question.places or range(len(PLACES)):
            thing = self.scene[place]
            if thing is not None:
                self.describe(place, thing)
                self.judge(place)
                self.frame(wording.STOP)
        self.conclude()
        return self.slots

    # Slots.

    def frame(self, wordings: Wordings) -> None:
        if any(wordings):
            self.slots.append(Slot("frame", wordings))

    def value(self, kind: Kind, word: str) -> str:
        said = self.say(kind, word, len(self.slots))
        self.slots.append(Slot(kind, (f" {self.language.word(said)}",), said))
        return said

    def number(self, kind: Kind, number: int) -> int:
        return NUMBERS.index(self.value(kind, NUMBERS[min(number, len(NUMBERS) - 1)]))

    def place(self, place: int) -> None:
        name = PLACES[place]
        self.slots.append(Slot("place", wording.place(name, first=not self.slots), name))

    # A place.

    def describe(self, place: int, thing: Thing) -> None:
        self.place(place)
        self.said[place] = thing
        for number, attribute in enumerate(self.looked_at):
            self.attribute(place, attribute, later=number > 0)

    @property
    def looked_at(self) -> tuple[Attribute, ...]:
        return _LOOKED_AT.get(self.question.family) or self.question.first.attributes

    def attribute(self, place: int, attribute: Attribute, *, later: bool) -> None:
        if not self.language.close:
            self.frame((wording.LATER if later else wording.FIRST)[attribute])
        said = self.value(attribute, getattr(self.said[place], attribute))
        self.said[place] = replace(self.said[place], **{attribute: said})

    def judge(self, place: int) -> None:
        thing, family = self.said[place], self.question.family
        fits = self.question.first.fits(thing)
        if family in ("count", "exist", "none", "side", "sum"):
            self.frame(wording.FLAG)
            if self.value("flag", "yes" if fits else "no") == "yes":
                self.matches += 1
                self.found = place if self.found is None else self.found
                if family == "sum":
                    self.add(place)
        elif family == "compare":
            self.frame(wording.TALLY)
            self.tally[0] = self.number("tally", self.tally[0] + fits)
            self.frame(wording.TO)
            self.tally[1] = self.number("tally", self.tally[1] + self.question.second.fits(thing))
        elif family == "largest":
            self.frame(wording.MOST)
            self.most = self.number("most", max(self.most, self.digit(place)))

    def add(self, place: int) -> None:
        self.attribute(place, "digit", later=True)
        self.frame(wording.TOTAL)
        self.total = self.number("total", self.total + self.digit(place))

    def digit(self, place: int) -> int:
        return 1 + DIGITS.index(self.said[place].digit)

    # What follows.

    def conclude(self) -> None:
        family = self.question.family
        if family == "row":
            self.end(", ".join(f"{t.color} {t.shape} {t.digit}" for t in self.said.values()) or NOTHING)
            return
        if family == "side":
            self.look_beside()
            return
        self.frame(wording.THEREFORE)
        if family == "count":
            self.end(self.value("count", NUMBERS[self.matches]))
        elif family == "sum":
            self.end(self.value("copy", NUMBERS[self.total]))
        elif family == "largest":
            most = NUMBERS[self.most]
            thing = max(self.said.values(), key=lambda t: (t.digit == most, DIGITS.index(t.digit)))
            self.value("copy", thing.digit)
            self.frame(wording.LATER["color"])
            color = self.value("copy", thing.color)
            self.frame(wording.LATER["shape"])
            self.end(f"{color} {self.value('copy', thing.shape)}")
        else:
            holds = self.tally[0] > self.tally[1] if family == "compare" else self.matches > 0
            self.end(self.value("verdict", "yes" if holds != (family == "none") else "no"))

    def look_beside(self) -> None:
        question = self.question
        there = None if self.found is None else beside(self.found, question.side)
        thing = None if there is None else self.said.get(there)
        self.frame(wording.BESIDE[question.side])
        if there is not None:
            self.value("place", PLACES[there])
        if thing is not None:
            self.frame(wording.LATER[question.asked])
        self.end(self.value("copy", NOTHING if thing is None else getattr(thing, question.asked)))

    def end(self, value: str) -> None:
        said = " ".join(self.language.word(word) for word in value.split(" "))
        stop = "" if self.question.family == "row" else "."
        self.slots.append(Slot("answer", (f"{stop}\nAnswer: {said}",), value))
