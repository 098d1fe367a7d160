"""Confidence by the first doubt: judged token by token, and a bid goes no further than it is sure."""

from __future__ import annotations

from dataclasses import replace

from asking import answer, ask, member, one, only
from hypothesis import given, settings
from scripted import reads
from worlds import run, worlds

from macr_local.relay.events import Bid, BidOpened, Finished, Relayed, Token
from macr_local.settings import RelaySettings

SURE, UNSURE, LOST = -0.1, -2.0, -4.0
"""z = 0.8, -3 and -7; the threshold is a z of -0.3."""


def test_a_bid_ends_with_its_first_doubtful_token_which_is_not_kept() -> None:
    a = member("a", reads(("a", SURE), ("b", SURE), ("c", UNSURE), ("d", SURE)))
    b = member("b", reads(("a", LOST)))
    events = ask(a, b, window=8, confidence="first-doubt", max_tokens=3)
    first = only(events, Bid)[0]
    assert (first.text, first.short) == (b"abc", True)
    assert [token.text for token in only(events, Token)[:2]] == [b"a", b"b"]
    again = only(events, BidOpened)[1]
    assert (again.index, again.dropped) == (2, b"c")


def test_its_doubtful_token_counts_in_what_it_bids() -> None:
    a = member("a", reads(("a", SURE), ("b", LOST)))
    b = member("b", reads(("a", -0.4), ("b", -0.4), ("c", -0.4), ("d", -0.4)))
    events = ask(a, b, window=4, confidence="first-doubt", threshold=-0.5, max_tokens=4, prune=False)
    bids = {bid.member: bid for bid in only(events, Bid)[:2]}
    assert bids["a"].mean == (SURE + LOST) / 2
    assert bids["b"].text == b"abcd"
    assert only(events, Relayed)[0].winner == "b"


def test_one_token_is_kept_even_where_everyone_doubts() -> None:
    a = member("a", reads(("a", UNSURE), ("b", UNSURE), ("c", UNSURE)))
    b = member("b", reads(("a", LOST), ("b", LOST), ("c", LOST)))
    events = ask(a, b, window=4, confidence="first-doubt")
    given_ = answer(events)
    assert (given_.text, given_.finish_reason) == ("abc", "end")
    assert all(len(bid.tokens) <= 1 for bid in only(events, Bid))


def test_the_leader_is_judged_from_its_first_token_on() -> None:
    a = member("a", reads(("a", SURE), ("b", UNSURE)))
    b = member("b", reads(("a", LOST), ("b", SURE)))
    chosen = {"window": 8, "initiation": "a"}
    assert only(ask(a, b, confidence="mean", **chosen), BidOpened) == []
    opened = one(ask(a, b, confidence="first-doubt", **chosen), BidOpened)
    assert (opened.index, opened.dropped, opened.z) == (1, b"b", -3.0)


def test_an_end_that_a_bid_doubts_ends_nothing() -> None:
    a = member("a", reads(("a", SURE), ("<end>", UNSURE)))
    b = member("b", reads(("a", LOST), ("b", SURE), ("<end>", SURE)))
    events = ask(a, b, window=4, confidence="first-doubt")
    assert answer(events).text == "ab"
    assert one(events, Finished).reason == "end"


@given(worlds())
@settings(max_examples=150, deadline=None)
def test_with_windows_of_one_token_it_is_the_paper_s_rule(world: tuple[list, RelaySettings]) -> None:  # type: ignore[type-arg]
    pool, chosen = world
    one_token = replace(chosen, window=1)
    assert run(pool, replace(one_token, confidence="mean")) == run(
        pool, replace(one_token, confidence="first-doubt")
    )
