"""Role play (RPH): one member proposes, opposes itself, and mediates (Section 3.3)."""

from __future__ import annotations

from collections.abc import Iterator

from macr_local.relay.events import Event
from macr_local.strategies.case import Case
from macr_local.strategies.chain import alone
from macr_local.strategies.plan import Brief, Plan, Step


def plan(brief: Brief) -> Plan:
    """Three calls, the image in all. Who it is stands behind the image, whose cells are so read once."""
    proposal = yield Step("proponent", brief.say("roleplay.proponent"))
    objection = yield Step("opponent", brief.say("roleplay.opponent", proposal=proposal))
    return brief.ask("roleplay.mediator", proposal=proposal, objection=objection)


def run(case: Case) -> Iterator[Event]:
    """Answer with the leader as mediator.

    Raises:
        ConfigError: The pool has no member of the leader's name.
        MacrError: See `Controller.run`.
    """
    return alone(case, plan)
