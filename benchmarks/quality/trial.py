"""One way of answering, put to a set of tasks; what came out of each."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from benchmarks.quality.mechanism import Knows, Mechanism, observe
from benchmarks.quality.task import Task
from macr_local import Pool, Relay
from macr_local.relay.answer import Answer, collect
from macr_local.relay.counters import Counters
from macr_local.settings import RelaySettings
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
    """

    name: str
    strategy: str
    settings: RelaySettings
    leader: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one task."""

    key: str
    cluster: int
    family: str
    text: str
    right: bool
    """Whether the final answer is."""
    chain: bool | None
    """Whether every value of the worked answer is; None where nobody knows it."""
    counters: Counters
    relays: int
    handovers: int
    seconds: float
    mechanism: Mechanism

    @property
    def generated(self) -> int:
        """Tokens written, whether they joined the answer or not."""
        return self.counters.committed + self.counters.discarded


def final_line(text: str) -> str | None:
    """What stands behind the last "Answer:"; None without one."""
    _, mark, rest = text.rpartition("Answer:")
    return rest.strip().rstrip(".").lower() if mark else None


def who_knows(blind: Blindness = BLIND) -> Knows:
    """By members' names, which end in their architecture."""
    return lambda name, kind: knows(name.rpartition("-")[2].partition("@")[0], kind, blind)


def attempt(
    pool: Pool, method: Method, tasks: Iterable[Task], knows: Knows, language: Language = PLAIN
) -> list[Outcome]:
    """Answer every task.

    Raises:
        MacrError: A task cannot be answered at all.
    """
    relay = Relay(pool, method.settings, strategy=method.strategy, leader=method.leader)
    members = [member.name for member in pool.members]
    outcomes = []
    for task in tasks:
        began = time.perf_counter()
        with relay.stream(task.prompt) as stream:
            happened = list(stream)
        seconds = time.perf_counter() - began
        given = collect(happened, relay.settings)
        seen = Mechanism()
        if task.item is not None and method.strategy in ("relay", "single"):
            read = partial(follow, scene=task.item.scene, question=task.item.question, language=language)
            seen = observe(happened, members, read, knows, relay.settings, language)
        outcomes.append(outcome(task, given, seconds, seen, language))
    return outcomes


def outcome(task: Task, given: Answer, seconds: float, seen: Mechanism, language: Language) -> Outcome:
    """Compare an answer with the task."""
    return Outcome(
        key=task.key,
        cluster=task.cluster,
        family=task.family,
        text=given.text,
        right=final_line(given.text) == task.answer,
        chain=agrees(given.text, task.reference, language) if task.reference else None,
        counters=given.total,
        relays=given.relays,
        handovers=given.handovers,
        seconds=seconds,
        mechanism=seen,
    )


def methods(pool: Pool, settings: RelaySettings) -> list[Method]:
    """Each member alone, the two ways to choose among finished answers, and the relay."""
    alone = [Method(member.name, "single", settings, member.name) for member in pool.members]
    others = [Method(name, name, settings) for name in ("vote", "best-of", "relay")]
    return [*alone, *others]
