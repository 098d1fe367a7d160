"""The world as it is, and as it might be: switches that take away what makes the relay's life easy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from macr_local.errors import ConfigError
from macr_local.tiny.scenes.knowledge import BLIND, Blindness
from macr_local.tiny.scenes.wording import PLAIN, Language

Ignorance = Literal["uniform", "fixed"]
_LONG_WORDS = {
    "red": "vermilion",
    "green": "chartreuse",
    "blue": "ultramarine",
    "yellow": "mustard",
    "purple": "violaceous",
    "white": "alabaster",
    "circle": "roundel",
    "square": "quadrate",
    "triangle": "trigon",
    "cross": "saltire",
}
"""Words that stay in two parts in every vocabulary: no piece of another word bridges a cut."""


@dataclass(frozen=True, slots=True)
class Variant:
    """What members are blind to, and how.

    Attributes:
        blind: What each member is blind to.
        ignorance: "uniform": a word for what it is blind to is drawn anew each time, which teaches it to be
            unsure; "fixed": it is always the same word, which teaches it to be sure and wrong.
        noise: How often it is told such a word instead of the truth.
        handover: Whether members learn to go on from words that others wrote.
        language: The words.
    """

    blind: Blindness
    ignorance: Ignorance = "uniform"
    noise: float = 1.0
    handover: bool = True
    language: Language = PLAIN


_ONE_EACH: Blindness = {
    "qwen3vl": frozenset({"color"}),
    "internvl": frozenset({"number"}),
    "minicpmv": frozenset({"shape"}),
}
_NOBODY: Blindness = dict.fromkeys(BLIND, frozenset())

VARIANTS: Mapping[str, Variant] = {
    "friendly": Variant(BLIND),
    "overconfident": Variant(BLIND, ignorance="fixed"),
    "noise-25": Variant(BLIND, noise=0.25),
    "noise-50": Variant(BLIND, noise=0.5),
    "noise-75": Variant(BLIND, noise=0.75),
    "close": Variant(BLIND, language=Language(close=True)),
    "long-words": Variant(BLIND, language=Language(words=_LONG_WORDS)),
    "no-handover": Variant(BLIND, handover=False),
    "one-each": Variant(_ONE_EACH),
    "all-good": Variant(_NOBODY),
}


def variant(name: str) -> Variant:
    """The variant of that name.

    Raises:
        ConfigError: There is none.
    """
    if name not in VARIANTS:
        raise ConfigError(f'There is no variant "{name}"', f"Use one of {', '.join(VARIANTS)}")
    return VARIANTS[name]
