"""Votes and the surest answer: everyone answers alone, one answer is taken, all tokens are counted."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from asking import PROMPT, answer, one, only
from scripted import END, ScriptedMember, reads

from macr_local.errors import CalibrationError, Cancelled, CapacityError, EngineError
from macr_local.protocol import Member, PromptSize
from macr_local.relay import events
from macr_local.relay.confidence import Calibration
from macr_local.relay.events import Answered, Chosen, Event, Finished, MemberFailed, Relayed, Started, Token
from macr_local.settings import RelaySettings
from macr_local.strategies import Case, strategy
from macr_local.strategies.final import final

MU, SIGMA = -0.5, 0.5


def speaker(name: str, text: str, logprob: float = -0.1, **more: object) -> ScriptedMember:
    """A member that writes a text word by word, then ends."""
    words = [(f" {word}" if i else word, logprob) for i, word in enumerate(text.split(" "))]
    return ScriptedMember(name, reads(*words, (END, logprob)), **more)  # type: ignore[arg-type]


def settings_of(**chosen: object) -> RelaySettings:
    return RelaySettings(**{"window": 2, "max_tokens": 20, **chosen})  # type: ignore[arg-type]


def choose(
    method: str,
    *members: ScriptedMember,
    cancelled: Callable[[], bool] = lambda: False,
    calibration: Callable[[Member], Calibration] = lambda member: Calibration(MU, SIGMA, 2),
    **chosen: object,
) -> Iterator[Event]:
    """The events of one question, as they come."""
    case = Case(members, calibration, settings_of(**chosen), None, PROMPT, cancelled)
    return strategy(method)(case)


def failing(name: str, at: str) -> ScriptedMember:
    """A member that fails at a call."""

    def before(method: str, member: ScriptedMember) -> None:
        if method == at:
            raise EngineError(f"{name} broke")

    return ScriptedMember(name, reads(("yes", -0.1)), before=before)


# What an answer comes down to.


@pytest.mark.parametrize(
    ("text", "comes_to"),
    [
        ("It is red.\nAnswer: Red.", "red"),
        ("Answer: two\nAnswer: three", "3"),
        ("thirteen", "13"),
        ("**Answer:** (B)", "(b)"),
        ("The answer is: no", "no"),
        ("no.\nSo it is yes.\n\n", "so it is yes"),
        ("Answer: “Red  circle five”.", "red circle 5"),
        ("there are phonetwo", "there are phonetwo"),
        ("Answer:", None),
        ("Answer: 2", "2"),
        ("**Answer:**\n\n3", "3"),
        ("Answer: 2\n\nI hope this helps.", "2"),
        ("Answer: 2\nAnswer:", None),
        ("```\nyes\n```", "yes"),
        ("The answer: the answer: no", "no"),
        ("Zero", "0"),
        ("Twenty.", "20"),
        (" \n ", None),
        ("", None),
    ],
)
def test_answers_are_compared_without_their_dress(text: str, comes_to: str | None) -> None:
    assert final(text) == comes_to


# Who is taken.


@pytest.mark.parametrize(
    ("said", "taken", "votes", "tied"),
    [
        (("red", "blue", "Answer: blue."), 1, 2, False),
        (("red", "blue", "green"), 0, 1, True),
        (("two", "blue", "2"), 0, 2, False),
        (("red", "blue", "blue", "red"), 0, 2, True),
        (("green", "red", "blue", "blue", "red"), 1, 2, True),
        (("Answer:", "blue", "Answer:"), 1, 1, False),
        (("Answer:", "Answer:"), 0, 0, False),
        (("red",), 0, 1, False),
    ],
)
def test_the_majority_wins_and_ties_go_to_the_first(
    said: tuple[str, ...], taken: int, votes: int, tied: bool
) -> None:
    members = [speaker(f"m{i}", text) for i, text in enumerate(said)]
    given = answer(choose("vote", *members))
    assert [segment.member for segment in given.segments] == [f"m{taken}"]
    assert given.text == said[taken]
    assert given.chosen == Chosen(f"m{taken}", len(said), votes, tied)


def test_the_surest_whole_answer_wins_in_its_own_member_s_measure() -> None:
    members = [speaker("bold", "a b c", -0.2), speaker("shy", "d e f", -0.3)]
    measures = {"bold": Calibration(-0.1, 0.1, 2), "shy": Calibration(-0.6, 0.1, 2)}
    given = answer(choose("best-of", *members, calibration=lambda member: measures[member.name]))
    assert given.text == "d e f"
    assert given.chosen == Chosen("shy", 2)
    assert [round(told.z or 0.0, 9) for told in given.answers] == [-1.0, 3.0]
    again = answer(choose("best-of", *members))
    assert again.text == "a b c"


def test_equal_confidence_goes_to_the_first() -> None:
    given = answer(choose("best-of", speaker("m0", "a", -0.2), speaker("m1", "b"), speaker("m2", "c")))
    assert given.text == "b"
    assert given.chosen == Chosen("m1", 3, tied=True)


@pytest.mark.parametrize("method", ["vote", "best-of"])
def test_an_answer_that_says_nothing_is_not_taken_however_sure(method: str) -> None:
    silent = ScriptedMember("silent", reads((END, -0.001)))
    given = answer(choose(method, silent, speaker("m1", "a", -2.0)))
    assert given.text == "a"
    assert given.chosen is not None
    assert given.chosen.among == 1
    assert answer(choose(method, silent)).text == ""


def test_best_of_needs_every_calibration_and_a_vote_needs_none() -> None:
    def missing(member: Member) -> Calibration:
        raise CalibrationError(f"{member.name} has none")

    members = [speaker("m0", "a"), speaker("m1", "b")]
    with pytest.raises(CalibrationError, match="m0"):
        list(choose("best-of", *members, calibration=missing))
    assert members[0].calls == []
    happened = list(choose("vote", *members, calibration=missing))
    assert [event.z for event in only(happened, Answered)] == [None, None]


# What is told, and what it cost.


def test_every_answer_is_told_and_only_the_chosen_one_is_written() -> None:
    members = [speaker("m0", "a b"), speaker("m1", "c d e", -0.4), speaker("m2", "c d e", -0.2)]
    happened = list(choose("vote", *members))
    assert [type(event) for event in happened[:6]] == [
        *(Started, Answered, Answered, Answered),
        *(Chosen, Relayed),
    ]
    assert one(happened, Started).members == ("m0", "m1", "m2")
    told = only(happened, Answered)
    assert [(event.member, event.text, event.final, event.tokens) for event in told] == [
        ("m0", "a b", "a b", 3),
        ("m1", "c d e", "c d e", 4),
        ("m2", "c d e", "c d e", 4),
    ]
    assert told[1].mean == pytest.approx(-0.4)
    assert told[1].z == pytest.approx((-0.4 - MU) / SIGMA)
    assert {event.member for event in only(happened, Token)} == {"m1"}
    given = answer(happened)
    assert given.text == "c d e"
    assert given.answers == tuple(told)
    assert given.to_dict()["answers"][2]["text"] == "c d e"
    assert given.to_dict()["chosen"] == {"member": "m1", "among": 3, "votes": 2, "tied": False}


def test_all_tokens_are_counted_and_those_of_others_are_discarded() -> None:
    size = PromptSize(text=5, image=3, images=1)
    members = [speaker("m0", "a b", prompt=size), speaker("m1", "c", prompt=size)]
    total = answer(choose("vote", *members)).counters
    assert (total["m0"].committed, total["m0"].discarded) == (3, 0)
    assert (total["m1"].committed, total["m1"].discarded) == (0, 2)
    for name in total:
        assert (total[name].prompt_text, total[name].prompt_image) == (5, 3)
        assert total[name].work_ratio == 1.0
    assert [member.calls.count("begin") for member in members] == [1, 1]


def test_each_answer_is_the_one_that_the_member_gives_alone() -> None:
    chosen = {"stop": ("e",), "max_tokens": 3}
    members = [speaker("m0", "a b c d"), speaker("m1", "c d e"), speaker("m2", "x y")]
    told = only(choose("vote", *members, **chosen), Answered)
    for event, member in zip(told, members, strict=True):
        case = Case([member], lambda m: Calibration(MU, SIGMA, 2), settings_of(**chosen), None, PROMPT, bool)
        alone = answer(strategy("single")(case))
        assert (event.text, event.reason) == (alone.text, alone.finish_reason)
        assert event.tokens == alone.segments[0].tokens


# When something goes wrong.


@pytest.mark.parametrize("at", ["prepare", "begin", "propose"])
def test_a_member_that_fails_has_no_vote(at: str) -> None:
    happened = list(choose("vote", failing("bad", at), speaker("m1", "a"), speaker("m2", "b")))
    assert one(happened, MemberFailed).error == "bad broke."
    given = answer(happened)
    assert given.text == "a"
    assert list(given.counters) == ["bad", "m1", "m2"]
    assert given.chosen == Chosen("m1", 2, votes=1, tied=True)
    assert [told.member for told in given.answers] == ["m1", "m2"]


@pytest.mark.parametrize("at", ["begin", "propose", "accept"])
def test_a_member_that_fails_costs_what_it_costs_in_a_relay(at: str) -> None:
    def bad() -> ScriptedMember:
        def before(method: str, member: ScriptedMember) -> None:
            if method == at and member.calls.count("propose") >= 3 * (at != "begin"):
                raise EngineError("broke")

        return speaker("bad", "a b c d", before=before)

    given = answer(choose("vote", bad(), speaker("m1", "x")))
    relay = answer(choose("relay", bad(), speaker("m1", "x"), initiation="bad", trigger="never"))
    cost = relay.counters["bad"]
    assert given.counters["bad"] == replace(cost, committed=0, discarded=cost.committed + cost.discarded)
    assert given.counters["bad"].prompt_text == (0 if at == "begin" else 7)
    assert given.total.work_ratio == relay.total.work_ratio


def test_a_prompt_that_does_not_fit_one_member_is_refused_before_any_decode() -> None:
    wide, narrow = speaker("wide", "a"), speaker("narrow", "b", n_ctx=12)
    with pytest.raises(CapacityError, match="wide needs 13 cells of 100000, narrow needs 13 cells of 12"):
        list(choose("vote", wide, narrow))
    assert wide.calls == ["prepare"]


def test_the_last_error_is_raised_when_all_have_failed() -> None:
    with pytest.raises(EngineError, match="worse broke"):
        list(choose("vote", failing("bad", "propose"), failing("worse", "propose")))


def test_a_cancel_leaves_a_choice_among_the_answers_that_are_complete() -> None:
    asked = [0]

    def cancelled() -> bool:
        asked[0] += 1
        return asked[0] > 12

    members = [speaker("m0", "a"), speaker("m1", "b c d e f g h i j k")]
    happened = list(choose("vote", *members, cancelled=cancelled))
    assert [event.reason for event in only(happened, Answered)] == ["end", "cancelled"]
    last = one(happened, Finished)
    assert last.reason == "cancelled"
    assert answer(happened).text == "a"
    assert last.counters["m1"].prompt_text == 7


def test_a_cancel_before_any_answer_is_complete_keeps_what_was_said() -> None:
    asked = [0]

    def cancelled() -> bool:
        asked[0] += 1
        return asked[0] > 8

    given = answer(choose("best-of", speaker("m0", "a b c d e f g"), speaker("m1", "x"), cancelled=cancelled))
    assert given.finish_reason == "cancelled"
    assert given.text
    assert "a b c d e f g".startswith(given.text)


@pytest.mark.parametrize("method", ["vote", "best-of"])
@pytest.mark.parametrize("victim", [0, 1, 2])
@pytest.mark.parametrize(
    ("at", "nth"), [("prepare", 1), ("begin", 1), ("propose", 1), ("propose", 3), ("accept", 2)]
)
def test_a_cancel_anywhere_ends_the_answer_with_what_there_is(
    method: str, victim: int, at: str, nth: int
) -> None:
    gone: list[bool] = []

    def interrupted(called: str, member: ScriptedMember) -> None:
        if called == at and member.calls.count(at) == nth:
            gone.append(True)
            raise Cancelled("interrupted")

    members = [speaker(f"m{i}", "a b c d e") for i in range(3)]
    members[victim].before = interrupted
    happened = list(choose(method, *members, cancelled=lambda: bool(gone)))
    assert only(happened, Finished) == happened[-1:]
    assert one(happened, Finished).reason == "cancelled"
    assert only(happened, MemberFailed) == []
    given = answer(happened)
    if at in ("prepare", "begin"):
        assert (len(happened), given.text) == (1, "")
    elif victim > 0:
        assert given.text == "a b c d e"
    else:
        assert given.text == {("propose", 1): "", ("propose", 3): "a b", ("accept", 2): "a"}[at, nth]
    assert all(counters.committed == 0 for name, counters in given.counters.items() if name != "m0")


def test_a_deadline_counts_from_the_beginning_of_the_question() -> None:
    given = answer(choose("vote", speaker("m0", "a b"), speaker("m1", "c"), deadline=1e-9))
    assert given.finish_reason == "deadline"


def test_at_the_deadline_the_choice_is_among_the_answers_that_are_complete() -> None:
    def dawdle(method: str, member: ScriptedMember) -> None:
        if method == "propose":
            time.sleep(0.6)

    slow, never = speaker("slow", "b", -0.001, before=dawdle), speaker("never", "b", -0.001)
    happened = list(choose("best-of", speaker("m0", "a"), slow, never, deadline=0.5))
    assert [event.reason for event in only(happened, Answered)] == ["end", "deadline", "deadline"]
    assert (answer(happened).text, one(happened, Finished).reason) == ("a", "deadline")
    assert one(happened, Finished).seconds >= 0.6
    assert never.calls.count("propose") == 0


def test_answers_given_up_half_way_leave_no_member_computing() -> None:
    members = [speaker("m0", "a b c"), speaker("m1", "d")]
    happening = choose("vote", *members)
    assert isinstance(next(happening), Started)
    happening.close()  # type: ignore[attr-defined]
    assert [member.calls.count("propose") for member in members] == [0, 0]


def test_every_event_of_a_choice_survives_a_trace() -> None:
    from macr_local.relay.trace import decode, encode

    for event in choose("best-of", speaker("m0", "a"), speaker("m1", "b")):
        assert decode(encode(event)) == event
        if isinstance(event, events.Answered):
            assert math.isfinite(event.z or 0.0)
