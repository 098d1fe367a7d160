"""Whole answers of all members, of which one is chosen: what `vote` and `best_of` have in common."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from macr_local.errors import Cancelled, MacrError
from macr_local.protocol import Member
from macr_local.relay import confidence, events
from macr_local.relay.confidence import Calibration
from macr_local.relay.controller import Controller
from macr_local.relay.counters import Counters
from macr_local.relay.events import Answered, Chosen, Event, Finished, MemberFailed, Started
from macr_local.relay.question import measure
from macr_local.relay.seat import Seat
from macr_local.strategies.case import Case
from macr_local.strategies.final import final

_INTERRUPTED = ("cancelled", "deadline")


@dataclass(slots=True)
class WholeAnswer:
    """What one member did with the question.

    Attributes:
        member: Its name.
        controller: Its relay of one.
        started: Its prefill; None where the question was cancelled before its end.
        written: `Relayed`, `Token`, `Text` and a failure, as they came.
        finished: Its end; None where it failed.
        answered: The answer; None where it failed, or never had the prompt.
    """

    member: str
    controller: Controller
    started: Started | None = None
    written: list[Event] = field(default_factory=list)
    finished: Finished | None = None
    answered: Answered | None = None

    @property
    def interrupted(self) -> bool:
        """Whether it was stopped before its member was done."""
        return self.finished is not None and self.finished.reason in _INTERRUPTED

    def take(self, event: Event) -> None:
        """Note what happened."""
        match event:
            case Started():
                self.started = event
            case Finished():
                self.finished = event
            case _:
                self.written.append(event)

    def counters(self, *, chosen: bool) -> Counters:
        """What it cost; the tokens of an answer that is not chosen are discarded."""
        counted = self.controller.counters[self.member]
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
        CapacityError: The prompt does not fit into a member's context; nothing was decoded.
        MacrError: The prompt cannot be put to a member, or all have failed (the last one's error).
    """
    began = time.monotonic()
    with suppress(Cancelled):  # each relay of one comes to the same end by itself
        measure([Seat(m, i, None) for i, m in enumerate(case.members)], case.prompt, case.settings.window)
    calibrations = case.calibrations(required=False)
    answers = [_alone(case, member, calibrations.get(member.name), began) for member in case.members]
    running = [answer.controller.run(case.prompt) for answer in answers]
    try:
        for answer, happening in zip(answers, running, strict=True):
            answer.take(next(happening))  # a relay of one prefills up to its first event
        started = [answer.started for answer in answers if answer.started is not None]
        if len(started) < len(answers):
            return answers  # cancelled or late before every member held the prompt
        yield _together(started, time.monotonic() - began)
        last: MacrError | None = None
        for answer, happening in zip(answers, running, strict=True):
            try:
                for event in happening:
                    answer.take(event)
            except MacrError as error:
                last = error
                yield MemberFailed(answer.member, str(error))
            else:
                answer.answered = _answered(answer, calibrations.get(answer.member))
                yield answer.answered
        if last is not None and all(answer.finished is None for answer in answers):
            raise last
        return answers
    finally:
        for happening in running:
            happening.close()


def sound(answers: Iterable[WholeAnswer]) -> list[WholeAnswer]:
    """Those that can be chosen: complete ones that say something, or else interrupted ones that do.

    Where nobody says anything, those that did not fail.
    """
    ended = [answer for answer in answers if answer.finished is not None]
    telling = [a for a in ended if a.answered is not None and a.answered.text.strip()]
    return [answer for answer in telling if not answer.interrupted] or telling or ended


def conclude(answers: Sequence[WholeAnswer], taken: WholeAnswer, chosen: Chosen) -> Iterator[Event]:
    """Give the chosen answer, as if its member had led alone, and what all of them cost.

    Args:
        answers: All.
        taken: The one that is chosen; it has an end.
        chosen: Why.
    """
    assert taken.finished is not None
    ends = [answer.finished for answer in answers if answer.finished is not None]
    if taken.answered is not None:
        yield chosen
        yield from taken.written
    yield replace(
        taken.finished,
        reason=next((end.reason for end in ends if end.reason in _INTERRUPTED), taken.finished.reason),
        seconds=max(end.seconds for end in ends),
        counters={answer.member: answer.counters(chosen=answer is taken) for answer in answers},
    )


def _alone(case: Case, member: Member, calibration: Calibration | None, began: float) -> WholeAnswer:
    """A relay of one that never bids, whose deadline counts from the beginning of the question."""
    settings = replace(case.settings, initiation=member.name, trigger="never")
    own = {} if calibration is None else {member.name: calibration}
    clock = _clock_since(began)
    return WholeAnswer(member.name, Controller((member,), own, settings, case.cancelled, clock=clock))


def _clock_since(began: float) -> Callable[[], float]:
    """A clock whose first reading is in the past."""
    readings = iter((began,))
    return lambda: next(readings, None) or time.monotonic()


def _together(each: Sequence[Started], seconds: float) -> Started:
    return Started(
        members=tuple(name for one in each for name in one.members),
        prompt_text={name: count for one in each for name, count in one.prompt_text.items()},
        prompt_image={name: count for one in each for name, count in one.prompt_image.items()},
        seconds=seconds,
        notes=tuple(note for one in each for note in one.notes),
    )


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
