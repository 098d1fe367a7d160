"""What a scorer says about one answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Scorer = Literal["strict", "compat:vlmevalkit", "compat:mathvista"]
SCORERS: tuple[Scorer, ...] = get_args(Scorer)
NEEDS_JUDGE = "needs-judge"
"""The rule of an answer that a scorer cannot read without a language model as a judge."""
NO_LABEL = "no-label"
"""The rule of an answer to which no right one is published."""
NOT_ITS = "another-data-set"
"""The rule of a scorer made for one data set, of an answer to a question of another."""
UNSCORED = (NEEDS_JUDGE, NO_LABEL, NOT_ITS)
"""Rules of answers that a scorer says nothing about: they are neither right nor wrong."""


@dataclass(frozen=True, slots=True)
class Score:
    """One answer, judged.

    Attributes:
        right: Whether it is right. An answer in which nothing was found is wrong, never guessed.
        found: What was read from it, in the form of the data set's answers; None where nothing was.
        rule: The name of the rule that found it, or of the reason why none did.
    """

    right: bool
    found: str | None
    rule: str
