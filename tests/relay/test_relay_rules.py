"""The relay's rules, one by one."""

from __future__ import annotations

import pytest
from asking import PROMPT, always, answer, ask, member, one, only
from scripted import END, Choice, ScriptedMember, improvises, reads, says

from macr_local.relay.confidence import Calibration
from macr_local.relay.controller import Controller
from macr_local.relay.events import Bid, BidOpened, Finished, Relayed, Text, Token
from macr_local.settings import RelaySettings, Sampling

# Initiation.


def test_the_highest_z_leads_and_its_trial_is_the_beginning_of_the_answer() -> None:
    low, high = member("low", always("l", -0.375)), member("high", always("h", -0.125))
    events = ask(low, high, max_tokens=3, prune=False)
    assert one(events, BidOpened) == BidOpened(0, None, 0, "initiation")
    assert [(bid.member, bid.text, bid.z) for bid in only(events, Bid)] == [
        ("low", b"ll", 0.25),
        ("high", b"hh", 0.75),
    ]
    assert one(events, Relayed) == Relayed(0, None, "high", 0.75)
    assert [(t.text, t.mean, t.z) for t in only(events, Token)] == [
        (b"h", None, None),
        (b"h", -0.125, 0.75),
        (b"h", -0.125, 0.75),
    ]
    assert high.calls.count("adopt") == low.calls.count("drop") == 1


def test_without_its_trial_the_winner_begins_anew_with_an_empty_window() -> None:
    first, other = member("first", always("f", -0.1)), member("other", always("o", -0.4))
    events = ask(first, other, max_tokens=3, keep_trial=False)
    assert first.calls.count("drop") == 1
    assert first.calls.count("adopt") == 0
    assert [t.z for t in only(events, Token)] == [None, 0.8, 0.8]
    assert answer(events).counters["first"].discarded == 2


def test_a_named_leader_leads_without_a_trial() -> None:
    best, named = member("best", always("b", -0.1)), member("named", always("n", -0.4))
    events = ask(best, named, initiation="named", max_tokens=3)
    assert only(events, BidOpened) == only(events, Bid) == []
    assert one(events, Relayed) == Relayed(0, None, "named", None)
    assert answer(events).text == "nnn"


# Monitoring.


def test_a_token_that_trips_the_threshold_is_dropped_and_all_bid_from_the_text_before_it() -> None:
    sure_then_lost = member("a", reads(("a", -0.1), ("a", -0.1), ("a", -0.1), ("?", -3.0)))
    other = member("b", says(lambda text: ("b", -0.2 if text else -0.4)))
    events = ask(sure_then_lost, other, max_tokens=7)
    opened = only(events, BidOpened)[1]
    assert (opened.leader, opened.index, opened.reason, opened.dropped) == ("a", 3, "confidence", b"?")
    assert opened.mean == pytest.approx(-1.55)
    assert opened.z == pytest.approx(-2.1)
    assert {bid.member for bid in only(events, Bid) if bid.round == 1} == {"a", "b"}
    assert only(events, Relayed)[1] == Relayed(1, "a", "b", 0.6)
    assert answer(events).text == "aaabbbb"
    assert answer(events).counters["a"].discarded == 1 + 1  # "?" and its bid, pruned after "?"


def test_the_window_after_a_relay_is_the_winner_s_bid_and_never_mixes_members() -> None:
    a = member("a", reads(("a", -0.1), ("a", -0.1), ("?", -3.0)))
    b = member("b", says(lambda text: ("b", -0.6 if text else -0.9)))
    events = ask(a, b, max_tokens=5)
    assert [(t.member, t.mean) for t in only(events, Token)] == [
        ("a", None),
        ("a", -0.1),
        ("b", None),
        ("b", -0.6),
        ("b", -0.6),
    ]


def test_z_is_undefined_and_triggers_nothing_until_the_segment_holds_w_tokens() -> None:
    lost = member("a", always("a", -9.0))
    events = ask(lost, window=4, initiation="a", max_tokens=8)
    assert [t.z is None for t in only(events, Token)[:3]] == [True] * 3
    assert only(events, BidOpened)[0].index == 3


def test_an_end_token_that_trips_the_threshold_is_dropped_too() -> None:
    quitter = member("a", reads(("a", -0.1), ("a", -0.1), (END, -3.0)))
    other = member("b", says(lambda text: ("b", -0.2) if text.count("b") < 3 else (END.decode(), -0.1)))
    events = ask(quitter, other, initiation="a")
    assert one(events, BidOpened).dropped == b""
    assert answer(events).text == "aabbb"
    assert one(events, Finished).reason == "end"


def test_an_end_token_that_trips_nothing_ends_the_answer() -> None:
    events = ask(member("a", reads(("a", -0.1), ("a", -0.1), (END, -0.1))))
    assert only(events, Token)[-1].is_end
    assert (one(events, Finished).reason, one(events, Finished).index) == ("end", 3)


def test_no_round_opens_inside_a_character() -> None:
    dog = "🐕".encode()
    a = member(
        "a", reads(("a", -0.1), ("a", -0.1), (dog[:2], -0.1), (dog[2:3], -9.0), (dog[3:], -9.0), ("?", -9.0))
    )
    b = member("b", always("b", -0.2))
    events = ask(a, b, max_tokens=8, initiation="a")
    assert one(events, BidOpened).dropped == b"?"
    assert answer(events).text == "aa🐕bbb"


def test_cooldown_counts_the_tokens_after_the_winner_s_bid() -> None:
    lost = member("a", always("a", -9.0))
    for cooldown in range(4):
        events = ask(lost, cooldown=cooldown, max_tokens=12)
        first, second = (opened.index for opened in only(events, BidOpened)[1:3])
        assert first == second - first == 2 + cooldown


def test_max_relays_counts_the_rounds_after_initiation() -> None:
    lost = member("a", always("a", -9.0))
    for limit in (0, 1, 3):
        events = ask(lost, max_relays=limit)
        assert [opened.round for opened in only(events, BidOpened)] == list(range(limit + 1))
        assert answer(events).relays == limit


def test_without_a_trigger_the_first_leader_writes_to_the_end() -> None:
    events = ask(member("a", always("a", -9.0)), trigger="never", max_tokens=5)
    assert len(only(events, BidOpened)) == 1


def test_the_sentence_trigger_bids_at_the_first_token_of_the_next_sentence() -> None:
    a = member("a", reads(("It", -0.1), (" is", -0.1), (" red", -9.0), (".", -9.0), (" So", -2.0)))
    b = member(
        "b",
        says(lambda text: ((" Yes", ".", END.decode())[min(2, text.count("Yes") + text.count("s."))], -0.1)),
    )
    events = ask(a, b, trigger="sentence", initiation="a", window=3)
    opened = one(events, BidOpened)
    assert (opened.reason, opened.dropped, opened.index) == ("sentence", b" So", 4)
    assert answer(events).text == "It is red. Yes."


# Bids.


def test_a_bid_ended_early_has_the_mean_of_its_tokens_with_the_end_token_and_is_short() -> None:
    brief = member("brief", reads(("x", -0.1), (END, -0.4)))
    events = ask(brief, member("long", always("y", -0.5)), window=4, prune=False)
    bid = only(events, Bid)[0]
    assert (bid.logprobs, bid.mean, bid.short) == ((-0.1, -0.4), -0.25, True)
    assert not only(events, Bid)[1].short
    assert (answer(events).text, one(events, Finished).reason) == ("x", "end")


@pytest.mark.parametrize("prune", [True, False])
def test_ties_go_to_the_leader_and_then_to_pool_order(prune: bool) -> None:
    def lost_once(name: str) -> ScriptedMember:
        return member(name, says(lambda text: (name, -9.0 if len(text) == 2 else -0.3)))

    events = ask(*map(lost_once, "abc"), initiation="b", prune=prune, max_tokens=4)
    assert [relayed.winner for relayed in only(events, Relayed)] == ["b", "b"]
    events = ask(*map(lost_once, "abc"), prune=prune, max_tokens=2)
    assert [relayed.winner for relayed in only(events, Relayed)] == ["a"]


@pytest.mark.parametrize(("hysteresis", "winner"), [(0.0, "b"), (0.35, "b"), (0.45, "a")])
@pytest.mark.parametrize("prune", [True, False])
def test_hysteresis_is_what_another_must_beat_the_leader_by(
    hysteresis: float, winner: str, prune: bool
) -> None:
    a, b = member("a", always("a", -0.8)), member("b", always("b", -0.6))  # 0.4 sigma apart
    events = ask(a, b, initiation="a", hysteresis=hysteresis, max_relays=1, prune=prune)
    assert only(events, Relayed)[1].winner == winner
    assert only(events, Relayed)[1].z == pytest.approx(-0.2 if winner == "b" else -0.6)


def test_a_bid_that_cannot_win_is_not_begun_and_its_words_are_not_even_read() -> None:
    sure = member("sure", says(lambda text: ("s", -0.25 if len(text) == 3 else 0.0)))
    hopeless = member("hopeless", always("h", 0.0))
    calibrations = {"sure": Calibration(-0.5, 0.125, 2), "hopeless": Calibration(-0.125, 0.125, 2)}
    settings = RelaySettings(window=2, max_tokens=8, threshold=3.5)
    events = list(Controller([sure, hopeless], calibrations, settings).run(PROMPT))
    bids = [bid for bid in only(events, Bid) if bid.member == "hopeless"]
    assert [(bid.tokens, bid.mean, bid.z, bid.bound) for bid in bids] == [((), None, None, 1.0)] * 2
    assert {"ingest", "branch", "propose"}.isdisjoint(hopeless.calls)


def test_a_bid_that_ends_inside_a_character_wins_with_the_writer_s_own_tokens() -> None:
    dog = "🐕".encode()
    a = member("a", reads(("aa", -0.1), (dog[:1], -0.1), (dog[1:], -0.1), ("?", -9.0)))
    b = member("b", says(lambda text: ("b", -0.9 if "🐕" not in text else -0.3)))
    events = ask(a, b, max_tokens=5)
    assert a.calls.count("ingest") == 0
    assert [text.text for text in only(events, Text)][:2] == ["aa", "🐕"]
    assert b"".join(b.cache + b.pending).decode().startswith("aa🐕b")
    assert answer(events).text == "aa🐕bb"


def test_a_bid_that_ends_the_answer_inside_a_character_loses_that_character() -> None:
    events = ask(member("a", reads(("aa", -0.1), ("🐕".encode()[:2], -0.1), (END, -0.1))), window=3)
    assert answer(events).text == "aa"
    assert one(events, Finished).reason == "end"


def test_the_fixed_order_hands_on_without_bids_and_with_an_empty_window() -> None:
    members = [member(name, always(name, -9.0)) for name in "abc"]
    events = ask(*members, selection="order", initiation="a", max_tokens=5)
    assert only(events, Bid) == []
    assert [(r.winner, r.z) for r in only(events, Relayed)] == [(name, None) for name in "abcab"]
    assert answer(events).text == "abcab"
    assert all(opened.reason == "confidence" for opened in only(events, BidOpened))


def test_members_that_do_not_bid_cannot_hand_on_without_writing() -> None:
    members = [member(name, always(name, -9.0)) for name in "ab"]
    events = ask(*members, selection="order", initiation="a", window=1, max_tokens=4)
    assert answer(events).text == "abab"


def test_sampling_draws_are_the_same_whoever_else_is_in_the_pool() -> None:
    chosen = {"sampling": Sampling(temperature=1.0), "trigger": "never", "initiation": "a", "max_tokens": 40}
    alone = ask(member("a", improvises(1)), **chosen)
    together = ask(member("a", improvises(1)), member("b", improvises(2)), **chosen)
    assert only(alone, Token) == only(together, Token)


# Thoughts.


def test_a_second_thought_is_forbidden_whoever_leads() -> None:
    def script(tokens: tuple[bytes, ...]) -> list[Choice]:
        return [Choice(b"<think>", -0.1), Choice(b"</think>", -0.2), Choice(b"hm", -0.3)]

    events = ask(member("a", script), max_tokens=6)
    assert [t.text for t in only(events, Token)] == [b"<think>", b"</think>", *[b"hm"] * 4]
    assert answer(events).text == "hmhmhmhm"


def test_the_first_leader_s_prompt_decides_whether_the_answer_begins_in_a_thought() -> None:
    thinks = reads(("so", -0.1), ("</think>", -0.1), ("red", -0.1), (END, -0.1))
    plain = member("plain", always("p", -0.9))
    events = ask(member("thinks", thinks, opens_thought=True), plain)
    assert (answer(events).thought, answer(events).text) == ("so", "red")
    events = ask(
        member("thinks", always("t", -0.9), opens_thought=True), member("plain", reads(("red", -0.1)))
    )
    assert (answer(events).thought, answer(events).text) == ("", "red")


def test_an_answer_is_never_empty_because_it_was_all_thought() -> None:
    events = ask(member("a", reads(("<think>", -0.1), ("It is red", -0.1), (END, -0.1))))
    assert answer(events).text == answer(events).thought == "It is red"
    assert answer(events).notes == (
        "Nothing was written outside the thought, so the thought is given as the answer",
    )
    assert [segment.text for segment in answer(events).segments] == ["It is red"]
