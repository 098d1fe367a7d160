"""Multi-Agent Relay Thinking: Algorithm 1 over the whole pool."""

from __future__ import annotations

from collections.abc import Iterator

from macr_local.relay.controller import Controller
from macr_local.relay.events import Event
from macr_local.strategies.case import Case


def run(case: Case) -> Iterator[Event]:
    """Answer by relay.

    Raises:
        CalibrationError: A member's confidence cannot be standardised.
    """
    calibrations = case.calibrations(required=case.settings.compares)
    return Controller(case.members, calibrations, case.settings, case.cancelled).run(case.prompt)
