"""Whole answers of all members, of which one is chosen: what `vote` and `best_of` have in common."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from macr_local.errors import MacrError
from macr_local.protocol import Member
from macr_local.relay import confidence, events
from macr_local.relay.confidence import Calibration
from macr_local.relay.controller import Controller
from macr_local.relay.counters import Counters
from macr_local.relay.events import Answered, Event, Finished, Started
from macr_local.strategies.case import Case
from macr_local.strategies.final import final

_INTERRUPTED = ("cancelled", "deadline")


@dataclass(slots=True)
class WholeAnswer:
    """What one member did with the question.

    Attributes:
        member: Its name.
        started: Its prefill; None where the question was cancelled before its end.
        written: Its relay of one: `Relayed`, `Token`, `Text` and notes of failure, as they came.
        finished: Its end; None where it failed.
        answered: The answer; None where it failed.
    """

    member: str
    started: Started | None = None
    written: list[Event] = field(default_factory=list)
    finished: Finished | None = None
    answered: Answered | None = None

    def counters(self, *, chosen: bool) -> Counters:
        """What it cost; the tokens of an answer that is not chosen are discarded."""
        if self.finished is None:
            tokens = sum(isinstance(event, events.Token) for event in self.written)
            text, image = (self.started.prompt_text, self.started.prompt_image) if self.started else ({}, {})
            return Counters(text.get(self.member, 0), image.get(self.member, 0), discarded=tokens)
        counted = self.finished.counters[self.member]
        if chosen:
            return counted
        return replace(counted, committed=0, discarded=counted.committed + counted.discarded)


def answer_all(case: Case) -> Generator[Event, None, list[WholeAnswer]]:
    """Let every member answer alone, one after the other, as `single` does.

    All prompts are prefilled first, each once. A member that fails drops out. When the question is cancelled
    or late, members that are not done say what they have.

    Yields:
        `Started` for all, then `Answered` or `MemberFailed` for each.

    Returns:
        One for each member, in pool order.

    Raises:
        MacrError: The prompt cannot be put to a member, or all have failed (the last one's error).
    """
    began = time.monotonic()
    calibrations = case.calibrations(required=False)
    running = []
    for member in case.members:
        settings = replace(case.settings, initiation=member.name, trigger="never")
        own = {name: each for name, each in calibrations.items() if name == member.name}
        clock = _clock_since(began)
        running.append(Controller((member,), own, settings, case.cancelled, clock=clock).run(case.prompt))
    try:
        # A relay of one prefills up to its first event.
        answers = [_begin(member, happening) for member, happening in zip(case.members, running, strict=True)]
        if all(started := [answer.started for answer in answers]):
            yield _together([one for one in started if one is not None], time.monotonic() - began)
        last: MacrError | None = None
        for answer, happening in zip(answers, running, strict=True):
            try:
                for event in happening:
                    _take(answer, event)
            except MacrError as error:
                if not any(isinstance(event, events.MemberFailed) for event in answer.written):
                    raise
                last = error
                yield events.MemberFailed(answer.member, str(error))
            else:
                if all(started):
                    answer.answered = _answered(answer, calibrations.get(answer.member))
                    yield answer.answered
        if last is not None and all(answer.finished is None for answer in answers):
            raise last
        return answers
    finally:
        for happening in running:
            happening.close()


def conclude(answers: Sequence[WholeAnswer], chosen: WholeAnswer, note: str) -> Iterator[Event]:
    """Give the chosen answer, as if its member had led alone, and what all of them cost.

    Args:
        answers: All.
        chosen: One that has an answer.
        note: Why this one.
    """
    assert chosen.finished is not None
    interrupted = [a.finished.reason for a in answers if a.finished and a.finished.reason in _INTERRUPTED]
    yield from chosen.written
    yield replace(
        chosen.finished,
        reason=interrupted[0] if interrupted else chosen.finished.reason,
        seconds=max(a.finished.seconds for a in answers if a.finished is not None),
        counters={a.member: a.counters(chosen=a is chosen) for a in answers},
        notes=(*chosen.finished.notes, note),
    )


def sound(answers: Iterable[WholeAnswer]) -> list[WholeAnswer]:
    """Those that can be chosen: complete ones; where all were interrupted, those that say something."""
    ended = [answer for answer in answers if answer.finished is not None]
    complete = [a for a in ended if a.finished is not None and a.finished.reason not in _INTERRUPTED]
    return complete or [a for a in ended if a.answered is not None and a.answered.text.strip()] or ended


def _clock_since(began: float) -> Callable[[], float]:
    """A clock whose first reading, from which a deadline counts, is the beginning of the whole question."""
    readings = iter([began])
    return lambda: next(readings, None) or time.monotonic()


def _begin(member: Member, happening: Iterator[Event]) -> WholeAnswer:
    first = next(happening)
    if isinstance(first, Started):
        return WholeAnswer(member.name, first)
    assert isinstance(first, Finished)
    return WholeAnswer(member.name, finished=first)


def _together(each: Sequence[Started], seconds: float) -> Started:
    return Started(
        members=tuple(name for one in each for name in one.members),
        prompt_text={name: count for one in each for name, count in one.prompt_text.items()},
        prompt_image={name: count for one in each for name, count in one.prompt_image.items()},
        seconds=seconds,
        notes=tuple(note for one in each for note in one.notes),
    )


def _take(answer: WholeAnswer, event: Event) -> None:
    if isinstance(event, Finished):
        answer.finished = event
    else:
        answer.written.append(event)


def _answered(answer: WholeAnswer, calibration: Calibration | None) -> Answered:
    assert answer.finished is not None
    shown = [event for event in answer.written if isinstance(event, events.Text)]
    logprobs = [event.logprob for event in answer.written if isinstance(event, events.Token)]
    text = "".join(event.text for event in shown if not event.thought)
    mean = confidence.mean(logprobs) if logprobs else None
    return Answered(
        member=answer.member,
        text=text,
        thought="".join(event.text for event in shown if event.thought),
        final=final(text),
        reason=answer.finished.reason,
        tokens=len(logprobs),
        mean=mean,
        z=calibration.z(mean) if calibration is not None and mean is not None else None,
    )
