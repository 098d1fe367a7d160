"""One bidding round: every member writes a bid from the same text, and the highest z wins (Eq. 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from macr_local.errors import Cancelled, MacrError
from macr_local.relay.candidate import Candidate
from macr_local.relay.events import Bid
from macr_local.relay.seat import Seat, side_by_side
from macr_local.relay.transcript import Transcript
from macr_local.settings import RelaySettings


class Bidding:
    """A round: `settle` it, then show its `events`.

    Pruning is a best-first search. Of all bids, finished or not, the one with the highest rank that it has or
    can still reach is written on, one token or more at a time; when that one is finished the round is over,
    for no other can come before it. No order of bidding writes fewer tokens: whatever a losing bid wrote, it
    wrote while its bound was above the winner's rank. Why bounds are exact: `confidence.highest_mean`.
    """

    def __init__(
        self,
        round: int,
        seats: Sequence[Seat],
        leader: Seat | None,
        transcript: Transcript,
        settings: RelaySettings,
        check: Callable[[], None],
    ) -> None:
        """Open the round; nothing is written yet.

        Args:
            round: Its number; 0 is initiation.
            seats: The whole pool, in its order.
            leader: Who leads; wins ties, and has the hysteresis on its side.
            transcript: The text to bid on.
            settings: The relay's settings.
            check: Raises `Cancelled` when the answer is to stop.
        """
        self._round = round
        self._seats = seats
        self._transcript = transcript
        self._settings = settings
        self._candidates = [
            Candidate(round, seat, seat.calibration, transcript, settings, leads=seat is leader, check=check)
            for seat in seats
            if seat.plays and seat.calibration is not None
        ]

    def settle(self, *, keep: bool = True) -> Candidate | None:
        """Let the members write, find the winner, and undo all other bids.

        Args:
            keep: Whether the winner's bid becomes part of its trunk, or is undone like the others.

        Returns:
            The winning bid; None when no member could finish one.

        Raises:
            Cancelled: The answer is to stop.
        """
        self._write_whole()
        while standing := sorted((c for c in self._candidates if c.stands), key=_rank, reverse=True):
            first = standing[0]
            if not first.ended:
                rival = standing[1].rank if len(standing) > 1 else None
                first.seat.member.run(partial(first.write, rival))
            elif _leave(first, first.seat.adopt if keep else first.seat.drop):
                self._undo(candidate for candidate in self._candidates if candidate is not first)
                return first
        self._undo(self._candidates)
        return None

    def events(self) -> Iterator[Bid]:
        """One event for each member of the pool, in pool order."""
        candidates = {candidate.seat: candidate for candidate in self._candidates}
        for seat in self._seats:
            if seat in candidates:
                yield candidates[seat].event()
            else:
                note = "no room for a bid" if seat.error is None else "failed before"
                yield Bid(self._round, seat.name, b"", (), (), None, None, note=note)

    def _write_whole(self) -> None:
        """Without pruning, every bid is written to its end, whatever the others say."""
        if self._settings.bids == "parallel":
            side_by_side((candidate.seat, candidate.write) for candidate in self._candidates)
        elif not self._settings.prune:
            for candidate in self._candidates:
                candidate.seat.member.run(candidate.write)

    def _undo(self, lost: Iterable[Candidate]) -> None:
        for candidate in lost:
            if candidate.branched and candidate.seat.error is None:
                _leave(candidate, candidate.seat.drop)
            elif candidate.stands:
                self._transcript.pass_over(candidate.seat.name)


def _rank(candidate: Candidate) -> tuple[float, bool, int]:
    return candidate.rank


def _leave(candidate: Candidate, way: Callable[[], None]) -> bool:
    """Leave a bid's branch by `adopt` or `drop`; False when the member failed at it."""
    try:
        candidate.seat.member.run(way)
    except Cancelled:
        raise
    except MacrError as error:
        candidate.fail(error)
        return False
    return True
