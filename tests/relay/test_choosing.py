"""Votes and the surest answer: everyone answers alone, one answer is taken, all tokens are counted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pytest
from asking import PROMPT, answer, one, only
from scripted import END, ScriptedMember, reads

from macr_local.errors import CalibrationError, EngineError
from macr_local.protocol import Member, PromptSize
from macr_local.relay import events
from macr_local.relay.confidence import Calibration
from macr_local.relay.events import Answered, Event, Finished, MemberFailed, Started, Token
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
        (" \n ", None),
        ("", None),
    ],
)
def test_answers_are_compared_without_their_dress(text: str, comes_to: str | None) -> None:
    assert final(text) == comes_to


# Who is taken.


@pytest.mark.parametrize(
    ("said", "taken", "note"),
    [
        (("red", "blue", "Answer: blue."), 1, "vote: 2 of 3"),
        (("red", "blue", "green"), 0, "vote: 1 of 3, tied; the first member decides"),
        (("two", "blue", "2"), 0, "vote: 2 of 3"),
        (("red", "blue", "blue", "red"), 0, "vote: 2 of 4, tied; the first member decides"),
        (("Answer:", "blue", "Answer:"), 1, "vote: 1 of 3"),
    ],
)
def test_the_majority_wins_and_ties_go_to_the_first(said: tuple[str, ...], taken: int, note: str) -> None:
    members = [speaker(f"m{i}", text) for i, text in enumerate(said)]
    given = answer(choose("vote", *members))
    assert [segment.member for segment in given.segments] == [f"m{taken}"]
    assert given.text == said[taken]
    assert given.notes[-1] == note


def test_the_surest_whole_answer_wins_in_its_own_member_s_measure() -> None:
    members = [speaker("bold", "a b c", -0.2), speaker("shy", "d e f", -0.3)]
    measures = {"bold": Calibration(-0.1, 0.1, 2), "shy": Calibration(-0.6, 0.1, 2)}
    given = answer(choose("best-of", *members, calibration=lambda member: measures[member.name]))
    assert given.text == "d e f"
    assert given.notes[-1] == "best of 2: z 3.00"
    again = answer(choose("best-of", *members))
    assert again.text == "a b c"


def test_equal_confidence_goes_to_the_first() -> None:
    given = answer(choose("best-of", speaker("m0", "a"), speaker("m1", "b")))
    assert given.text == "a"


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
    assert [type(event) for event in happened[:4]] == [Started, Answered, Answered, Answered]
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
    assert given.notes[-1] == "vote: 1 of 2, tied; the first member decides"


def test_tokens_of_a_member_that_failed_on_the_way_are_counted() -> None:
    bad = speaker("bad", "a b c d")
    bad.before = lambda method, member: _break(member.calls.count("propose") == 3)
    given = answer(choose("vote", bad, speaker("m1", "x")))
    assert given.counters["bad"].discarded == 2
    assert given.counters["bad"].prompt_text == 7


def _break(now: bool) -> None:
    if now:
        raise EngineError("broke")


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


def test_a_deadline_counts_from_the_beginning_of_the_question() -> None:
    given = answer(choose("vote", speaker("m0", "a b"), speaker("m1", "c"), deadline=1e-9))
    assert given.finish_reason == "deadline"


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
