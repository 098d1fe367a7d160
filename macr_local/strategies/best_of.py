"""Best of all: every member answers alone, and the answer with the highest calibrated confidence is taken."""

from __future__ import annotations

from collections.abc import Iterator

from macr_local.relay.events import Chosen, Event
from macr_local.strategies.answers import answer_all, sound
from macr_local.strategies.case import Case
from macr_local.strategies.chain import WholeAnswer


def run(case: Case) -> Iterator[Event]:
    """Answer with the member whose whole answer has the highest z; on a tie the first in the pool.

    It asks whether confidence inside one chain is worth more than confidence about finished ones. The z of an
    answer is its mean log-probability over all tokens (Eq. 1 with w = its length), standardised with the
    member's mu and sigma. Those were measured on windows of `RelaySettings.judged` tokens, not on whole
    answers, whose means vary less. So this z compares members, each by its own measure; it is no number of
    standard deviations, and members whose answers differ much in length are not measured quite alike.

    Raises:
        CalibrationError: A member's confidence cannot be standardised.
        CapacityError: The prompt does not fit into a member's context; nothing was decoded.
        MacrError: The prompt cannot be put to a member, or all have failed (the last one's error).
    """
    case.calibrations(required=True)
    gathering, answers = yield from answer_all(case)
    eligible = sound(answers)
    best = max(eligible, key=_z)  # the first of equals
    tied = [_z(answer) for answer in eligible].count(_z(best)) > 1
    yield from gathering.conclude(best, Chosen(best.member, len(eligible), tied=tied))


def _z(answer: WholeAnswer) -> float:
    z = answer.answered.z if answer.answered is not None else None
    return z if z is not None else float("-inf")
