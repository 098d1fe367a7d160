"""HallusionBench's three accuracies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

GROUPS = ("figure", "question")
"""Groups of an item that name its figure and its question: "VD_illusion_0_1"."""


@dataclass(frozen=True, slots=True)
class Ratings:
    """Shares of right answers, from 0 to 1.

    Attributes:
        all: Of questions (aAcc).
        figures: Of figures of which every question is right (fAcc).
        questions: Of questions that are right about each of their figures (qAcc).
    """

    all: float
    figures: float
    questions: float

    @property
    def average(self) -> float:
        """The mean of the three, which leaderboards show."""
        return (self.all + self.figures + self.questions) / 3


def ratings(answers: Iterable[tuple[Mapping[str, tuple[str, ...]], bool]]) -> Ratings | None:
    """Rate answers of one seed.

    Args:
        answers: The groups of each item, and whether its answer is right. Figures and questions are told
            apart by both levels of category, so that VD_ocr and VS_ocr stay two.

    Returns:
        None where items are not HallusionBench's, or there is none.
    """
    right: list[bool] = []
    grouped: dict[str, dict[str, bool]] = {group: {} for group in GROUPS}
    for groups, holds in answers:
        if any(group not in groups for group in GROUPS):
            return None
        right.append(holds)
        for group, held in grouped.items():
            name = groups[group][0]
            held[name] = held.get(name, True) and holds
    if not right:
        return None
    figures, questions = (sum(held.values()) / len(held) for held in grouped.values())
    return Ratings(sum(right) / len(right), figures, questions)
