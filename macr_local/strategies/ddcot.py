"""Duty-distinct chain of thought (DDCoT): smaller questions first, then the answer with them."""

from __future__ import annotations

import re

from macr_local.strategies.plan import Brief, Plan, Step

MOST = 10
"""Smaller questions that the original's second part looks at; a member that repeats itself writes no end."""
_LINE = re.compile(r"^\W*([QA])\s*(\d{1,3})\W+(.*\S)", re.MULTILINE | re.IGNORECASE)
_UNCERTAIN = re.compile(
    r"uncertain|insufficient|(cannot|can't|not) be (determined|known)|not (provided|possible)|unknown", re.I
)


def plan(brief: Brief) -> Plan:
    """Two calls, the image in both: the form for multimodal models, which the paper's token counts fit."""
    steps = yield Step("sub-questions", brief.say("ddcot.steps"))
    return brief.ask("ddcot.answer", steps=steps)


def original(brief: Brief) -> Plan:
    """The original: a split without the image, a look at it for what is uncertain, then all together."""
    split = yield Step("sub-questions", brief.say("ddcot-original.split", images=False))
    known = []
    for number, (question, answer) in enumerate(pairs(split)[:MOST], 1):
        if is_uncertain(answer):
            answer = yield Step(f"sub-question {number}", brief.say("ddcot-original.look", step=question))
        known.append(f"Q{number}: {question}\nA{number}: {answer.strip()}")
    return brief.ask("ddcot-original.answer", steps="\n".join(known) or split)


def pairs(text: str) -> list[tuple[str, str]]:
    """Questions and answers of lines "Q1: ..." and "A1: ..."; an answer that is missing is empty."""
    found: dict[str, dict[str, str]] = {"Q": {}, "A": {}}
    for kind, number, said in _LINE.findall(text):
        found[kind.upper()].setdefault(number, said)
    return [(question, found["A"].get(number, "")) for number, question in found["Q"].items()]


def is_uncertain(answer: str) -> bool:
    """Whether an answer has to be looked up in the image."""
    return not answer.strip() or bool(_UNCERTAIN.search(answer))
