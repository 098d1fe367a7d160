"""A member's time in the lead, from taking over until the next round: one segment of the answer."""

from __future__ import annotations

from macr_local.protocol import Token
from macr_local.relay import policies, seeds
from macr_local.relay.confidence import Window
from macr_local.relay.policies import Alarm
from macr_local.relay.seat import Seat
from macr_local.settings import RelaySettings


class Lead:
    """Watches the leader's confidence (Eq. 5) over the tokens of this segment, and of no other.

    The winner's bid is the segment's beginning, so the window is full at once after a whole bid, and never
    mixes the log-probabilities of two members.

    Attributes:
        seat: The leader.
        draw: The leader's random stream while it is monitored.
    """

    def __init__(self, seat: Seat, round: int, bid: int, settings: RelaySettings) -> None:
        """Begin after a round.

        Args:
            seat: Who leads.
            round: The round that made it lead.
            bid: Tokens of its bid that will join the answer; 0 where it did not bid.
            settings: The relay's settings.
        """
        self.seat = seat
        self.draw = seeds.stream(settings.seed, seat.name, round, "lead")
        self._settings = settings
        self._window = Window(settings.judged)
        self._bid = bid
        self._tokens = 0

    def measure(self, token: Token) -> tuple[float | None, float | None]:
        """Mean and z of the window that ends with this token; None until the segment holds w tokens."""
        mean = self._window.mean_with(token.logprob)
        return mean, self.seat.z(mean)

    def judge(self, token: Token, written: bytes) -> Alarm | None:
        """Whether a proposed token calls for a round.

        Args:
            token: Not part of the segment yet.
            written: The segment's text before it, in whole characters.
        """
        if self._tokens - self._bid < self._settings.cooldown:
            return None
        if self._tokens == 0 and self._settings.selection == "order":
            return None  # With w = 1 members that do not bid could hand on for ever and write nothing.
        return policies.alarm(self._settings, token, *self.measure(token), written)

    def add(self, token: Token) -> None:
        """A token joined the answer."""
        self._window.add(token.logprob)
        self._tokens += 1
