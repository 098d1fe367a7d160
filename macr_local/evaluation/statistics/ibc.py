"""Incremental benefit per cost: what a method gains over one model's plain answers, for each token more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Average = Literal["paper", "mean", "pooled"]


@dataclass(frozen=True, slots=True)
class Point:
    """One row of a table.

    Attributes:
        accuracy: In percent.
        tokens: Tokens of an answer.
    """

    accuracy: float
    tokens: float


def ibc(point: Point, base: Point) -> float | None:
    """Percentage points gained, as a share of 1, by tokens more, in 1e-6 (Table 1's definition).

    Returns:
        None where the method takes no more tokens than its base: a slope would say nothing, or its opposite.
    """
    more = point.tokens - base.tokens
    return (point.accuracy - base.accuracy) / 100 / more * 1e6 if more > 0 else None


def ibc_of_pool(point: Point, bases: Sequence[Point], average: Average = "paper") -> float | None:
    """A method of several models against each model's plain answers.

    Args:
        point: The method.
        bases: Each model's plain answers.
        average: "paper": each model's value is rounded to two decimals before the mean, which is what gives
            the paper's printed values, all twelve; "mean" does not round; "pooled" is the mean gain by the
            mean of tokens more.

    Returns:
        None where a part of it is not defined, or there is no base.
    """
    if not bases:
        return None
    if average == "pooled":
        count = len(bases)
        mean = Point(sum(b.accuracy for b in bases) / count, sum(b.tokens for b in bases) / count)
        return ibc(point, mean)
    each = [ibc(point, base) for base in bases]
    known = [value for value in each if value is not None]
    if len(known) < len(each):
        return None
    return sum(round(value, 2) if average == "paper" else value for value in known) / len(known)


def standing(point: Point, bases: Sequence[Point]) -> str:
    """How a method stands to its bases where `ibc` is not defined: "dominates", "dominated" or ""."""
    if bases and all(point.tokens <= b.tokens and point.accuracy >= b.accuracy for b in bases):
        return "dominates"
    if bases and all(point.tokens >= b.tokens and point.accuracy <= b.accuracy for b in bases):
        return "dominated"
    return ""
