"""One item of a data set, whatever form the data set has on disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

AnswerType = Literal["mcq", "letters", "yesno", "int", "float", "list", "text"]
"""How an answer is read: one option letter, a set of letters, yes or no, a number, a list, or words."""


@dataclass(frozen=True, slots=True)
class Item:
    """A question with its images and its right answer.

    Attributes:
        id: Its name, unique in the data set.
        where: The row or file it comes from, for messages.
        question: What is asked, without the options where the data set keeps them apart.
        images: Encoded images, in the order in which the question names them.
        answer: The right answer: a letter for "mcq", "A, C" for "letters", "Yes" or "No" for "yesno", and
            otherwise as the data set writes it. Empty where the data set does not publish it.
        answer_type: How answers are read.
        options: Texts by letter, in order; empty where there are none.
        inline: Whether the question already names its options, as some data sets write them.
        hint: What the data set says before the question.
        precision: Decimals of a "float" answer.
        unit: The unit of a number; empty for none.
        cluster: Items with the same cluster are not independent (one image, one figure).
        groups: What results are broken down by: category, skill; several values where several hold.
        row: The data set's own row without its images, for export.
        problem: Why it cannot be asked; empty where it can.
    """

    id: str
    where: str
    question: str
    images: tuple[Path | bytes, ...]
    answer: str
    answer_type: AnswerType
    options: Mapping[str, str] = field(default_factory=dict)
    inline: bool = False
    hint: str = ""
    precision: int | None = None
    unit: str = ""
    cluster: str = ""
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    row: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""

    @property
    def cluster_or_id(self) -> str:
        """What counts as one independent case: the item's cluster, or the item itself."""
        return self.cluster or self.id
