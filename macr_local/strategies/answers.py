"""Whole answers of all members, of which one is chosen: what votes, `best_of` and `hdmad` have in common."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from macr_local.errors import Cancelled, MacrError
from macr_local.prompt import Prompt
from macr_local.protocol import Member
from macr_local.relay.counters import Counters
from macr_local.relay.events import Answered, Chosen, Event, Finished, MemberFailed, Started
from macr_local.relay.question import measure
from macr_local.relay.seat import Seat
from macr_local.strategies.case import Case
from macr_local.strategies.chain import INTERRUPTED, Chain, WholeAnswer
from macr_local.strategies.plan import Brief, Plan, io


@dataclass(slots=True)
class Gathering:
    """Members that answer one question, each alone, in one round or several.

    Attributes:
        case: The question.
        began: When it began.
        spent: What earlier rounds have cost each member.
        ends: How each answer ended, of all rounds.
    """

    case: Case
    began: float = field(default_factory=time.monotonic)
    spent: dict[str, Counters] = field(default_factory=dict)
    ends: list[Finished] = field(default_factory=list)

    def round(self, plans: Mapping[str, Plan], name: str = "") -> Generator[Event, None, list[WholeAnswer]]:
        """Let members answer, one after the other.

        All first prompts are prefilled first, each once. A member that fails drops out. When the question is
        cancelled or late, members that are not done say what they have.

        Args:
            plans: How each member answers; one without a plan is left out.
            name: What the round is called, where it is not the last.

        Yields:
            In the first round `Started` for all; then what members say, and `MemberFailed`.

        Returns:
            One for each member that has a plan, in pool order.

        Raises:
            CapacityError: A prompt does not fit into a member's context; nothing was decoded.
            MacrError: A prompt cannot be put to a member, or all have failed (the last one's error).
        """
        first = not self.spent
        members = [member for member in self.case.members if member.name in plans]
        calibrations = self.case.calibrations(required=False, of=members)
        chains = [
            Chain(self.case, one, plans[one.name], self.began, self.spent.get(one.name)) for one in members
        ]
        self._measure(chains)
        answers = [WholeAnswer(chain) for chain in chains]
        running = [chain.run() for chain in chains]
        try:
            for answer, happening in zip(answers, running, strict=True):
                answer.take(next(happening))  # a chain prefills up to its first event
            started = [answer.started for answer in answers if answer.started is not None]
            if len(started) < len(answers):
                return answers  # cancelled or late before every member held the prompt
            if first:
                yield _together(started, time.monotonic() - self.began)
            last: MacrError | None = None
            for answer, happening in zip(answers, running, strict=True):
                try:
                    for event in happening:
                        if isinstance(event, Answered):
                            yield event
                        else:
                            answer.take(event)
                except MacrError as error:
                    last = error
                    yield MemberFailed(answer.member, str(error))
                else:
                    answer.answered = answer.told(calibrations.get(answer.member))
                    yield replace(answer.answered, step=name)
            if last is not None and all(answer.finished is None for answer in answers):
                raise last
            return answers
        finally:
            for happening in running:
                happening.close()
            self.ends += [answer.finished for answer in answers if answer.finished is not None]
            self.spent |= {answer.member: answer.counters(chosen=False) for answer in answers}

    def conclude(self, taken: WholeAnswer, chosen: Chosen) -> Iterator[Event]:
        """Give the chosen answer, as if its member had led alone, and what all rounds cost.

        Args:
            taken: The one that is chosen; it has an end.
            chosen: Why.
        """
        assert taken.finished is not None
        if taken.answered is not None:
            yield chosen
            yield from taken.written
        counters = dict(self.spent)
        committed = taken.chain.counters.committed
        whole = counters[taken.member]
        counters[taken.member] = replace(whole, committed=committed, discarded=whole.discarded - committed)
        yield replace(
            taken.finished,
            reason=next(
                (end.reason for end in self.ends if end.reason in INTERRUPTED), taken.finished.reason
            ),
            seconds=max(end.seconds for end in self.ends),
            counters={m.name: counters[m.name] for m in self.case.members if m.name in counters},
        )

    def _measure(self, chains: Sequence[Chain]) -> None:
        asked: dict[int, tuple[Prompt, list[Member]]] = {}
        for chain in chains:
            asked.setdefault(id(chain.first), (chain.first, []))[1].append(chain.member)
        with suppress(Cancelled):  # each chain comes to the same end by itself
            for prompt, members in asked.values():
                measure([Seat(m, i, None) for i, m in enumerate(members)], prompt, self.case.settings.window)


def answer_all(case: Case) -> Generator[Event, None, tuple[Gathering, list[WholeAnswer]]]:
    """Let every member answer the question alone, as `single` does; see `Gathering.round`."""
    gathering = Gathering(case)
    plans = {member.name: io(Brief(case.prompt, case.prompts)) for member in case.members}
    answers = yield from gathering.round(plans)
    return gathering, answers


def sound(answers: Iterable[WholeAnswer]) -> list[WholeAnswer]:
    """Those that can be chosen: complete ones that say something, or else interrupted ones that do.

    Where nobody says anything, those that did not fail.
    """
    ended = [answer for answer in answers if answer.finished is not None]
    telling = [a for a in ended if a.answered is not None and a.answered.text.strip()]
    return [answer for answer in telling if not answer.interrupted] or telling or ended


def _together(each: Sequence[Started], seconds: float) -> Started:
    return Started(
        members=tuple(name for one in each for name in one.members),
        prompt_text={name: count for one in each for name, count in one.prompt_text.items()},
        prompt_image={name: count for one in each for name, count in one.prompt_image.items()},
        seconds=seconds,
        notes=tuple(note for one in each for note in one.notes),
    )
