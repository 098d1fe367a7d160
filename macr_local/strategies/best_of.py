"""Best of all: every member answers alone, and the answer with the highest calibrated confidence is taken."""

from __future__ import annotations

from collections.abc import Iterator

from macr_local.relay.events import Event
from macr_local.strategies.answers import WholeAnswer, answer_all, conclude, sound
from macr_local.strategies.case import Case


def run(case: Case) -> Iterator[Event]:
    """Answer with the member whose whole answer has the highest z; on a tie the first in the pool.

    It asks whether confidence inside one chain is worth more than confidence about finished ones. The z of an
    answer is its mean log-probability over all tokens (Eq. 1 with w = its length), standardised with the mu
    and sigma of the member's windows of w tokens: a longer mean varies less than they say, by about the same
    factor for every member.

    Raises:
        CalibrationError: A member's confidence cannot be standardised.
        MacrError: The prompt cannot be put to a member, or all have failed (the last one's error).
    """
    case.calibrations(required=True)
    answers = yield from answer_all(case)
    best = max(sound(answers), key=_z)
    yield from conclude(answers, best, f"best of {len(answers)}: z {_z(best):.2f}")


def _z(answer: WholeAnswer) -> float:
    z = answer.answered.z if answer.answered is not None else None
    return z if z is not None else float("-inf")
