"""Majority vote: every member answers alone, and the answer that most of them give is taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from macr_local.protocol import Member
from macr_local.relay.events import Chosen, Event
from macr_local.strategies import ccot, cot, ddcot
from macr_local.strategies.answers import Gathering, sound
from macr_local.strategies.case import Case
from macr_local.strategies.chain import WholeAnswer
from macr_local.strategies.plan import Brief, Planner, io

PAPER: tuple[Planner, ...] = (ccot.plan, ddcot.plan, io)
"""Who answers how in the paper's Table 1, whose token counts only this assignment explains: Qwen3-VL by CCoT,
InternVL3.5 by DDCoT, MiniCPM-V by IO; that is its pool's order. A larger pool begins again."""


def run(case: Case) -> Iterator[Event]:
    """Every member is asked the question alone; see `elect` for what follows.

    Raises:
        CapacityError: The prompt does not fit into a member's context; nothing was decoded.
        MacrError: The prompt cannot be put to a member, or all have failed (the last one's error).
    """
    return _run(case, (io,))


def run_cot(case: Case) -> Iterator[Event]:
    """Every member is asked for a chain of thought; otherwise as `run`."""
    return _run(case, (cot.plan,))


def run_paper(case: Case) -> Iterator[Event]:
    """Each member answers by a method of its own (`PAPER`): the paper's "MV". Otherwise as `run`."""
    return _run(case, PAPER)


def assigned(members: Sequence[Member], planners: Sequence[Planner]) -> Mapping[str, Planner]:
    """Each member's method: in pool order, from the beginning again where there are more members."""
    return {member.name: planners[place % len(planners)] for place, member in enumerate(members)}


def elect(answers: Sequence[WholeAnswer]) -> tuple[WholeAnswer, Chosen]:
    """The first answer, in pool order, that says what most say.

    Answers are compared in the form of `final.final`; one that says nothing abstains. A tie goes to the
    member that comes first in the pool; the paper does not say how it settles one.
    """
    electable = sound(answers)
    votes: Counter[str | None] = Counter(filter(None, map(_said, electable)))
    elected = max(electable, key=lambda answer: votes[_said(answer)])  # the first of equals
    most = votes[_said(elected)]
    tied = list(votes.values()).count(most) > 1
    return elected, Chosen(elected.member, len(electable), most, tied)


def _run(case: Case, planners: Sequence[Planner]) -> Iterator[Event]:
    gathering, brief = Gathering(case), Brief(case.prompt, case.prompts)
    plans = {name: planner(brief) for name, planner in assigned(case.members, planners).items()}
    answers = yield from gathering.round(plans)
    yield from gathering.conclude(*elect(answers))


def _said(answer: WholeAnswer) -> str | None:
    return answer.answered.final if answer.answered is not None else None
