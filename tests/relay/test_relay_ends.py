"""How an answer ends: stop strings, limits, full contexts, failures, cancels, deadlines."""

from __future__ import annotations

import itertools
import threading

import pytest
from asking import PROMPT, always, answer, ask, controller, member, one, only
from scripted import ScriptedMember, calibrated, failing, reads, says

from macr_local.errors import (
    CalibrationError,
    Cancelled,
    CapacityError,
    ConfigError,
    EngineError,
    TemplateError,
)
from macr_local.protocol import PromptSize
from macr_local.relay.controller import Controller
from macr_local.relay.events import Bid, BidOpened, Event, Finished, MemberFailed, Relayed, Started, Token
from macr_local.settings import RelaySettings

# Stop strings and max_tokens.


def test_a_stop_string_ends_the_answer_before_it() -> None:
    events = ask(member("a", reads(("one", -0.1), (" ST", -0.1), ("OP two", -0.1))), stop=("STOP",), window=1)
    assert (answer(events).text, one(events, Finished).reason) == ("one ", "stop")
    assert one(events, Finished).index == 3


def test_a_stop_string_that_two_members_write_together_ends_the_answer() -> None:
    a = member("a", reads(("one", -0.1), (" ST", -0.1), ("?", -9.0)))
    b = member("b", says(lambda text: ("OP" if text.endswith("ST") else "b", -0.3)))
    events = ask(a, b, stop=("STOP",), initiation="a")
    assert (answer(events).text, one(events, Finished).reason) == ("one ", "stop")
    assert [segment.text for segment in answer(events).segments] == ["one ", ""]
    assert only(events, Bid)[1].short


def test_a_stop_string_does_not_count_inside_a_thought() -> None:
    script = reads(("<think>", -0.1), ("STOP", -0.1), ("</think>", -0.1), ("red", -0.1), ("STOP", -0.1))
    events = ask(member("a", script), stop=("STOP",))
    assert (answer(events).text, answer(events).thought, one(events, Finished).reason) == (
        "red",
        "STOP",
        "stop",
    )


def test_max_tokens_cuts_a_winning_bid() -> None:
    events = ask(member("a", always("a", -0.1)), window=5, max_tokens=3)
    assert (answer(events).text, one(events, Finished).reason) == ("aaa", "max_tokens")
    assert (answer(events).counters["a"].committed, answer(events).counters["a"].discarded) == (3, 2)


# Room.


def test_a_prompt_that_does_not_fit_is_refused_before_any_decode_with_every_member_s_need() -> None:
    small = member("small", always("a", -0.1), prompt=PromptSize(500, 20, 1), n_ctx=512)
    large = member("large", always("b", -0.1), prompt=PromptSize(480, 20, 1), n_ctx=4096)
    with pytest.raises(CapacityError) as caught:
        ask(large, small, window=16)
    assert "large needs 516 cells of 4096, small needs 536 cells of 512" in str(caught.value)
    assert "n_ctx" in caught.value.fix
    assert "begin" not in small.calls + large.calls


def test_a_prompt_fits_when_it_leaves_room_for_one_bid() -> None:
    exact = member("exact", always("a", -0.1), prompt=PromptSize(30, 0, 0), n_ctx=32)
    assert answer(ask(exact)).finish_reason == "context_full"
    with pytest.raises(CapacityError):
        ask(member("less", always("a", -0.1), prompt=PromptSize(31, 0, 0), n_ctx=32))


@pytest.mark.parametrize("prune", [True, False])
def test_a_member_without_room_abstains_and_the_others_go_on(prune: bool) -> None:
    full = member("full", always("f", -0.05), prompt=PromptSize(10, 0, 0), n_ctx=14)
    a = member("a", says(lambda text: ("a", -0.1 if len(text) != 6 else -9.0)))
    events = ask(full, a, initiation="a", prune=prune, max_tokens=12)
    bid = next(bid for bid in only(events, Bid) if bid.member == "full")
    assert (bid.note, bid.tokens, bid.z, bid.bound) == ("no room for a bid", (), None, None)
    assert [relayed.winner for relayed in only(events, Relayed)] == ["a", "a"]
    assert one(events, Finished).reason == "max_tokens"
    assert only(events, MemberFailed) == []


def test_a_leader_without_room_for_a_bid_hands_on_to_one_that_has_it() -> None:
    a = member("a", reads(*[("a", -0.1)] * 4, ("?", -9.0)), prompt=PromptSize(10, 0, 0), n_ctx=15)
    events = ask(a, member("b", always("b", -0.3)), max_tokens=8)
    assert answer(events).text == "aaaabbbb"
    assert (
        next(bid.note for bid in only(events, Bid) if bid.round == 1 and bid.member == "a")
        == "no room for a bid"
    )


def test_an_answer_ends_where_the_leader_has_no_room() -> None:
    a = member("a", always("a", -0.1), prompt=PromptSize(10, 0, 0), n_ctx=17)
    events = ask(a)
    assert (one(events, Finished).reason, answer(events).text) == ("context_full", "a" * 7)


def test_an_answer_ends_where_nobody_has_room_for_a_bid() -> None:
    def tight(name: str, n_ctx: int) -> ScriptedMember:
        script = says(lambda text: (name, -9.0 if len(text) == 4 else -0.1))
        return member(name, script, prompt=PromptSize(10, 0, 0), n_ctx=n_ctx)

    # "aaaa" is four tokens of a, and two of b.
    events = ask(tight("a", 15), tight("b", 13))
    assert (one(events, Finished).reason, answer(events).text) == ("context_full", "aaaa")
    assert {bid.note for bid in only(events, Bid) if bid.round == 1} == {"no room for a bid"}


@pytest.mark.parametrize("selection", ["best", "order"])
def test_the_fixed_order_passes_over_members_without_room(selection: str) -> None:
    a = member("a", says(lambda text: ("a", -9.0 if len(text) == 6 else -0.1)))
    full = member("full", always("f", -0.1), prompt=PromptSize(10, 0, 0), n_ctx=13)
    events = ask(a, full, member("b", always("b", -0.1)), selection=selection, initiation="a")
    assert only(events, Relayed)[1].winner == "b"


# Failures.


@pytest.mark.parametrize("method", ["begin", "ingest", "branch", "propose", "accept", "drop"])
@pytest.mark.parametrize("bids", ["turn", "parallel"])
def test_a_member_that_fails_is_out_and_the_others_answer(method: str, bids: str) -> None:
    script = says(lambda text: ("a", -0.1 if len(text) % 4 != 2 else -9.0))
    broken = member("broken", always("x", -0.2), before=failing(method))
    events = ask(member("a", script), broken, member("b", always("b", -0.3)), bids=bids, prune=False)
    assert one(events, MemberFailed) == MemberFailed("broken", f"broken broke in {method}.")
    assert one(events, Finished).reason == "max_tokens"
    place = events.index(one(events, MemberFailed))
    assert {bid.note for bid in only(events[place:], Bid) if bid.member == "broken"} <= {
        "failed",
        "failed before",
    }
    assert answer(events).failed == (MemberFailed("broken", f"broken broke in {method}."),)
    assert "x" not in answer(events).text


def test_a_winner_that_cannot_keep_its_bid_loses_to_the_next() -> None:
    broken = member("broken", always("x", -0.1), before=failing("adopt"))
    events = ask(broken, member("b", always("b", -0.3)), member("c", always("c", -0.4)))
    assert one(events, Relayed).winner == "b"
    assert answer(events).text == "b" * 12


def test_a_leader_that_fails_in_mid_character_leaves_whole_text_to_the_others() -> None:
    dog = "🐕".encode()
    broken = member(
        "broken",
        reads(("a", -0.1), ("a", -0.1), (dog[:2], -0.1), (dog[2:], -0.1)),
        before=failing("propose", 4),
    )
    events = ask(broken, member("b", always("b", -0.3)), max_tokens=6)
    opened = only(events, BidOpened)[1]
    assert (opened.reason, opened.leader, opened.index, opened.z, opened.dropped) == (
        "failure",
        "broken",
        3,
        None,
        b"",
    )
    assert answer(events).text == "aabbb"


def test_nobody_completes_the_character_of_a_leader_that_failed() -> None:
    dog = "🐕".encode()
    broken = member(
        "broken", reads(("a", -0.1), ("a", -0.1), (dog[:2], -0.1), ("?", -0.1)), before=failing("propose", 4)
    )
    other = member("b", reads(("aa", -0.3), (dog[2:], -0.3), ("b", -0.3)))
    events = ask(broken, other, max_tokens=5)
    assert [t.text for t in only(events, Token)[3:]] == [dog[2:], b"b"]
    assert answer(events).text == "aab"


def test_a_named_leader_that_fails_in_its_prefill_is_replaced_by_a_round() -> None:
    broken = member("broken", always("x", -0.1), before=failing("begin"))
    events = ask(broken, member("b", always("b", -0.3)), initiation="broken", max_tokens=3)
    assert [type(event) for event in events[:3]] == [Started, MemberFailed, BidOpened]
    assert one(events, BidOpened) == BidOpened(0, None, 0, "failure")
    assert answer(events).text == "bbb"


def test_without_calibrations_a_failed_leader_is_followed_in_pool_order() -> None:
    broken = member("broken", always("x", -0.1), before=failing("propose", 3))
    settings = RelaySettings(initiation="broken", trigger="never", max_tokens=5)
    events = list(Controller([broken, member("b", always("b", -0.3))], {}, settings).run(PROMPT))
    assert answer(events).text == "xxbbb"
    assert only(events, Bid) == []


def test_when_every_member_has_failed_the_last_error_is_raised_after_the_events() -> None:
    a = member("a", always("a", -0.1), before=failing("propose", 4))
    b = member("b", always("b", -0.1), before=failing("propose"))
    seen: list[Event] = []
    with pytest.raises(EngineError, match="a broke in propose"):
        seen.extend(controller(a, b).run(PROMPT))
    assert [failure.member for failure in only(seen, MemberFailed)] == ["b", "a"]
    assert isinstance(seen[-1], MemberFailed)
    assert len(only(seen, Token)) == 3


def test_a_question_that_cannot_be_put_to_a_member_is_refused() -> None:
    def refuse(method: str, member: ScriptedMember) -> None:
        if method == "prepare":
            raise TemplateError("The template refuses")

    fine = member("fine", always("f", -0.1))
    with pytest.raises(TemplateError):
        ask(fine, member("picky", always("p", -0.1), before=refuse))
    assert "begin" not in fine.calls


@pytest.mark.parametrize("logprob", [0.25, float("nan")])
def test_a_log_probability_that_none_can_be_is_a_failure_of_its_member(logprob: float) -> None:
    events = ask(member("wrong", always("w", logprob)), member("b", always("b", -0.3)), max_tokens=3)
    assert "log-probability" in one(events, MemberFailed).error
    assert answer(events).text == "bbb"


# Cancel, deadline, close.


@pytest.mark.parametrize(
    ("method", "nth"),
    [
        *(("prepare", 1), ("begin", 1), ("branch", 1), ("branch", 2), ("propose", 1), ("propose", 7)),
        *(("accept", 2), ("adopt", 1), ("drop", 1), ("drop", 2), ("ingest", 1)),
    ],
)
def test_a_cancel_anywhere_ends_the_answer_with_what_there_is(method: str, nth: int) -> None:
    def interrupted(called: str, member: ScriptedMember) -> None:
        if called == method and member.calls.count(method) == nth:
            raise Cancelled("interrupted")

    members = pair()
    asked = controller(*members, max_tokens=40)
    whole = list(asked.run(PROMPT))
    for one_of_them in members:
        one_of_them.calls.clear()
        one_of_them.before = interrupted
    events = list(asked.run(PROMPT))
    assert one(events, Finished).reason == "cancelled"
    assert one(events, Finished).index == len(only(events, Token))
    assert only(events, Token) == only(whole, Token)[: len(only(events, Token))]
    assert only(events, MemberFailed) == []
    for one_of_them in members:
        one_of_them.before = lambda method, member: None
    assert list(asked.run(PROMPT)) == whole


@pytest.mark.parametrize("limit", range(1, 9))
def test_a_cancel_is_seen_before_every_token(limit: int) -> None:
    a = member("a", always("a", -0.1))
    events = ask(a, cancelled=lambda: a.calls.count("propose") >= limit)
    assert a.calls.count("propose") == limit
    assert one(events, Finished).reason == "cancelled"


def test_a_deadline_counts_from_the_start_of_the_prefill() -> None:
    for seconds in (1.5, 4.5, 7.5):
        clock = itertools.count()
        events = ask(
            member("a", always("a", -0.1)), deadline=seconds, clock=lambda clock=clock: float(next(clock))
        )
        assert one(events, Finished).reason == "deadline"
        assert seconds <= one(events, Finished).seconds


def test_an_answer_that_is_closed_early_leaves_the_pool_ready_for_the_next_question() -> None:
    fresh = ask(*pair())
    for count in range(1, len(fresh)):
        members = pair()
        asked = controller(*members)
        events = asked.run(PROMPT)
        assert list(itertools.islice(events, count)) == fresh[:count]
        events.close()  # type: ignore[attr-defined]
        assert list(asked.run(PROMPT)) == fresh


def test_an_interrupt_while_bids_are_written_side_by_side_leaves_nothing_running() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def hold(method: str, member: ScriptedMember) -> None:
        if method == "propose":
            begun.set()
            go_on.wait(timeout=20)

    slow = member("slow", always("s", -0.1), before=hold)
    release = slow.interrupt

    def interrupt() -> None:
        release()
        go_on.set()

    slow.interrupt = interrupt  # type: ignore[method-assign]
    quick = ScriptedMember("quick", always("q", -0.2))

    class Interrupts(ScriptedMember):
        def submit(self, task):  # type: ignore[no-untyped-def]
            if self.begun:
                begun.wait(timeout=20)
                raise KeyboardInterrupt
            return super().submit(task)

    last = Interrupts("last", always("l", -0.3))
    with pytest.raises(KeyboardInterrupt):
        ask(slow, quick, last, bids="parallel")
    assert slow.interrupted
    assert slow.calls[-1] in ("propose", "accept")


# What a controller refuses.


def test_a_pool_must_have_members_with_different_names() -> None:
    for members in ([], [member("a", always("a", -0.1)), member("a", always("b", -0.1))]):
        with pytest.raises(ConfigError, match="each once"):
            controller(*members)


def test_a_first_leader_must_be_a_member() -> None:
    with pytest.raises(ConfigError, match='"best" or one of a'):
        controller(member("a", always("a", -0.1)), initiation="nobody")


@pytest.mark.parametrize(
    "chosen", [{}, {"trigger": "confidence", "initiation": "a"}, {"trigger": "sentence", "initiation": "a"}]
)
def test_confidences_are_not_compared_without_calibrations_for_this_window(chosen: dict[str, str]) -> None:
    a = member("a", always("a", -0.1))
    settings = RelaySettings(window=2, **chosen)
    for calibrations in ({}, calibrated(a, window=3)):
        with pytest.raises(CalibrationError, match="macr-local calibrate"):
            Controller([a], calibrations, settings)


def pair() -> tuple[ScriptedMember, ScriptedMember]:
    a = member("a", says(lambda text: ("a", -0.1 if len(text) % 4 != 2 else -9.0)))
    return a, member("b", says(lambda text: ("b", -0.2) if len(text) % 5 else (" b", -3.0)))
