"""Read a chain back: the values it states, in order, whoever worded it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from macr_local.tiny.scenes.chain import NOTHING, NUMBERS, WORDS, Kind, Say, Slot, chain
from macr_local.tiny.scenes.question import Question
from macr_local.tiny.scenes.scene import COLORS, DIGITS, PLACES, SHAPES, SIZES, Scene
from macr_local.tiny.scenes.wording import PLAIN, Language

_VALUES = (*PLACES, *SIZES, *COLORS, *SHAPES, *NUMBERS, *DIGITS, "yes", "no", NOTHING)


@dataclass(frozen=True, slots=True)
class Stated:
    """A value in a text, and where it stands."""

    value: str
    start: int
    end: int


def stated(text: str, language: Language = PLAIN) -> list[Stated]:
    """The values that a text states, in order, up to the answer line."""
    body = text.partition("\nAnswer:")[0]
    words, pattern = _pattern(tuple(sorted(language.words.items())))
    return [Stated(words[m.group()], m.start(), m.end()) for m in pattern.finditer(body)]


def agrees(text: str, reference: Sequence[Slot], language: Language = PLAIN) -> bool:
    """Whether a text states exactly what a reference chain does, its answer included."""
    values = [slot.value for slot in reference if slot.value and slot.kind != "answer"]
    answer = reference[-1].text(0).partition("Answer:")[2]
    given = text.partition("\nAnswer:")[2]
    return [found.value for found in stated(text, language)] == values and given.strip() == answer.strip()


@dataclass(frozen=True, slots=True)
class Reading:
    """A text, followed step by step."""

    values: tuple[tuple[Stated, Kind], ...]
    """The values it states, each with the kind of slot it stands in, as far as the text is a chain."""
    following: Kind | None
    """The slot that comes next; None behind the last one, and where the text is a chain no more."""


def follow(text: str, scene: Scene, question: Question, language: Language = PLAIN) -> Reading:
    """Follow the beginning of a chain, right or wrong: what comes next depends on what was stated.

    After a wrong "yes", say, a sum goes on with a digit where the reference chain goes on with a place.
    """
    wrong: dict[int, str] = {}

    def say(kind: Kind, word: str, number: int) -> str:
        return wrong.get(number, word)

    slots, steps = _steps(scene, question, say, language)
    values: list[tuple[Stated, Kind]] = []
    for found in stated(text, language):
        number = steps[len(values)] if len(values) < len(steps) else None
        if number is None or not _may_stand(found.value, slots[number]):
            return Reading(tuple(values), None)
        values.append((found, slots[number].kind))
        if slots[number].value != found.value:
            wrong[number] = found.value
            slots, steps = _steps(scene, question, say, language)
    return Reading(tuple(values), slots[steps[len(values)]].kind if len(values) < len(steps) else None)


def _steps(scene: Scene, question: Question, say: Say, language: Language) -> tuple[list[Slot], list[int]]:
    """A chain, and where in it values are stated."""
    slots = chain(scene, question, say, language)
    return slots, [n for n, slot in enumerate(slots) if slot.value and slot.kind != "answer"]


def _may_stand(value: str, slot: Slot) -> bool:
    """Whether a chain can go on from a value in place of the right one."""
    if slot.kind == "place":
        return value == slot.value
    if slot.kind in ("flag", "verdict"):
        return value in ("yes", "no")
    # Whoever is wrong about one number may work out another that no right chain has.
    words = NUMBERS if slot.kind in ("tally", "total", "most", "count") else WORDS.get(slot.kind)
    return words is None or value in words


@lru_cache
def _pattern(renamed: tuple[tuple[str, str], ...]) -> tuple[dict[str, str], re.Pattern[str]]:
    names = dict(renamed)
    words = {names.get(value, value): value for value in _VALUES}
    longest_first = sorted(words, key=len, reverse=True)
    return words, re.compile(r"\b(?:" + "|".join(map(re.escape, longest_first)) + r")\b")
