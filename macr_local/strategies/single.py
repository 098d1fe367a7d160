"""One member answers alone: the baseline that every other method is compared with."""

from __future__ import annotations

from collections.abc import Iterator

from macr_local.relay.events import Event
from macr_local.strategies.case import Case
from macr_local.strategies.chain import alone
from macr_local.strategies.plan import io


def run(case: Case) -> Iterator[Event]:
    """Answer with the leader, or with the pool's first member.

    It is a relay of one that never bids, so prompt, sampler, counters and events are the relay's own.

    Raises:
        ConfigError: The pool has no member of the leader's name.
        MacrError: See `Controller.run`.
    """
    return alone(case, io)
