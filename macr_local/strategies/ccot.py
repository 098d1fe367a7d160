"""Compositional chain of thought (CCoT): a scene graph first, then the answer with it."""

from __future__ import annotations

from collections.abc import Iterator

from macr_local.relay.events import Event
from macr_local.strategies.case import Case
from macr_local.strategies.chain import alone
from macr_local.strategies.plan import Brief, Plan, Step


def plan(brief: Brief) -> Plan:
    """Two calls, the image in both. The graph is used as it is written, whether it is JSON or not."""
    graph = yield Step("scene graph", brief.say("ccot.graph"))
    return brief.ask("ccot.answer", graph=graph)


def run(case: Case) -> Iterator[Event]:
    """Answer with the leader.

    Raises:
        ConfigError: The pool has no member of the leader's name.
        MacrError: See `Controller.run`.
    """
    return alone(case, plan)
