"""One member on its way through a plan, call by call."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace

from macr_local.prompt import Prompt
from macr_local.protocol import Member
from macr_local.relay import confidence, events
from macr_local.relay.confidence import Calibration
from macr_local.relay.controller import Controller
from macr_local.relay.counters import Counters
from macr_local.relay.events import Answered, Event, Finished, Started
from macr_local.strategies.case import Case, Strategy
from macr_local.strategies.final import final
from macr_local.strategies.plan import Brief, Plan, Planner, Step

INTERRUPTED = ("cancelled", "deadline")
"""Reasons by which an answer ends before its member is done."""


class Chain:
    """A member and its plan. Each call is a relay of one that never bids.

    Args:
        case: The question.
        member: Who answers.
        plan: How.
        began: When the question began (`time.monotonic`); the deadline counts from there.
        spent: What the question has cost the member before.

    Attributes:
        member: Who answers.
        first: The prompt of the first call.
        said: What it said in each step before the answer.
    """

    def __init__(
        self, case: Case, member: Member, plan: Plan, began: float, spent: Counters | None = None
    ) -> None:
        self.member = member
        self.said: list[str] = []
        self._case, self._plan, self._began = case, plan, began
        self._calibration = case.calibrations(required=False, of=(member,)).get(member.name)
        self._spent = spent or Counters()
        self._call: Controller | None = None
        self._next = self._advance(None)

    @property
    def first(self) -> Prompt:
        """The prompt of the call that comes next."""
        return self._next.prompt if isinstance(self._next, Step) else self._next

    @property
    def counters(self) -> Counters:
        """What it has cost so far; what was written in steps before the answer is discarded."""
        call = self._call.counters.get(self.member.name) if self._call is not None else None
        return self._spent + (call or Counters())

    def run(self) -> Generator[Event]:
        """Go through the plan.

        Yields:
            `Started` of the first call, `Answered` for each step, and all that happens in the last call.

        Raises:
            MacrError: See `Controller.run`.
        """
        notes: tuple[str, ...] = ()
        while isinstance(step := self._next, Step):
            call = WholeAnswer(self)
            for event in self._ask(step.prompt):
                call.take(event)
                if isinstance(event, Started):
                    if not self.said:
                        yield event
                    notes += event.notes if self.said else ()
            assert call.finished is not None
            if call.interrupted:
                yield replace(call.finished, index=0, counters={self.member.name: self._account()})
                return
            answered = replace(call.told(self._calibration), final=None, step=step.name)
            self.said.append(answered.text.strip())
            self._account()
            yield answered
            self._next = self._advance(self.said[-1])
        for event in self._ask(step):
            if isinstance(event, Finished):
                yield replace(event, counters={self.member.name: self.counters}, notes=notes + event.notes)
            elif not isinstance(event, Started) or not self.said:
                yield event

    def _ask(self, prompt: Prompt) -> Iterator[Event]:
        settings = replace(self._case.settings, initiation=self.member.name, trigger="never")
        own = {} if self._calibration is None else {self.member.name: self._calibration}
        clock = _clock_since(self._began)
        self._call = Controller((self.member,), own, settings, self._case.cancelled, clock=clock)
        return self._call.run(prompt)

    def _account(self) -> Counters:
        """Book the call that has ended: none of its tokens is part of the answer."""
        total = self.counters
        self._spent = replace(total, committed=0, discarded=total.written)
        self._call = None
        return self._spent

    def _advance(self, said: str | None) -> Step | Prompt:
        try:
            return next(self._plan) if said is None else self._plan.send(said)
        except StopIteration as done:
            answer: Prompt = done.value
            return answer


@dataclass(slots=True)
class WholeAnswer:
    """What one member did with the question, or in one call of it.

    Attributes:
        chain: Its way there.
        started: Its prefill; None where the question was cancelled before its end.
        written: `Relayed`, `Token`, `Text` and a failure, as they came.
        finished: Its end; None where it failed.
        answered: The answer; None where it failed, or never had the prompt.
    """

    chain: Chain
    started: Started | None = None
    written: list[Event] = field(default_factory=list)
    finished: Finished | None = None
    answered: Answered | None = None

    @property
    def member(self) -> str:
        """Whose it is."""
        return self.chain.member.name

    @property
    def interrupted(self) -> bool:
        """Whether it was stopped before its member was done."""
        return self.finished is not None and self.finished.reason in INTERRUPTED

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
        counted = self.chain.counters
        if chosen:
            return counted
        return replace(counted, committed=0, discarded=counted.written)

    def told(self, calibration: Calibration | None) -> Answered:
        """The answer, put together; it has an end."""
        assert self.finished is not None
        shown = [event for event in self.written if isinstance(event, events.Text)]
        logprobs = [event.logprob for event in self.written if isinstance(event, events.Token)]
        text = "".join(event.text for event in shown if not event.thought)
        mean = confidence.mean(logprobs) if logprobs else None
        return Answered(
            member=self.member,
            text=text,
            thought="".join(event.text for event in shown if event.thought),
            final=final(text),
            reason=self.finished.reason,
            tokens=len(logprobs),
            mean=mean,
            z=calibration.z(mean) if calibration is not None and mean is not None else None,
        )


def alone(planner: Planner) -> Strategy:
    """The strategy in which the leader answers by a plan.

    It raises ConfigError where the pool has no member of the leader's name, and what `Controller.run` raises.
    """

    def run(case: Case) -> Iterator[Event]:
        return Chain(case, case.lead, planner(Brief(case.prompt, case.prompts)), time.monotonic()).run()

    return run


def _clock_since(began: float) -> Callable[[], float]:
    """A clock whose first reading is in the past."""
    readings = iter((began,))
    return lambda: next(readings, None) or time.monotonic()
