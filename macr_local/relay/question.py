"""One question on its way through the phases of the relay; `controller.Controller` strings them together."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial

from macr_local.errors import Cancelled, CapacityError, ContextFull, EngineError, MacrError
from macr_local.prompt import Prompt
from macr_local.protocol import Member, PromptSize, Token
from macr_local.relay import events, policies
from macr_local.relay.bidding import Bidding
from macr_local.relay.confidence import Calibration
from macr_local.relay.counters import Counters
from macr_local.relay.events import Event, FinishReason
from macr_local.relay.lead import Lead
from macr_local.relay.policies import Alarm
from macr_local.relay.redrawing import Redrawing
from macr_local.relay.seat import Seat, side_by_side
from macr_local.relay.transcript import Transcript
from macr_local.settings import RelaySettings


class Question:
    """The state of one question, and its phases as generators of events.

    No member computes while an event is given out, and no bid is open then.

    Attributes:
        reason: Why the answer is complete; None while it is not.
    """

    def __init__(
        self,
        prompt: Prompt,
        members: Sequence[Member],
        calibrations: Mapping[str, Calibration],
        settings: RelaySettings,
        cancelled: Callable[[], bool],
        clock: Callable[[], float],
    ) -> None:
        """Seat the members; nothing is computed yet."""
        self.reason: FinishReason | None = None
        self._prompt = prompt
        self._settings = settings
        self._cancelled = cancelled
        self._clock = clock
        self._began = clock()
        self._seats = [Seat(m, place, calibrations.get(m.name)) for place, m in enumerate(members)]
        self._transcript = Transcript([seat.name for seat in self._seats], settings.stop)
        self._round = -1
        self._lead: Lead | None = None

    @property
    def done(self) -> bool:
        """Done(c) of Algorithm 1."""
        return self.reason is not None

    @property
    def counters(self) -> dict[str, Counters]:
        """What it has cost each member so far."""
        return {seat.name: seat.close() for seat in self._seats}

    # The phases.

    def prefill(self) -> Iterator[Event]:
        """Give every member the prompt, once.

        Raises:
            CapacityError: It does not fit; nothing was decoded.
            MacrError: A member cannot be asked this at all, or every member failed.
        """
        sizes = measure(self._seats, self._prompt, self._settings.window, self._check)
        tasks = [(seat, partial(self._begin, seat, size)) for seat, size in sizes.items()]
        if self._settings.bids == "parallel":
            side_by_side(tasks)
        else:
            for seat, task in tasks:
                seat.member.run(task)
        yield events.Started(
            members=tuple(seat.name for seat in self._seats),
            prompt_text={seat.name: size.text for seat, size in sizes.items()},
            prompt_image={seat.name: size.image for seat, size in sizes.items()},
            seconds=self._clock() - self._began,
            notes=tuple(note for size in sizes.values() for note in size.notes),
        )
        yield from self._report_failures()

    def initiation(self) -> Iterator[Event]:
        """Find the first leader: by a trial of every member (Eq. 4), or the one that was named."""
        named = next((seat for seat in self._seats if seat.name == self._settings.initiation), None)
        if named is None:
            yield from self.bidding(Alarm("initiation"))
        elif named.error is not None:
            yield from self.bidding(Alarm("failure"))
        else:
            self._round += 1
            yield from self._relay(named)

    def monitoring(self) -> Generator[Event, None, Alarm | None]:
        """The leader writes on, token by token, until a round is due (Eq. 5).

        Returns:
            Why a round is due; None when the answer is done.
        """
        assert self._lead is not None
        leader = self._lead.seat
        while not self.done:
            self._check()
            try:
                token, alarm = self._step(self._lead)
            except Cancelled:
                raise
            except ContextFull:
                self.reason = "context_full"
            except MacrError as error:
                leader.error = error
                self._transcript.forget_tail()
                yield from self._report_failures()
                return Alarm("failure")
            else:
                if alarm is not None:
                    return alarm
                yield from self._commit(token)
        return None

    def bidding(self, alarm: Alarm) -> Iterator[Event]:
        """All members bid, the leader too, and the most confident takes over with its bid (Eq. 6, 7).

        Raises:
            MacrError: Every member has failed; the last one's error.
        """
        self._round += 1
        leader = self._lead.seat if self._lead is not None else None
        yield events.BidOpened(
            round=self._round,
            leader=leader.name if leader is not None else None,
            index=self._transcript.index,
            reason=alarm.reason,
            mean=alarm.mean,
            z=alarm.z,
            dropped=alarm.dropped,
        )
        if self._goes_in_order(alarm):
            successor = self._successor(leader)
            yield from self._report_failures()
            if successor is not None:
                yield from self._relay(successor)
                return
        elif leader is not None and self._settings.selection == "draws" and alarm.reason != "failure":
            redrawing = Redrawing(self._round, leader, self._transcript, self._settings, self._check)
            best = redrawing.settle()
            yield from self._report_failures()
            yield from redrawing.events()
            if best is not None:
                yield from self._relay(best.seat, best.z, best.kept)
                return
            if leader.error is not None:
                yield from self.bidding(Alarm("failure"))
                return
        else:
            bidding = Bidding(self._round, self._seats, leader, self._transcript, self._settings, self._check)
            keep = self._settings.keep_trial or alarm.reason != "initiation"
            winner = bidding.settle(keep=keep)
            yield from self._report_failures()
            yield from bidding.events()
            if winner is not None:
                yield from self._relay(winner.seat, winner.z, winner.kept if keep else ())
                return
        self.reason = "context_full"  # Some members are sound, but none has room to go on.

    def interrupted(self) -> None:
        """`Cancelled` was raised: the answer ends with what there is."""
        self.reason = "deadline" if self._is_late() and not self._cancelled() else "cancelled"

    def finish(self) -> Iterator[Event]:
        """Give what was withheld, and the counters."""
        assert self.reason is not None
        texts, notes = self._transcript.close()
        yield from texts
        yield events.Finished(
            reason=self.reason,
            index=self._transcript.index,
            seconds=self._clock() - self._began,
            counters=self.counters,
            notes=notes,
        )

    # Steps of prefill.

    def _begin(self, seat: Seat, size: PromptSize) -> None:
        """On the member's thread."""
        self._check()
        try:
            seat.begin(self._prompt, size, self._settings.sampling, self._is_over)
        except Cancelled:
            raise
        except MacrError as error:
            seat.error = error

    # Steps of monitoring.

    def _step(self, lead: Lead) -> tuple[Token, Alarm | None]:
        """Let the leader propose a token, and accept it unless it calls for a round."""
        seat, transcript = lead.seat, self._transcript
        if seat.member.room < 1:
            raise ContextFull(f"{seat.name} has no room for another token")
        limit = self._settings.max_relays
        armed = not transcript.mid_character and (limit is None or self._round < limit)

        def judge(token: Token) -> Alarm | None:
            return lead.judge(token, transcript.written) if armed else None

        return seat.step(lead.draw, transcript.forbidden(seat.member.opens_thought), judge)

    def _commit(self, token: Token) -> Iterator[Event]:
        """A token of the leader joins the answer, and may complete it."""
        lead, transcript = self._lead, self._transcript
        assert lead is not None
        mean, z = lead.measure(token)
        yield events.Token(
            member=lead.seat.name,
            index=transcript.index,
            id=token.id,
            text=token.text,
            logprob=token.logprob,
            mean=mean,
            z=z,
            is_end=token.is_end,
        )
        lead.add(token)
        lead.seat.commit()
        yield from transcript.write(lead.seat.name, token.text, opens_thought=lead.seat.member.opens_thought)
        if token.is_end:
            self.reason = "end"
        elif transcript.stopped:
            self.reason = "stop"
        elif transcript.index >= self._settings.max_tokens:
            self.reason = "max_tokens"

    # Steps of a relay.

    def _relay(self, seat: Seat, z: float | None = None, bid: Sequence[Token] = ()) -> Iterator[Event]:
        """A member takes the lead; its bid's words join the answer."""
        leader = self._lead.seat.name if self._lead is not None else None
        self._lead = Lead(seat, self._round, len(bid), self._settings)
        self._transcript.begin_segment()
        yield events.Relayed(self._round, leader, seat.name, z)
        for token in bid:
            if not self.done:
                yield from self._commit(token)

    def _goes_in_order(self, alarm: Alarm) -> bool:
        """Whether the next leader is a matter of order: the ablation, or a failure without calibrations."""
        if any(seat.calibration is None for seat in self._seats):
            return True
        return self._settings.selection == "order" and alarm.reason != "initiation"

    def _successor(self, leader: Seat | None) -> Seat | None:
        """The next member in pool order that can go on, with everything read."""
        for seat in policies.successors(self._seats, leader):
            if not seat.plays:
                continue
            try:
                seat.member.run(partial(seat.catch_up, self._transcript.pending(seat.name), room=1))
            except Cancelled:
                raise
            except ContextFull:
                seat.full = True
            except MacrError as error:
                seat.error = error
            else:
                self._transcript.read(seat.name)
                return seat
        return None

    def _report_failures(self) -> Iterator[Event]:
        """Tell of members that dropped out since the last report; go no further without any member."""
        last: MacrError | None = None
        for seat in self._seats:
            if seat.error is not None and not seat.reported:
                last, seat.reported = seat.error, True
                yield events.MemberFailed(seat.name, str(last))
        if last is not None and all(seat.error is not None for seat in self._seats):
            raise last

    # When to stop.

    def _is_late(self) -> bool:
        deadline = self._settings.deadline
        return deadline is not None and self._clock() - self._began >= deadline

    def _is_over(self) -> bool:
        return self._cancelled() or self._is_late()

    def _check(self) -> None:
        if self._is_over():
            raise Cancelled("The question was cancelled or its deadline passed")


def measure(
    seats: Iterable[Seat], prompt: Prompt, window: int, check: Callable[[], None] = lambda: None
) -> dict[Seat, PromptSize]:
    """What the prompt takes in each member that can say it; nothing is decoded.

    Args:
        seats: Those who are asked; one whose engine fails keeps the error.
        prompt: The prompt.
        window: Tokens that must have room behind it.
        check: Called before each member; raises to stop.

    Raises:
        CapacityError: It leaves a member no room.
        MacrError: It cannot be put to a member at all.
    """
    sizes = {}
    for seat in seats:
        check()
        try:
            sizes[seat] = seat.member.run(partial(seat.member.prepare, prompt))
        except EngineError as error:
            seat.error = error
    if any(size.cells + window > seat.member.n_ctx for seat, size in sizes.items()):
        each = (f"{s.name} needs {z.cells + window} cells of {s.member.n_ctx}" for s, z in sizes.items())
        raise CapacityError(
            f"The prompt and a bid of {window} tokens do not fit: {', '.join(each)}",
            "Raise n_ctx in models.toml, or ask with a shorter question or with fewer or smaller images",
        )
    return sizes
