"""What every strategy is given, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from macr_local.errors import CalibrationError
from macr_local.prompt import Prompt
from macr_local.protocol import Member
from macr_local.relay.confidence import Calibration
from macr_local.relay.events import Event
from macr_local.settings import RelaySettings


@dataclass(frozen=True, slots=True)
class Case:
    """One question before a pool.

    Attributes:
        members: The pool's members in order; the strategy has them to itself until it has finished.
        calibration: Gives a member's mu and sigma for the windows that are judged; raises `CalibrationError`
            where the member has none that fits.
        settings: How to relay.
        leader: A member's name, where the strategy needs one; None is the first.
        prompt: The question.
        cancelled: Becomes true when the asker gives up.
    """

    members: Sequence[Member]
    calibration: Callable[[Member], Calibration]
    settings: RelaySettings
    leader: str | None
    prompt: Prompt
    cancelled: Callable[[], bool]

    def calibrations(self, *, required: bool) -> Mapping[str, Calibration]:
        """The calibrations of all members, or of those that have one where none is required."""
        found = {}
        for member in self.members:
            try:
                found[member.name] = self.calibration(member)
            except CalibrationError:
                if required:
                    raise
        return found


Strategy = Callable[[Case], Iterator[Event]]
