"""Role play (RPH): one member proposes, opposes itself, and mediates (Section 3.3)."""

from __future__ import annotations

from macr_local.strategies.plan import Brief, Plan, Step


def plan(brief: Brief) -> Plan:
    """Three calls, the image in all. Who it is stands behind the image, whose cells are so read once."""
    proposal = yield Step("proponent", brief.say("roleplay.proponent"))
    objection = yield Step("opponent", brief.say("roleplay.opponent", proposal=proposal))
    return brief.ask("roleplay.mediator", proposal=proposal, objection=objection)
