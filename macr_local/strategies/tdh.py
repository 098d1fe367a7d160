"""Temperature decoding (TDH): a relay of one member, whose bids are its own draws (Section 3.3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from macr_local.relay.controller import Controller
from macr_local.relay.events import Event
from macr_local.strategies.case import Case


def run(case: Case) -> Iterator[Event]:
    """Answer with the leader; where its z falls, it draws `draws` bids at `draw_temperature`.

    Raises:
        CalibrationError: Its confidence cannot be standardised.
        ConfigError: The pool has no member of the leader's name.
        MacrError: See `Controller.run`.
    """
    alone = replace(case, members=(case.lead,))
    settings = replace(case.settings, initiation=case.lead.name, selection="draws")
    calibrations = alone.calibrations(required=settings.compares)
    return Controller(alone.members, calibrations, settings, case.cancelled).run(case.prompt)
