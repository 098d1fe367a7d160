"""Algorithm 1, slow and plain: whatever a member is asked, it is asked in a fresh context.

There is no branch, no rollback, no pruning and no thread here. Each member keeps the list of decodes that
brought it to its place in the answer; a bid, and a leader's segment, begins with an empty context that
repeats them all. The batches are those that `macr_local.protocol.Member` promises (what waits is decoded
together, when logits are needed), because on a quantized model a batch's shape moves the last bits.

It follows the paper's rule with the package's defaults: bids at z < tau, the highest z wins, the trial stays.
"""

from __future__ import annotations

import math
from codecs import getincrementaldecoder
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from macr_local.engine.sampler import Sampler
from macr_local.relay.seeds import stream
from macr_local.settings import RelaySettings
from tests.oracles.bare import Bare, Session


@dataclass(frozen=True)
class Written:
    """A token of the answer, and the confidence of the window that it ends."""

    member: str
    id: int
    logprob: float
    z: float | None


@dataclass(frozen=True)
class NaiveBid:
    """A bid, written to its end."""

    member: str
    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    z: float


@dataclass(frozen=True)
class Round:
    """One bidding round; number 0 is initiation, which has no leader and no z."""

    number: int
    leader: str | None
    index: int
    z: float | None
    bids: tuple[NaiveBid, ...]
    winner: str


@dataclass(frozen=True)
class Outcome:
    """All that was decided, and the answer."""

    rounds: tuple[Round, ...]
    tokens: tuple[Written, ...]
    text: str
    reason: Literal["end", "max_tokens"]


@dataclass
class NaiveMember:
    """A model, its calibration, and how it came to its place in the present answer."""

    name: str
    bare: Bare
    mu: float
    sigma: float
    decodes: list[list[int]] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    read: int = 0
    """Bytes of the shared text that are in its decodes or wait."""

    def z(self, logprobs: Sequence[float]) -> float:
        return (math.fsum(logprobs) / len(logprobs) - self.mu) / self.sigma

    def see(self, session: Session) -> None:
        """Decode what waits, so that the next logits are there."""
        if self.waiting:
            session.decode(self.waiting)
            self.decodes.append(self.waiting)
            self.waiting = []


class NaiveRelay:
    """Asks members that share nothing but bytes."""

    def __init__(self, members: Sequence[NaiveMember], settings: RelaySettings) -> None:
        wanted = ("best", True, "confidence", "best", 0.0, 0, None, (), "token", "mean")
        given = (
            settings.initiation, settings.keep_trial, settings.trigger, settings.selection,
            settings.hysteresis, settings.cooldown, settings.max_relays, settings.stop, settings.boundary,
            settings.confidence,
        )  # fmt: skip
        assert given == wanted, "this oracle knows the paper's rule only"
        self.members = members
        self.settings = settings

    def ask(self, question: str, images: Sequence[Path] = ()) -> Outcome:
        """Answer one question."""
        self._question, self._images = question, tuple(images)
        self._tokens: list[Written] = []
        self._segment: list[float] = []
        self._bytes = b""
        self._shared = b""
        self._utf8 = getincrementaldecoder("utf-8")("ignore")
        for member in self.members:
            member.decodes, member.waiting, member.read = [], [], 0
        rounds = [self._round(0, None, None)]
        while (reason := self._done()) is None:
            leader = next(m for m in self.members if m.name == rounds[-1].winner)
            z = self._lead(leader, rounds[-1].number)
            if z is not None:
                rounds.append(self._round(len(rounds), leader, z))
        return Outcome(tuple(rounds), tuple(self._tokens), self._bytes.decode("utf-8", "ignore"), reason)

    def _done(self) -> Literal["end", "max_tokens"] | None:
        last = self._tokens[-1]
        if any(m.name == last.member and m.bare.is_end(last.id) for m in self.members):
            return "end"
        return "max_tokens" if len(self._tokens) >= self.settings.max_tokens else None

    @contextmanager
    def _replay(self, member: NaiveMember) -> Iterator[Session]:
        with member.bare.fresh() as session:
            session.prompt(self._question, self._images)
            for batch in member.decodes:
                session.decode(batch)
            member.see(session)
            yield session

    def _lead(self, leader: NaiveMember, number: int) -> float | None:
        """Let the leader write until its z falls below tau, and return that z; None: the answer is done."""
        w = self.settings.window
        draw = stream(self.settings.seed, leader.name, number, "lead")
        sampler = Sampler(self.settings.sampling, leader.bare.n_vocab)
        with self._replay(leader) as session:
            while self._done() is None:
                leader.see(session)
                token, logprob = sampler.sample(session.logits(), draw)
                window = [*self._segment, logprob][-w:]
                z = leader.z(window) if len(window) == w else None
                between_characters = not self._utf8.getstate()[0]
                if z is not None and z < self.settings.threshold and between_characters:
                    return z
                self._append(leader, token, logprob, z)
        return None

    def _round(self, number: int, leader: NaiveMember | None, z: float | None) -> Round:
        bids = [self._bid(member, number) for member in self.members]
        led = leader.name if leader else None
        # The first of the highest: the leader before the others, then pool order.
        best = max(sorted(bids, key=lambda bid: bid.member != led), key=lambda bid: bid.z)
        record = Round(number, led, len(self._tokens), z, tuple(bids), best.member)
        winner = next(member for member in self.members if member.name == best.member)
        self._segment = []
        for place, (token, logprob) in enumerate(zip(best.tokens, best.logprobs, strict=True)):
            if self._tokens and self._done() is not None:
                break
            whole = place + 1 == self.settings.window
            self._append(winner, token, logprob, winner.z([*self._segment, logprob]) if whole else None)
            if not whole:  # each token but the last was decoded for the sake of its successor
                winner.decodes.append(winner.waiting)
                winner.waiting = []
        return record

    def _bid(self, member: NaiveMember, number: int) -> NaiveBid:
        member.waiting += member.bare.tokenize(self._shared[member.read :])
        member.read = len(self._shared)
        draw = stream(self.settings.seed, member.name, number, "bid")
        sampler = Sampler(self.settings.sampling, member.bare.n_vocab)
        tokens: list[int] = []
        logprobs: list[float] = []
        with self._replay(member) as session:
            while True:
                token, logprob = sampler.sample(session.logits(), draw)
                tokens.append(token)
                logprobs.append(logprob)
                if len(tokens) == self.settings.window or member.bare.is_end(token):
                    return NaiveBid(member.name, tuple(tokens), tuple(logprobs), member.z(logprobs))
                session.decode([token])

    def _append(self, member: NaiveMember, token: int, logprob: float, z: float | None) -> None:
        """A token joins the answer."""
        self._tokens.append(Written(member.name, token, logprob, z))
        self._segment.append(logprob)
        if member.bare.is_end(token):
            return
        member.waiting.append(token)
        piece = member.bare.piece(token)
        self._bytes += piece
        self._shared += self._utf8.decode(piece).encode()
        member.read = len(self._shared)
