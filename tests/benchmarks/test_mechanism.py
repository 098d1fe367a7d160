"""Triggers and winners, counted by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from benchmarks.quality.mechanism import Mechanism, observe
from benchmarks.quality.task import scenes
from benchmarks.quality.trial import Method, live, who_knows
from macr_local import Pool
from macr_local.relay import boundaries, policies
from macr_local.relay.events import Bid, BidOpened, BidReason, Event, Relayed, Token
from macr_local.settings import RelaySettings
from macr_local.tiny.scenes.examination import Item, examination
from macr_local.tiny.scenes.knowledge import BLIND, Blindness
from macr_local.tiny.scenes.reader import follow
from macr_local.tiny.scenes.wording import PLAIN, Language

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

    def trigger(self, leader: str, dropped: str, round: int = 1, reason: BidReason = "confidence") -> Script:
        self.events.append(BidOpened(round, leader, self.index, reason, -2.0, -2.0, dropped.encode()))
        return self

    def bid(self, round: int, member: str, *ids: int) -> Script:
        self.events.append(Bid(round, member, b"", ids, (-0.1,) * len(ids), -0.1, 0.1))
        return self

    def token(self, member: str, id: int, piece: str, z: float) -> Script:
        self.events.append(Token(member, self.index, id, piece.encode(), -0.1, -0.1, z))
        self.index += 1
        return self


def seen(
    item: Item, script: Script, blind: Blindness = BLIND, language: Language = PLAIN, **chosen: object
) -> Mechanism:
    read = partial(follow, scene=item.scene, question=item.question, language=language)
    settings = RelaySettings(window=1, **chosen)  # type: ignore[arg-type]
    return observe(script.events, MEMBERS, read, who_knows(blind), settings, language)


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
    # Behind a beginning, "re" is a part of "green" and no beginning of "red".
    third = Script().lead(NUMBERS).write(NUMBERS, place, frame, digit, then, " g")
    assert seen(item, third.trigger(NUMBERS, "re")).hits == 0


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


def test_who_knows_decides_what_is_a_contest(item: Item) -> None:
    place, frame, digit, then, *_ = values(item)
    nobody: Blindness = dict.fromkeys(BLIND, frozenset({"color"}))
    two: Blindness = {**dict.fromkeys(BLIND, frozenset()), "qwen3vl": frozenset({"color"})}
    script = Script().lead(NUMBERS).write(NUMBERS, place, frame, digit, then).trigger(NUMBERS, " red")
    script.lead(SHAPES, 1, leader=NUMBERS)
    found = seen(item, script, nobody)
    assert (found.triggers, found.hits, found.contests, found.won_by_knower, found.knowers) == (1, 1, 0, 0, 0)
    found = seen(item, script, two)
    assert (found.hits, found.contests, found.won_by_knower) == (1, 1, 1)
    assert found.knowers == pytest.approx(2 / 3)
    everybody = seen(item, script, dict.fromkeys(BLIND, frozenset()))
    assert (everybody.triggers, everybody.hits, everybody.contests) == (1, 0, 0)


def test_a_leader_that_wins_its_own_contest_does_not_know(item: Item) -> None:
    place, frame, digit, then, *_ = values(item)
    script = Script().lead(NUMBERS).write(NUMBERS, place, frame, digit, then).trigger(NUMBERS, " red")
    found = seen(item, script.lead(NUMBERS, 1, leader=NUMBERS))
    assert (found.contests, found.won_by_knower) == (1, 0)


def test_a_contest_is_won_once(item: Item) -> None:
    place, frame, digit, then, color, *_ = values(item)
    script = Script().lead(NUMBERS).write(NUMBERS, place, frame, digit, then).trigger(NUMBERS, " red")
    script.lead(COLORS, 1, bid=1, leader=NUMBERS).write(COLORS, color)
    script.trigger(COLORS, "", 2, "failure").lead(COLORS, 2, leader=COLORS)
    assert seen(item, script).won_by_knower == 1


def test_every_contest_has_its_own_winner(item: Item) -> None:
    place, frame, digit, then, color, link, *_ = values(item)
    script = Script().lead(NUMBERS).write(NUMBERS, place, frame, digit, then)
    script.trigger(NUMBERS, " red").lead(COLORS, 1, bid=1, leader=NUMBERS).write(COLORS, color)
    # This one is no hit, so who wins is no matter; then one more is.
    script.trigger(COLORS, link, 2).lead(NUMBERS, 2, bid=1, leader=COLORS).write(NUMBERS, link)
    script.trigger(NUMBERS, " cross", 3).lead(COLORS, 3, bid=1, leader=NUMBERS)
    found = seen(item, script)
    assert (found.triggers, found.hits, found.contests, found.won_by_knower) == (3, 2, 2, 1)


@pytest.mark.parametrize("reason", ["initiation", "sentence", "failure"])
def test_other_rounds_are_no_triggers(item: Item, reason: BidReason) -> None:
    place, frame, digit, then, *_ = values(item)
    script = Script().lead(NUMBERS).write(NUMBERS, place, frame, digit, then)
    found = seen(item, script.trigger(NUMBERS, " red", reason=reason).lead(COLORS, 1, leader=NUMBERS))
    assert (found.triggers, found.hits, found.contests, found.tokens) == (0, 0, 0, 4)


def test_a_doubted_end_is_no_hit(item: Item) -> None:
    script = Script().lead(NUMBERS).write(NUMBERS, *values(item)[:4])
    found = seen(item, script.trigger(NUMBERS, ""))
    assert (found.triggers, found.hits, found.tokens) == (1, 0, 5)


def test_a_blank_of_its_own_begins_nothing_and_the_word_behind_it_is_a_hit(item: Item) -> None:
    """SentencePiece may put the blank before a word into a token of its own."""
    place, frame, digit, then, *_ = values(item)
    script = Script().lead(SHAPES).write(SHAPES, place, frame, digit, then)
    assert seen(item, script.trigger(SHAPES, " ")).hits == 0
    script = Script().lead(SHAPES).write(SHAPES, place, frame, digit, then, " ")
    assert seen(item, script.trigger(SHAPES, "purple")).hits == 1
    written = Script().lead(SHAPES).write(SHAPES, place, frame, digit, then, " ", "red")
    assert (seen(item, written).values, seen(item, written).weak) == (2, 2)


def test_other_words_hit_and_those_they_stand_for_do_not(item: Item) -> None:
    language = Language(words={"red": "vermilion", "circle": "roundel"})
    place, frame, digit, then, *_ = values(item)
    for dropped, hits in ((" vermilion", 1), (" verm", 1), (" green", 1), (" red", 0), (" roundel", 0)):
        script = Script().lead(NUMBERS).write(NUMBERS, place, frame, digit, then)
        assert seen(item, script.trigger(NUMBERS, dropped), language=language).hits == hits, dropped


def test_a_chain_that_went_wrong_is_followed_as_long_as_it_is_one(item: Item) -> None:
    place, frame, digit, then, color, link, shape, *_ = values(item)
    other = next(word for word in (" red", " blue") if word != color)
    script = Script().lead(NUMBERS).write(NUMBERS, place, frame, digit, then, other, link)
    assert seen(item, script.trigger(NUMBERS, " cross")).hits == 1, "a wrong color is a color"
    script = Script().lead(NUMBERS).write(NUMBERS, place, frame, digit, then, " square", link)
    found = seen(item, script.trigger(NUMBERS, " cross"))
    assert (found.triggers, found.hits) == (1, 0), "nobody knows what belongs there"
    astray = Script().lead(NUMBERS).write(NUMBERS, place, frame, digit, then, " square", link, shape)
    found = seen(item, astray)
    assert (found.tokens, found.values, found.weak) == (7, 1, 0), "what is said behind it is not counted"


def test_a_wrong_yes_in_a_sum_asks_for_a_digit() -> None:
    item = next(
        item
        for item in examination("test", 1, 800)
        if item.question.family == "sum" and first_flag(item) == "no"
    )
    until = [slot.kind for slot in item.reference].index("flag")
    before = [slot.text(0) for slot in item.reference[:until]]
    for flag, hits in ((" yes", 1), (" no", 0)):
        script = Script().lead(COLORS).write(COLORS, *before, flag, ", digit").trigger(COLORS, " four")
        assert seen(item, script).hits == hits


def first_flag(item: Item) -> str:
    return next(slot.value for slot in item.reference if slot.kind == "flag")


def test_a_dropped_trial_is_not_in_the_answer_so_its_tokens_are_watched(item: Item) -> None:
    script = Script().trigger("", "", 0, "initiation").lead(SHAPES, bid=4)
    script.write(SHAPES, *values(item)[:5])
    assert seen(item, script).watched == 1
    assert (seen(item, script, keep_trial=False).watched, seen(item, script).tokens) == (5, 5)
    assert seen(item, script, keep_trial=False, cooldown=2).watched == 3
    later = Script().trigger(NUMBERS, "", 0, "failure").lead(SHAPES, bid=4).write(SHAPES, *values(item)[:5])
    assert seen(item, later, keep_trial=False).watched == 1, "this bid was no trial"


def test_a_doubtful_end_of_a_bid_is_not_of_the_bid(item: Item) -> None:
    place, frame, digit, then, color, *_ = values(item)

    def script(*last: tuple[int, float]) -> Script:
        made = Script().trigger("", "", 0, "initiation").bid(0, NUMBERS, 1, 2, 3).lead(NUMBERS)
        made.token(NUMBERS, 1, place, 0.5).token(NUMBERS, 2, frame, 0.5)
        for (id, z), piece in zip(last, (digit, then, color), strict=False):
            made.token(NUMBERS, id, piece, z)
        return made

    def watched(made: Script, **chosen: object) -> int:
        return seen(item, made, confidence="first-doubt", **chosen).watched

    assert watched(script((3, 0.5), (4, 0.5), (5, 0.5))) == 2, "all three were kept"
    assert watched(script((3, -2.0), (4, 0.5), (5, 0.5))) == 3, "the third was doubted, and written later"
    assert watched(script((7, 0.5), (4, 0.5), (5, 0.5))) == 3, "another was written in its place"
    assert watched(script((3, -2.0), (4, 0.5), (5, 0.5)), cooldown=1) == 2
    alone = Script().trigger("", "", 0, "initiation").bid(0, NUMBERS, 1).lead(NUMBERS)
    assert watched(alone.token(NUMBERS, 1, place, -2.0)) == 0, "the only one is kept in any case"


def test_only_what_begins_a_word_is_watched_where_a_trigger_must(item: Item) -> None:
    place, frame, digit, then, *_ = values(item)
    script = Script().lead(NUMBERS).write(NUMBERS, place, frame, digit, then, " pur", "ple", ",")
    assert (seen(item, script).watched, seen(item, script, boundary="word").watched) == (7, 6)
    assert seen(item, script, boundary="word").watched_weak == seen(item, script).watched_weak == 1


# Against the relay itself.

WAYS: dict[str, dict[str, object]] = {
    "as it is": {},
    "w=1": {"window": 1},
    "w=4, cooldown": {"window": 4, "cooldown": 3},
    "trial dropped": {"keep_trial": False},
    "one relay": {"max_relays": 1},
    "words": {"boundary": "word", "window": 1, "threshold": 0.2},
    "first doubt": {"confidence": "first-doubt", "window": 8},
    "first doubt, cooldown": {"confidence": "first-doubt", "window": 8, "cooldown": 2},
    "in order": {"selection": "order", "window": 1},
    "sentences": {"trigger": "sentence"},
    "never": {"trigger": "never"},
    "one first": {"initiation": SHAPES},
}


@pytest.mark.parametrize("way", WAYS)
def test_what_is_watched_is_what_the_relay_judges(
    way: str, tiny: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = replace(tiny.spec.settings, **WAYS[way])  # type: ignore[arg-type]
    judged: list[bool] = []
    fired: list[bool] = []

    def alarm(settings: RelaySettings, token: Any, mean: Any, z: Any, written: bytes) -> Any:
        begins = settings.boundary == "token" or not boundaries.goes_on(written, token.text)
        judged.append(z is not None and settings.trigger == "confidence" and begins)
        found = real(settings, token, mean, z, written)
        fired.append(found is not None and found.reason == "confidence")
        return found

    real = policies.alarm
    monkeypatch.setattr(policies, "alarm", alarm)
    found = Mechanism()
    for task in scenes("tuning", 3, 4):
        assert task.item is not None
        happened = live(tiny)(task, Method(way, "relay", settings))
        read = partial(follow, scene=task.item.scene, question=task.item.question)
        found += observe(happened, MEMBERS, read, who_knows(), settings)
    assert (found.watched, found.triggers) == (sum(judged), sum(fired))
    assert found.tokens >= found.watched >= found.watched_weak >= found.hits >= found.contests


def test_members_are_known_by_the_end_of_their_names() -> None:
    knows = who_knows()
    assert knows("tiny-minicpmv", "color")
    assert not knows("tiny-minicpmv@2", "shape")
    assert knows("my-own-internvl@1", "shape")
    assert who_knows(dict.fromkeys(BLIND, frozenset({"color"})))("x-qwen3vl", "digit")


def test_counts_add_up() -> None:
    both = Mechanism(tokens=2, hits=1) + Mechanism(tokens=3, knowers=0.5)
    assert both == Mechanism(tokens=5, hits=1, knowers=0.5)
