"""Chain of thought: one call that asks for the steps before the answer."""

from __future__ import annotations

from macr_local.strategies.plan import Brief, Plan


def plan(brief: Brief) -> Plan:
    """Question and answer in one call."""
    yield from ()
    return brief.ask("cot.answer")
