"""One round of a member by itself: it draws several continuations, and its surest one is kept (TDH)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from macr_local.relay.candidate import Candidate
from macr_local.relay.events import Bid
from macr_local.relay.seat import Seat
from macr_local.relay.transcript import Transcript
from macr_local.settings import RelaySettings


class Redrawing:
    """A round like `bidding.Bidding`, in which all bids are the leader's own draws at `draw_temperature`.

    What is compared is still the log-probability at temperature 1: with one mu and one sigma, the highest z
    is the highest mean. A member holds one branch, so draws are written one after the other, each only as
    long as it may still become the best, and the best is then read again as others' words are: in one batch.
    """

    def __init__(
        self,
        round: int,
        leader: Seat,
        transcript: Transcript,
        settings: RelaySettings,
        check: Callable[[], None],
    ) -> None:
        """Open the round; nothing is written yet."""
        self._leader, self._prune = leader, settings.prune
        assert leader.calibration is not None, "without one, members go on in order"
        self._draws = [
            Candidate(
                round, leader, leader.calibration, transcript, settings, leads=False, check=check, draw=number
            )
            for number in range(settings.draws)
        ]

    def settle(self) -> Candidate | None:
        """Let the leader draw, and take up the best draw.

        Returns:
            The best draw; None when the leader could not finish any.

        Raises:
            Cancelled: The answer is to stop.
        """
        return self._leader.member.run(self._settle)

    def events(self) -> Iterator[Bid]:
        """One event for each draw, in the order in which they were drawn."""
        return (draw.event() for draw in self._draws)

    def _settle(self) -> Candidate | None:
        best: Candidate | None = None
        for draw in self._draws:
            draw.write(best.rank if best is not None and self._prune else None)
            if draw.branched and self._leader.error is None:
                self._leader.drop()
            if draw.stands and draw.ended and (best is None or draw.rank > best.rank):
                best = draw
        if best is None or self._leader.error is not None:
            return None
        for token in best.kept:
            if not token.is_end:
                self._leader.accept(token)
        return best
