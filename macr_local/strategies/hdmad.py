"""Diverse multi-agent debate over different models (H-DMAD): three rounds, then a vote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from macr_local.relay.events import Event
from macr_local.strategies.answers import Gathering
from macr_local.strategies.case import Case
from macr_local.strategies.chain import WholeAnswer
from macr_local.strategies.plan import Brief
from macr_local.strategies.vote import PAPER, assigned, elect

ROUNDS = 3
"""As the debate's own code has it; the paper's token counts are 3.1 to 3.5 times its vote's."""


def run(case: Case) -> Iterator[Event]:
    """Members answer, each by its own method, read each other's latest answers, and answer again.

    Who answers how is `vote.PAPER`, so the first round is the vote's. In each later one a member is given the
    question, what it said itself in the round before, and what the others said, steps and answer; it is one
    turn with all of that in it, so the image's cells are read once. The last answers are counted as votes
    are. A member that fails has said its last word; one that is interrupted is counted with what it said in
    the round before.

    Raises:
        CapacityError: A prompt does not fit into a member's context.
        MacrError: The prompt cannot be put to a member, or all have failed (the last one's error).
    """
    gathering, planners = Gathering(case), assigned(case.members, PAPER)
    latest: dict[str, WholeAnswer] = {}
    told = {name: Brief(case.prompt, case.prompts) for name in planners}
    for number in range(1, ROUNDS + 1):
        plans = {name: planners[name](brief) for name, brief in told.items()}
        answers = yield from gathering.round(plans, f"round {number}" if number < ROUNDS else "")
        over = any(answer.interrupted or answer.started is None for answer in answers)
        latest |= {
            a.member: a for a in answers if a.member not in latest or (a.answered and not a.interrupted)
        }
        if over:
            break
        told = {
            answer.member: Brief(case.prompt, case.prompts, _context(case, answer.member, latest))
            for answer in answers
            if answer.answered is not None
        }
    in_order = [latest[member.name] for member in case.members if member.name in latest]
    yield from gathering.conclude(*elect(in_order))


def _context(case: Case, name: str, latest: Mapping[str, WholeAnswer]) -> str:
    others = [
        case.prompts.fill("hdmad.other", number=str(number), answer=_output(answer))
        for number, answer in enumerate((a for a in latest.values() if a.member != name), 1)
    ]
    own = _output(latest[name])
    question = case.prompt.question
    return case.prompts.fill("hdmad.context", question=question, own=own, others="\n".join(others))


def _output(answer: WholeAnswer) -> str:
    said = answer.answered.text.strip() if answer.answered is not None else ""
    return "\n".join(filter(None, [*answer.chain.said, said]))
