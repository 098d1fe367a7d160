"""A sweep on members that remember sees what the pool itself would show."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.quality.task import Task
from benchmarks.quality.trial import Method, live, recalled
from macr_local import Pool
from macr_local.images import load
from macr_local.relay.counters import Counters
from macr_local.relay.events import Event, Finished, Started
from macr_local.settings import RelaySettings
from tests.oracles.questions import scenes as questions


def methods(settings: RelaySettings) -> list[Method]:
    ways = [
        *(replace(settings, window=w, threshold=t) for w in (1, 3, 8) for t in (-1.5, -0.3)),
        replace(settings, prune=False),
        replace(settings, keep_trial=False),
        replace(settings, cooldown=2),
        replace(settings, selection="order"),
    ]
    return [Method(str(number), "relay", way) for number, way in enumerate(ways)]


def decided(happened: list[Event]) -> list[Event]:
    """All but times, and what was computed."""
    return [event for event in happened if not isinstance(event, (Started, Finished))]


def test_recalled_answers_are_the_live_ones_to_the_last_bit(tiny: Pool, tmp_path: Path) -> None:
    asked = questions(4, tmp_path)
    ask_live, ask_recalled = live(tiny), recalled(tiny)
    for number, one in enumerate(asked):
        task = Task(str(number), load(one.picture), number, one.text, "", "")
        # One after the other: what remembers must have its members to itself while the question is the same.
        each = methods(tiny.spec.settings)
        pairs = zip(
            each,
            [ask_live(task, one) for one in each],
            [ask_recalled(task, one) for one in each],
            strict=True,
        )
        for method, happened, again in pairs:
            assert decided(happened) == decided(again), (one.text, method.settings)
            for a, b in zip(finished(happened), finished(again), strict=True):
                assert (a.committed, a.discarded, a.ingested) == (b.committed, b.discarded, b.ingested)


def finished(happened: list[Event]) -> list[Counters]:
    last = happened[-1]
    assert isinstance(last, Finished)
    return list(last.counters.values())


def test_what_was_written_once_is_not_computed_again(tiny: Pool, tmp_path: Path) -> None:
    (one,) = questions(1, tmp_path)
    ask = recalled(tiny)
    task = Task("0", load(one.picture), 0, one.text, "", "")
    method = Method("relay", "relay", tiny.spec.settings)
    ask(task, method)
    before = [member.work for member in tiny.members]
    ask(task, method)
    assert [member.work for member in tiny.members] == before
