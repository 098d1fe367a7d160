"""Read a chain back: the values it states, in order, whoever worded it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from macr_local.tiny.scenes.chain import NOTHING, NUMBERS, Kind, Slot
from macr_local.tiny.scenes.scene import COLORS, DIGITS, PLACES, SHAPES, SIZES
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
    line = reference[-1].text(0).lstrip(".").strip()
    return [found.value for found in stated(text, language)] == values and text.rstrip().endswith(line)


def next_kind(text: str, reference: Sequence[Slot], language: Language = PLAIN) -> Kind | None:
    """The slot that comes next where a text breaks off, going by how many values it has stated.

    None behind the last one.
    """
    slots = [slot for slot in reference if slot.value and slot.kind != "answer"]
    number = len(stated(text, language))
    return slots[number].kind if number < len(slots) else None


@lru_cache
def _pattern(renamed: tuple[tuple[str, str], ...]) -> tuple[dict[str, str], re.Pattern[str]]:
    names = dict(renamed)
    words = {names.get(value, value): value for value in _VALUES}
    longest_first = sorted(words, key=len, reverse=True)
    return words, re.compile(r"\b(?:" + "|".join(map(re.escape, longest_first)) + r")\b")
