"""MathVista's own normalisation (its ``calculate_score.py``), with our reading in the place of GPT's."""

from __future__ import annotations

import re
from collections.abc import Sequence

from macr_local.evaluation.item import AnswerType, Item
from macr_local.evaluation.score import NOT_ITS, Score
from macr_local.evaluation.scoring.reading import cue, spoken

_LETTER = re.compile(r"\(([a-zA-Z])\)")


def score(item: Item, text: str) -> Score:
    """Judge an answer by the official rules after extraction; it says nothing about items of other data sets.

    Where the official program asks a language model what the result is, ours is the place that is marked as
    the result. An empty extraction is wrong, as with their option ``ignore_empty_extractions``.
    """
    if "answer_type" not in item.row:
        return Score(False, None, NOT_ITS)
    place = cue(spoken(text) or "")
    if place is None:
        return Score(False, None, "empty")
    choices = tuple(item.options.values())
    found = normalized(place.text, choices, item.answer_type, item.precision)
    wanted = item.options.get(item.answer, item.answer)
    return Score(found == wanted, found, place.rule if found is not None else f"{place.rule}-unread")


def normalized(
    extraction: str, choices: Sequence[str], answer_type: AnswerType, precision: int | None
) -> str | None:
    """An extracted result in the form of MathVista's answers.

    A choice is taken by its letter, or else the nearest by edit distance, the first of several; an integer is
    cut, not rounded (3.9 is 3); a float is rounded to the item's precision.

    Returns:
        None where a number cannot be read.
    """
    text = extraction.strip()
    if choices:
        marked = _LETTER.search(text)
        said = marked[1].upper() if marked else text
        by_letter = {chr(ord("A") + place): choice for place, choice in enumerate(choices)}
        return by_letter.get(said) or min(choices, key=lambda choice: distance(said, choice))
    try:
        if answer_type == "int":
            return str(int(float(text)))
        if answer_type == "float":
            return None if precision is None else str(round(float(text), precision))
    except (ValueError, OverflowError):
        return None
    return text


def distance(one: str, other: str) -> int:
    """Levenshtein's edit distance."""
    row = list(range(len(other) + 1))
    for number, left in enumerate(one, 1):
        above, row[0] = row[0], number
        for place, right in enumerate(other, 1):
            above, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, above + (left != right))
    return row[-1]
