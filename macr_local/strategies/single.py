"""One member answers alone: the baseline that every other method is compared with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from macr_local.errors import ConfigError
from macr_local.relay.controller import Controller
from macr_local.relay.events import Event
from macr_local.strategies.case import Case


def run(case: Case) -> Iterator[Event]:
    """Answer with the leader, or with the pool's first member.

    It is a relay of one that never bids, so prompt, sampler, counters and events are the relay's own.

    Raises:
        ConfigError: The pool has no member of the leader's name.
    """
    by_name = {member.name: member for member in case.members}
    leader = case.leader or next(iter(by_name))
    if leader not in by_name:
        raise ConfigError(f'The pool has no member "{leader}"', f"It has: {', '.join(by_name)}")
    alone = replace(case, members=(by_name[leader],))
    settings = replace(case.settings, initiation=leader, trigger="never")
    return Controller(alone.members, alone.calibrations(required=False), settings, case.cancelled).run(
        case.prompt
    )
