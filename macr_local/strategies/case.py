"""What every strategy is given, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from macr_local.errors import CalibrationError, ConfigError
from macr_local.prompt import Prompt
from macr_local.protocol import Member
from macr_local.relay.confidence import Calibration
from macr_local.relay.events import Event
from macr_local.settings import RelaySettings
from macr_local.strategies.prompts import Prompts, builtin


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
        prompts: The words in which methods of several calls ask.
    """

    members: Sequence[Member]
    calibration: Callable[[Member], Calibration]
    settings: RelaySettings
    leader: str | None
    prompt: Prompt
    cancelled: Callable[[], bool]
    prompts: Prompts = field(default_factory=builtin)

    @property
    def lead(self) -> Member:
        """The leader, or the pool's first member.

        Raises:
            ConfigError: The pool has no member of the leader's name.
        """
        by_name = {member.name: member for member in self.members}
        leader = self.leader or next(iter(by_name))
        if leader not in by_name:
            raise ConfigError(f'The pool has no member "{leader}"', f"It has: {', '.join(by_name)}")
        return by_name[leader]

    def calibrations(
        self, *, required: bool, of: Sequence[Member] | None = None
    ) -> Mapping[str, Calibration]:
        """The calibrations of some or all members, or of those that have one where none is required."""
        found = {}
        for member in self.members if of is None else of:
            try:
                found[member.name] = self.calibration(member)
            except CalibrationError:
                if required:
                    raise
        return found


Strategy = Callable[[Case], Iterator[Event]]
