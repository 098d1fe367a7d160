"""Majority vote: every member answers alone, and the answer that most of them give is taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from macr_local.relay.events import Event
from macr_local.strategies.answers import WholeAnswer, answer_all, conclude, sound
from macr_local.strategies.case import Case


def run(case: Case) -> Iterator[Event]:
    """Answer with the first member, in pool order, that says what most say.

    Answers are compared in the form of `final.final`; one that says nothing abstains. A tie goes to the
    member that comes first in the pool; the paper does not say how it settles one.

    Raises:
        MacrError: The prompt cannot be put to a member, or all have failed (the last one's error).
    """
    answers = yield from answer_all(case)
    elected, note = elect(sound(answers))
    yield from conclude(answers, elected, note)


def elect(answers: Sequence[WholeAnswer]) -> tuple[WholeAnswer, str]:
    """The first answer that says what most say, and how many do."""
    said = [answer.answered.final if answer.answered is not None else None for answer in answers]
    votes = Counter(final for final in said if final is not None)
    if not votes:
        return answers[0], "vote: nobody answered"
    most = max(votes.values())
    tied = [final for final, count in votes.items() if count == most]
    how = f"vote: {most} of {len(answers)}"
    return answers[said.index(tied[0])], how if len(tied) == 1 else f"{how}, tied; the first member decides"
