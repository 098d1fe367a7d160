"""An answer, put together from the events of a relay."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import reduce
from operator import add
from typing import Any

from macr_local.errors import DataError
from macr_local.relay import events
from macr_local.relay.counters import Counters
from macr_local.relay.events import Event, FinishReason
from macr_local.settings import RelaySettings


@dataclass(frozen=True, slots=True)
class Segment:
    """What one member wrote from taking the lead until the next round."""

    member: str
    text: str
    """Its part of `Answer.text`."""
    tokens: int
    thought: str = ""
    """Its part of `Answer.thought`."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete answer and how it came about.

    The texts of `segments`, joined, are `text`; their tokens add up to the tokens committed.
    """

    text: str
    """The answer, without thought and without stop string."""
    thought: str
    finish_reason: FinishReason
    segments: tuple[Segment, ...]
    """In order; a new one at each relay, also where a member relays to itself."""
    relays: int
    """Relays after initiation, to itself included."""
    handovers: int
    """Relays after initiation to another member."""
    bids: int
    """Bids of which at least one token was written."""
    rounds: int
    """Rounds that were opened, initiation included."""
    counters: dict[str, Counters]
    """Per member, in pool order."""
    settings: RelaySettings
    seconds: float
    notes: tuple[str, ...] = ()
    failed: tuple[events.MemberFailed, ...] = ()
    """Members that dropped out, in the order in which they did."""
    answers: tuple[events.Answered, ...] = ()
    """What members said by themselves: answers of which one was chosen, and steps before an answer."""
    chosen: events.Chosen | None = None
    """Which of them, and why."""

    @property
    def total(self) -> Counters:
        """The counters of all members together."""
        return reduce(add, self.counters.values(), Counters())

    def to_dict(self) -> dict[str, Any]:
        """As plain values, ready for JSON (``--json``)."""
        return {
            "text": self.text,
            "thought": self.thought,
            "finish_reason": self.finish_reason,
            "segments": [asdict(segment) for segment in self.segments],
            "relays": self.relays,
            "handovers": self.handovers,
            "bids": self.bids,
            "rounds": self.rounds,
            "counters": {
                "members": {name: self._count(counters) for name, counters in self.counters.items()},
                "total": self._count(self.total),
            },
            "settings": {**asdict(self.settings), "stop": list(self.settings.stop)},
            "seconds": self.seconds,
            "notes": list(self.notes),
            "failed": [asdict(failure) for failure in self.failed],
            "answers": [asdict(answer) for answer in self.answers],
            "chosen": asdict(self.chosen) if self.chosen is not None else None,
        }

    def _count(self, counters: Counters) -> dict[str, Any]:
        # What was being decoded when an answer was cancelled is in `decoded`, and its logits were never read.
        ratio = counters.work_ratio if self.finish_reason != "cancelled" else None
        return {**asdict(counters), "tokens": counters.tokens, "work_ratio": ratio}


def collect(happened: Iterable[Event], settings: RelaySettings) -> Answer:
    """Read a relay's events to the end and put the answer together.

    Args:
        happened: The events of one question, from a stream or from a trace.
        settings: The settings it was asked with.

    Raises:
        DataError: The events end before the answer does (a torn trace).
        MacrError: Whatever the stream raises.
    """
    owners: list[str] = []
    tokens: list[int] = []
    texts: list[list[str]] = []
    thoughts: list[list[str]] = []
    relays = handovers = bids = rounds = 0
    notes: tuple[str, ...] = ()
    failed: list[events.MemberFailed] = []
    answers: list[events.Answered] = []
    chosen: events.Chosen | None = None
    finished: events.Finished | None = None
    for event in happened:
        match event:
            case events.Started():
                notes += event.notes
            case events.BidOpened():
                rounds += 1
            case events.Bid():
                bids += bool(event.tokens)
            case events.Relayed():
                owners.append(event.winner)
                tokens.append(0)
                texts.append([])
                thoughts.append([])
                relays += event.round > 0
                handovers += event.round > 0 and event.winner != event.leader
            case events.Token():
                tokens[-1] += 1
            case events.Text():
                (thoughts if event.thought else texts)[event.segment].append(event.text)
            case events.Answered():
                answers.append(event)
            case events.Chosen():
                chosen = event
            case events.MemberFailed():
                failed.append(event)
            case events.Finished():
                finished = event
                notes += event.notes
    if finished is None:
        raise DataError("The events end before the answer does", "Ask again")
    segments = tuple(
        Segment(owner, "".join(text), count, "".join(thought))
        for owner, text, count, thought in zip(owners, texts, tokens, thoughts, strict=True)
    )
    return Answer(
        text="".join(segment.text for segment in segments),
        thought="".join(segment.thought for segment in segments),
        finish_reason=finished.reason,
        segments=segments,
        relays=relays,
        handovers=handovers,
        bids=bids,
        rounds=rounds,
        counters=finished.counters,
        settings=settings,
        seconds=finished.seconds,
        notes=notes,
        failed=tuple(failed),
        answers=tuple(answers),
        chosen=chosen,
    )
