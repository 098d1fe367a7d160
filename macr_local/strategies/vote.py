"""Majority vote: every member answers alone, and the answer that most of them give is taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from macr_local.relay.events import Chosen, Event
from macr_local.strategies.answers import WholeAnswer, answer_all, conclude, sound
from macr_local.strategies.case import Case


def run(case: Case) -> Iterator[Event]:
    """Answer with the first member, in pool order, that says what most say.

    Answers are compared in the form of `final.final`; one that says nothing abstains. A tie goes to the
    member that comes first in the pool; the paper does not say how it settles one.

    Raises:
        CapacityError: The prompt does not fit into a member's context; nothing was decoded.
        MacrError: The prompt cannot be put to a member, or all have failed (the last one's error).
    """
    answers = yield from answer_all(case)
    electable = sound(answers)
    votes: Counter[str | None] = Counter(filter(None, map(_said, electable)))
    elected = max(electable, key=lambda answer: votes[_said(answer)])  # the first of equals
    most = votes[_said(elected)]
    tied = list(votes.values()).count(most) > 1
    yield from conclude(answers, elected, Chosen(elected.member, len(electable), most, tied))


def _said(answer: WholeAnswer) -> str | None:
    return answer.answered.final if answer.answered is not None else None
