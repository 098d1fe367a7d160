"""Reading answers as VLMEvalKit does when it has no judge.

The rules are those of `can_infer` and `YOrN_Extraction` at commit e8e78f05 (2026-08), oddities included: this
exists so that a table can be compared with theirs, not because it reads well. Every rule is held against
results of their own functions in tests/evaluation/vlmevalkit.json.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from macr_local.evaluation.item import Item
from macr_local.evaluation.score import NEEDS_JUDGE, Score

_REFUSALS = (
    "Sorry, I can't help with images of people yet.",
    "I can't process this file.",
    "I'm sorry, but without the image provided",
    "Cannot determine the answer",
)
_BLANKED = str.maketrans(dict.fromkeys(".()[],:;!*#{}", " "))
_TAIL = 5
_PHRASE = re.compile(r"answer\s+is\s+\**([ABCD])", re.IGNORECASE)
_PUNCTUATION = (*';/[]"{}()=+\\_-><@`,?!',)
_GROUPED = re.compile(r"\d,\d")
_STOP = re.compile(r"(?<!\d)\.(?!\d)")
_STOPS = int(re.UNICODE)
"""How many stops are removed: a flag that stands where a count belongs, in the code that is followed."""


def option(answer: str, choices: Mapping[str, str]) -> tuple[str | None, str]:
    """The option that an answer names, and the rule that found it; "Z" stands for a refusal.

    Args:
        answer: What a member said.
        choices: Texts by capital letter.
    """
    if "Failed to obtain answer via API" not in answer:
        letter, rule = _letter(answer, choices)
        if letter is not None:
            return letter, rule
    return _text(answer, choices)


def yes_or_no(answer: str) -> Literal["Yes", "No"] | None:
    """Yes or No, where exactly one of the two stands among the words of an answer."""
    words = _unpunctuated(answer.lower()).split()
    if ("yes" in words) == ("no" in words):
        return None
    return "Yes" if "yes" in words else "No"


def score(item: Item, text: str) -> Score:
    """Judge an answer as that harness would without a judge.

    MathVista is read by its prefetch step alone, LogicVista and open questions not at all: there that harness
    itself refuses to score without a judge (rule "needs-judge").
    """
    if item.answer_type == "mcq" and item.options:
        letter, rule = option(text, item.options)
        return Score(letter == item.answer, letter, rule)
    if item.answer_type == "yesno":
        said = yes_or_no(text)
        return Score(said == item.answer, said, "word" if said else "unknown")
    if item.answer_type in ("int", "float"):
        return _number(item, text)
    if item.row.get("question_type") == "open":  # MMMU's
        letter, rule = option(text, {"A": item.answer, "B": "Other Answers"})
        return Score(letter == "A", letter, rule)
    return Score(False, None, NEEDS_JUDGE)


def _letter(answer: str, choices: Mapping[str, str]) -> tuple[str | None, str]:
    if any(refusal in answer for refusal in _REFUSALS):
        return "Z", "refusal"
    words = answer.translate(_BLANKED).split()
    named = [letter for letter in choices if letter in words]
    if len(named) == 1 and words.index(named[0]) > len(words) - _TAIL:
        return named[0], "letter"
    if not named and "Z" in words:
        return "Z", "letter"
    phrase = _PHRASE.search(answer)
    if phrase and phrase[1].upper() in choices:
        return phrase[1].upper(), "answer-is"
    return None, "unknown"


def _text(answer: str, choices: Mapping[str, str]) -> tuple[str | None, str]:
    if len(answer.lower()) > 2 * sum(map(len, choices.values())):
        return None, "unknown"
    named = [letter for letter, text in choices.items() if text.lower() in answer.lower()]
    return (named[0], "option-text") if len(named) == 1 else (None, "unknown")


def _number(item: Item, text: str) -> Score:
    kind = int if item.answer_type == "int" else float
    try:
        said, wanted = kind(text), kind(item.answer)
    except ValueError:
        return Score(False, None, "unknown")
    # A zero reads as "nothing found" there, and goes to the judge.
    return Score(said == wanted, str(said), "number") if said else Score(False, None, "unknown")


def _unpunctuated(text: str) -> str:
    grouped = _GROUPED.search(text) is not None
    found = text
    for mark in _PUNCTUATION:
        beside_blank = f"{mark} " in text or f" {mark}" in text
        found = found.replace(mark, "" if beside_blank or grouped else " ")
    return _STOP.sub("", found, count=_STOPS)
