"""Triggers and winners, counted by hand."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pytest

from benchmarks.quality.mechanism import Mechanism, observe
from benchmarks.quality.trial import who_knows
from macr_local.relay.events import Bid, BidOpened, Event, Relayed, Token
from macr_local.settings import RelaySettings
from macr_local.tiny.scenes.examination import Item, examination
from macr_local.tiny.scenes.reader import follow

MEMBERS = ("tiny-qwen3vl", "tiny-internvl", "tiny-minicpmv")
NUMBERS, SHAPES, COLORS = MEMBERS
"""What each knows."""


@pytest.fixture(scope="module")
def item() -> Item:
    """A question whose chain begins with the color of the top left."""
    return next(
        item
        for item in examination("test", 1, 400)
        if item.question.family == "largest" and item.reference[0].value == "top left"
    )


class Script:
    """Events of an answer, put together by hand."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.index = 0

    def lead(self, member: str, round: int = 0, bid: int = 0, leader: str | None = None) -> Script:
        if bid:
            self.events.append(Bid(round, member, b"", (0,) * bid, (-0.1,) * bid, -0.1, 0.1))
        self.events.append(Relayed(round, leader, member, 0.1))
        return self

    def write(self, member: str, *pieces: str, z: float | None = 0.5) -> Script:
        for piece in pieces:
            self.events.append(Token(member, self.index, 0, piece.encode(), -0.1, -0.1, z))
            self.index += 1
        return self

    def trigger(self, leader: str, dropped: str, round: int = 1) -> Script:
        self.events.append(BidOpened(round, leader, self.index, "confidence", -2.0, -2.0, dropped.encode()))
        return self


def seen(item: Item, script: Script, **chosen: object) -> Mechanism:
    read = partial(follow, scene=item.scene, question=item.question)
    settings = RelaySettings(window=1, **chosen)  # type: ignore[arg-type]
    return observe(script.events, MEMBERS, read, who_knows(), settings)


def values(item: Item) -> Sequence[str]:
    """The digit, color and shape of the first place, each as it is written."""
    return [slot.text(0) for slot in item.reference[:8]]


def test_a_trigger_on_a_word_that_the_leader_cannot_know_is_a_hit_and_a_knower_may_win(item: Item) -> None:
    place, frame, digit, then, color, *_ = values(item)
    script = Script().lead(NUMBERS).write(NUMBERS, place, frame, digit, then)
    script.trigger(NUMBERS, " red").lead(COLORS, 1, bid=1, leader=NUMBERS).write(COLORS, color)
    found = seen(item, script)
    assert (found.triggers, found.hits, found.contests, found.won_by_knower) == (1, 1, 1, 1)
    assert found.knowers == pytest.approx(1 / 3)
    # Five tokens that stand and one that was dropped; only the dropped one was beyond its writer.
    assert (found.tokens, found.weak) == (6, 1)
    assert (found.watched, found.watched_weak) == (5, 1), "the winner's bid is not watched"
    assert (found.values, found.values_unknown) == (2, 0)


def test_a_winner_that_does_not_know_is_counted_so(item: Item) -> None:
    place, frame, digit, then, color, *_ = values(item)
    script = Script().lead(NUMBERS).write(NUMBERS, place, frame, digit, then)
    script.trigger(NUMBERS, " red").lead(SHAPES, 1, bid=1, leader=NUMBERS).write(SHAPES, color)
    found = seen(item, script)
    assert (found.contests, found.won_by_knower) == (1, 0)
    assert (found.weak, found.values_unknown) == (2, 1)


def test_a_trigger_elsewhere_is_no_hit(item: Item) -> None:
    place, frame, digit, _then, *_ = values(item)
    for written, dropped in (((), place), ((place,), frame), ((place, frame), digit)):
        script = Script().lead(NUMBERS).write(NUMBERS, *written).trigger(NUMBERS, dropped)
        script.lead(COLORS, 1, bid=1, leader=NUMBERS)
        found = seen(item, script)
        assert (found.triggers, found.hits, found.contests) == (1, 0, 0), dropped


def test_a_word_that_is_no_value_of_its_place_is_no_hit(item: Item) -> None:
    place, frame, digit, then, *_ = values(item)
    script = Script().lead(NUMBERS).write(NUMBERS, place, frame, digit, then)
    for dropped in (" purposeless", ";", " yes"):
        assert seen(item, script.trigger(NUMBERS, dropped)).hits == 0


def test_the_first_piece_of_a_word_counts_and_the_second_does_not(item: Item) -> None:
    place, frame, digit, then, *_ = values(item)
    first = Script().lead(NUMBERS).write(NUMBERS, place, frame, digit, then).trigger(NUMBERS, " pur")
    assert seen(item, first).hits == 1
    second = Script().lead(NUMBERS).write(NUMBERS, place, frame, digit, then, " pur")
    found = seen(item, second.trigger(NUMBERS, "ple"))
    assert (found.triggers, found.hits) == (1, 0)


def test_a_word_in_two_tokens_is_one_value(item: Item) -> None:
    place, frame, digit, then, color, *_ = values(item)
    script = Script().lead(NUMBERS).write(NUMBERS, place, frame, digit, then, color[:3], color[3:])
    found = seen(item, script)
    assert (found.tokens, found.values, found.weak) == (6, 2, 1)


def test_what_was_not_judged_could_not_have_triggered(item: Item) -> None:
    place, frame, digit, then, color, *_ = values(item)
    script = Script().lead(SHAPES).write(SHAPES, place, frame, digit, then, color)
    assert (seen(item, script).watched, seen(item, script).watched_weak) == (5, 2)
    cooled = seen(item, script, cooldown=3)
    assert (cooled.watched, cooled.watched_weak) == (2, 1)
    short = Script().lead(SHAPES).write(SHAPES, place, frame, z=None).write(SHAPES, digit)
    assert (seen(item, short).watched, seen(item, short).watched_weak) == (1, 1)
    limited = Script().lead(SHAPES, 1).write(SHAPES, place, frame, digit)
    assert seen(item, limited, max_relays=1).watched == 0


def test_counts_add_up() -> None:
    both = Mechanism(tokens=2, hits=1) + Mechanism(tokens=3, knowers=0.5)
    assert both == Mechanism(tokens=5, hits=1, knowers=0.5)
