"""One member's bid while it is being written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from macr_local.errors import Cancelled, ContextFull, MacrError
from macr_local.protocol import Token
from macr_local.relay import confidence, policies, seeds
from macr_local.relay.confidence import Calibration
from macr_local.relay.events import Bid
from macr_local.relay.policies import Rank
from macr_local.relay.seat import Seat
from macr_local.relay.transcript import Transcript
from macr_local.settings import RelaySettings, Sampling


class Candidate:
    """A bid of up to w tokens, ended early by an end token, by completing a stop string, or by a doubt.

    Attributes:
        seat: The member that writes it.
        tokens: What it has written so far.
        branched: Whether the member has begun.
        kept: Those that join the answer if it wins: all but a doubtful last one.
        ended: Whether it is complete.
        note: Why it is out of the round; empty while it stands.
    """

    def __init__(
        self,
        round: int,
        seat: Seat,
        calibration: Calibration,
        transcript: Transcript,
        settings: RelaySettings,
        *,
        leads: bool,
        check: Callable[[], None],
        draw: int | None = None,
    ) -> None:
        """Nothing is written yet; ``draw`` is its number where one member draws several."""
        self.seat = seat
        self.tokens: list[Token] = []
        self.kept: list[Token] = []
        self.branched = False
        self.ended = False
        self.note = ""
        self._round = round
        self._calibration = calibration
        self._transcript = transcript
        self._window = settings.window
        self._hysteresis = settings.hysteresis
        self._doubt = settings.threshold if settings.confidence == "first-doubt" else None
        self._leads = leads
        self._check = check
        self._reading = transcript.reading(seat.member.opens_thought)
        self._place = seat.place if draw is None else draw
        self._draw = seeds.stream(settings.seed, seat.name, round, "bid", draw or 0)
        self._sampling: Sampling | None = None
        if draw is not None:
            self._sampling = replace(settings.sampling, temperature=settings.draw_temperature)

    @property
    def stands(self) -> bool:
        """Whether it is still in the round."""
        return not self.note

    @property
    def z(self) -> float:
        """Its z (Eq. 6); until it has ended, the highest z it can still reach."""
        logprobs = [token.logprob for token in self.tokens]
        if self.ended:
            return self._calibration.z(confidence.mean(logprobs))
        return self._calibration.z(confidence.highest_mean(logprobs, self._window))

    @property
    def rank(self) -> Rank:
        """Its rank; until it has ended, the highest rank it can still reach."""
        return policies.rank(self.z, self._place, leads=self._leads, hysteresis=self._hysteresis)

    def write(self, rival: Rank | None = None) -> None:
        """On the member's thread: write on to the end, or only as long as it may still come before a rival.

        Args:
            rival: The highest rank that another bid of the round has or can reach.

        Raises:
            Cancelled: The answer is to stop.
        """
        try:
            while not self.ended and (rival is None or self.rank > rival):
                self._check()
                if not self.branched:
                    self._start()
                self._write_token()
        except Cancelled:
            raise
        except ContextFull:
            self.seat.full = True
            self.note = "no room for a bid"
        except MacrError as error:
            self.fail(error)

    def fail(self, error: MacrError) -> None:
        """The member drops out, of this round and of the question."""
        self.seat.error = error
        self.note = "failed"

    def event(self) -> Bid:
        """What the round shows of it."""
        logprobs = tuple(token.logprob for token in self.tokens)
        finished, pruned = self.stands and self.ended, self.stands and not self.ended
        return Bid(
            round=self._round,
            member=self.seat.name,
            text=b"".join(token.text for token in self.tokens),
            tokens=tuple(token.id for token in self.tokens),
            logprobs=logprobs,
            mean=confidence.mean(logprobs) if logprobs else None,
            z=self.z if finished else None,
            bound=self.z if pruned else None,
            short=finished and len(logprobs) < self._window,
            note=self.note,
        )

    def _start(self) -> None:
        self.seat.catch_up(self._transcript.pending(self.seat.name), room=self._window)
        self._transcript.read(self.seat.name)
        self.seat.branch(self._window)
        self.branched = True

    def _write_token(self) -> None:
        token = self.seat.propose(self._draw, self._reading.forbidden, self._sampling)
        doubtful = self._doubt is not None and self._calibration.z(token.logprob) < self._doubt
        self.tokens.append(token)
        # One token is kept in any case, or an answer might never end.
        if not doubtful or not self.kept:
            self.kept.append(token)
            if not token.is_end:
                self.seat.accept(token)
                self._reading.feed(token.text)
        full = len(self.tokens) == self._window
        self.ended = doubtful or token.is_end or self._reading.stopped or full
