"""One way of answering, put to one task; what came out."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from benchmarks.quality.mechanism import Knows, Mechanism, observe
from benchmarks.quality.recall import RecallingMember
from benchmarks.quality.task import Task
from macr_local import Pool, Relay
from macr_local.protocol import Member
from macr_local.relay import confidence
from macr_local.relay.answer import collect
from macr_local.relay.confidence import Calibration
from macr_local.relay.events import Event, Token
from macr_local.settings import RelaySettings
from macr_local.strategies import Case, strategy
from macr_local.tiny.scenes.knowledge import BLIND, Blindness, knows
from macr_local.tiny.scenes.reader import agrees, follow
from macr_local.tiny.scenes.wording import PLAIN, Language


@dataclass(frozen=True, slots=True)
class Method:
    """A way of answering: a strategy, its settings, who leads.

    Attributes:
        name: In tables.
        strategy: "single", "vote", "best-of" or "relay".
        settings: How to relay.
        leader: The member of "single".
        raw: Whether mean log-probabilities are compared as they are, with no mu and sigma.
    """

    name: str
    strategy: str
    settings: RelaySettings
    leader: str | None = None
    raw: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one task."""

    method: str
    key: str
    cluster: int
    family: str
    text: str
    right: bool
    """Whether the final answer is."""
    chain: bool | None
    """Whether every value of the worked answer is; None where nobody knows it."""
    prompt: int
    """Cells of the prompt, in all members that were given it."""
    committed: int
    discarded: int
    ingested: int
    relays: int
    handovers: int
    seconds: float
    mean: float | None = None
    """Mean log-probability of the answer's tokens."""
    mechanism: Mechanism = field(default_factory=Mechanism)

    @property
    def generated(self) -> int:
        """Tokens written, whether they joined the answer or not."""
        return self.committed + self.discarded

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return asdict(self)

    @classmethod
    def of(cls, values: dict[str, Any]) -> Outcome:
        """From plain values."""
        return cls(**{**values, "mechanism": Mechanism(**values["mechanism"])})


Ask = Callable[[Task, Method], list[Event]]
"""Answers a task; gives all that happened."""


def live(pool: Pool) -> Ask:
    """Ask a pool as its users do."""

    def ask(task: Task, method: Method) -> list[Event]:
        relay = Relay(pool, method.settings, strategy=method.strategy, leader=method.leader)
        with relay.stream(task.prompt) as stream:
            return list(stream)

    return ask


def recalled(pool: Pool) -> Ask:
    """Ask members that compute nothing twice as long as the question stays the same; greedy ones only."""
    members = [RecallingMember(member) for member in pool.members]

    def ask(task: Task, method: Method) -> list[Event]:
        def calibration(member: Member) -> Calibration:
            window = method.settings.judged
            return Calibration(0, 1, window) if method.raw else pool.calibration(member.name).at(window)

        case = Case(members, calibration, method.settings, method.leader, task.prompt, lambda: False)
        return list(strategy(method.strategy)(case))

    return ask


def who_knows(blind: Blindness = BLIND) -> Knows:
    """By members' names, which end in their architecture."""
    return lambda name, kind: knows(name.rpartition("-")[2].partition("@")[0], kind, blind)


def attempt(
    ask: Ask, method: Method, task: Task, members: Sequence[str], who: Knows, language: Language = PLAIN
) -> Outcome:
    """Answer a task, and compare the answer with what is right.

    Args:
        ask: Answers it.
        method: How.
        task: The question.
        members: Names, in pool order.
        who: Who can know what.
        language: The words.

    Raises:
        MacrError: It cannot be answered at all.
    """
    began = time.perf_counter()
    happened = ask(task, method)
    seconds = time.perf_counter() - began
    given = collect(happened, method.settings)
    seen = Mechanism()
    if task.item is not None and method.strategy in ("relay", "single"):
        read = partial(follow, scene=task.item.scene, question=task.item.question, language=language)
        seen = observe(happened, members, read, who, method.settings, language)
    total = given.total
    logprobs = [event.logprob for event in happened if isinstance(event, Token)]
    return Outcome(
        method=method.name,
        key=task.key,
        cluster=task.cluster,
        family=task.family,
        text=given.text,
        right=final_line(given.text) == task.answer,
        chain=agrees(given.text, task.reference, language) if task.reference else None,
        prompt=total.prompt_text + total.prompt_image,
        committed=total.committed,
        discarded=total.discarded,
        ingested=total.ingested,
        relays=given.relays,
        handovers=given.handovers,
        seconds=seconds,
        mean=confidence.mean(logprobs) if logprobs else None,
        mechanism=seen,
    )


def final_line(text: str) -> str | None:
    """What stands behind the last "Answer:"; None without one."""
    _, mark, rest = text.rpartition("Answer:")
    return rest.strip().rstrip(".").lower() if mark else None
