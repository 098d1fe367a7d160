"""Chain of thought: one call that asks for the steps before the answer."""

from __future__ import annotations

from collections.abc import Iterator

from macr_local.relay.events import Event
from macr_local.strategies.case import Case
from macr_local.strategies.chain import alone
from macr_local.strategies.plan import Brief, Plan


def plan(brief: Brief) -> Plan:
    """Question and answer in one call."""
    yield from ()
    return brief.ask("cot.answer")


def run(case: Case) -> Iterator[Event]:
    """Answer with the leader.

    Raises:
        ConfigError: The pool has no member of the leader's name.
        MacrError: See `Controller.run`.
    """
    return alone(case, plan)
