"""Compositional chain of thought (CCoT): a scene graph first, then the answer with it."""

from __future__ import annotations

from macr_local.strategies.plan import Brief, Plan, Step


def plan(brief: Brief) -> Plan:
    """Two calls, the image in both. The graph is used as it is written, whether it is JSON or not."""
    graph = yield Step("scene graph", brief.say("ccot.graph"))
    return brief.ask("ccot.answer", graph=graph)
