"""What a scorer says about one answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Scorer = Literal["strict", "compat:vlmevalkit"]
SCORERS: tuple[Scorer, ...] = ("strict", "compat:vlmevalkit")


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
