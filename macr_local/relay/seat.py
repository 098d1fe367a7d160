"""A member's seat at the table, for one question: the member, its calibration, its ledger."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Future, wait

from macr_local.errors import ContextFull, EngineError, MacrError
from macr_local.prompt import Prompt
from macr_local.protocol import Draw, Member, PromptSize, Token
from macr_local.relay.confidence import Calibration
from macr_local.relay.counters import Counters, Ledger
from macr_local.relay.policies import Alarm
from macr_local.settings import Sampling


class Seat:
    """One member while one question is asked; every call that the relay makes of a member goes through here.

    `step` goes to the member's own thread by itself; the other calls that compute are for tasks that are
    there already (`Member.run`, `side_by_side`).
    """

    def __init__(self, member: Member, place: int, calibration: Calibration | None) -> None:
        self.member = member
        self.place = place
        self.calibration = calibration
        self.error: MacrError | None = None
        """Why it dropped out of this question."""
        self.reported = False
        """Whether that was told."""
        self.full = False
        """Whether it has no room for another bid; the answer only grows, so this does not change again."""
        self._ledger = Ledger()

    @property
    def name(self) -> str:
        """The member's name."""
        return self.member.name

    @property
    def plays(self) -> bool:
        """Whether it can take part in a round."""
        return self.error is None and not self.full

    def z(self, mean: float | None) -> float | None:
        """A window mean, standardised; None without a mean or a calibration."""
        return None if mean is None or self.calibration is None else self.calibration.z(mean)

    def close(self) -> Counters:
        """What the question cost this member."""
        return self._ledger.close(self.member.work)

    def step(
        self, draw: Draw, forbid: Collection[bytes], judge: Callable[[Token], Alarm | None]
    ) -> tuple[Token, Alarm | None]:
        """Propose one token, and accept it unless it raises an alarm or ends the answer."""

        def task() -> tuple[Token, Alarm | None]:
            token = self.propose(draw, forbid)
            alarm = judge(token)
            if alarm is None and not token.is_end:
                self.accept(token)
            return token, alarm

        return self.member.run(task)

    # On the member's own thread.

    def begin(
        self, prompt: Prompt, size: PromptSize, sampling: Sampling, cancelled: Callable[[], bool]
    ) -> None:
        """Prefill the prompt."""
        self.member.begin(prompt, sampling, cancelled)
        self._ledger.prefilled(size)

    def propose(self, draw: Draw, forbid: Collection[bytes], sampling: Sampling | None = None) -> Token:
        """Sample the next token.

        Raises:
            EngineError: Its log-probability is not one; pruning would no longer be exact.
        """
        token = self.member.propose(draw, forbid, sampling)
        self._ledger.proposed()
        if not token.logprob <= 0:  # also true of a NaN
            raise EngineError(f"{self.name} reports the log-probability {token.logprob!r}, which none can be")
        return token

    def accept(self, token: Token) -> None:
        """Take a proposed token as written."""
        self.member.accept(token)
        self._ledger.accepted()

    def commit(self) -> None:
        """One of its tokens joined the answer."""
        self._ledger.committed()

    def catch_up(self, pieces: Iterable[bytes], *, room: int) -> None:
        """Read what others wrote, piece by piece as `Transcript.pending` gives it.

        Raises:
            ContextFull: Fewer than ``room`` cells are left afterwards.
        """
        for piece in pieces:
            self._ledger.ingested(self.member.ingest(piece))
        if self.member.room < room:
            raise ContextFull(f"{self.name} has {max(0, self.member.room)} cells left and needs {room}")

    def branch(self, length: int) -> None:
        """Start a bid."""
        self.member.branch(length)
        self._ledger.branched()

    def adopt(self) -> None:
        """Keep the bid."""
        self.member.adopt()

    def drop(self) -> None:
        """Undo the bid."""
        self.member.drop()
        self._ledger.dropped()


def side_by_side(jobs: Iterable[tuple[Seat, Callable[[], None]]]) -> None:
    """Run one task on each member's thread, all at the same time, and wait for all.

    Raises:
        MacrError: What a task raised, in the order of the jobs, after all have ended.
    """
    running: list[tuple[Seat, Future[None]]] = []
    try:
        running += ((seat, seat.member.submit(task)) for seat, task in jobs)
        wait([future for _, future in running])
    except BaseException:
        # The waiting thread was interrupted. Nothing may go on behind the back of the next question.
        for seat, future in running:
            if not future.done():
                seat.member.interrupt()
        wait([future for _, future in running])
        raise
    for _, future in running:
        future.result()
