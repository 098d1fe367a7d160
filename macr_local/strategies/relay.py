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
    # A relay that neither compares first trials nor watches for weak windows needs no mu and sigma.
    settings = case.settings
    compares = settings.selection == "best" and settings.trigger != "never"
    required = settings.initiation == "best" or settings.trigger == "confidence" or compares
    controller = Controller(case.members, case.calibrations(required=required), settings, case.cancelled)
    return controller.run(case.prompt)
