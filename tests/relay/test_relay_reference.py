"""The relay against an independent one that follows Algorithm 1 and reads everything anew each time."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, event, example, given, settings
from reference import Model, relay
from worlds import build, run, worlds

from macr_local.relay.answer import collect
from macr_local.relay.events import Bid, BidOpened, Event, Finished, Relayed, Token
from macr_local.settings import RelaySettings

World = tuple[list[Model], RelaySettings]

thorough = settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@thorough
@given(worlds())
@example(build(37069))  # a Latin letter after U+29F60, an ideograph beyond the first plane
def test_every_decision_is_that_of_the_naive_relay_to_the_last_bit(world: World) -> None:
    pool, chosen = world
    events = run(pool, chosen)
    expected = relay(pool, chosen)
    assert [
        (e.round, e.leader, e.reason, e.mean, e.z, e.dropped) for e in events if isinstance(e, BidOpened)
    ] == expected.rounds
    assert [(e.round, e.leader, e.winner, e.z) for e in events if isinstance(e, Relayed)] == expected.relays
    assert [
        (e.member, e.text, e.logprob, e.mean, e.z) for e in events if isinstance(e, Token)
    ] == expected.tokens
    bids = [(e.round, e.member, list(e.logprobs), e.z) for e in events if isinstance(e, Bid)]
    assert len(bids) == len(expected.bids)
    for (number, member, logprobs, z), (r_number, r_member, r_logprobs, r_z) in zip(
        bids, expected.bids, strict=True
    ):
        assert (number, member) == (r_number, r_member)
        assert logprobs == r_logprobs[: len(logprobs)]
        assert (logprobs, z) == (r_logprobs, r_z) or (chosen.prune and z is None)
    answer = collect(events, chosen)
    assert (answer.text, answer.thought, answer.finish_reason) == (
        expected.text,
        expected.thought,
        expected.reason,
    )
    event(f"relays: {min(answer.relays, 3)}")
    event(f"ended by: {answer.finish_reason}")


@thorough
@given(worlds())
def test_pruning_changes_nothing_but_the_bids_that_lost(world: World) -> None:
    pool, chosen = world
    pruned, whole = run(pool, replace(chosen, prune=True)), run(pool, replace(chosen, prune=False))
    assert undecided(pruned) == undecided(whole)
    saved = written(whole) - written(pruned)
    assert saved >= 0
    event(f"pruning saved tokens: {saved > 0}")


@thorough
@given(worlds())
def test_bids_side_by_side_give_the_same_events_as_bids_in_turn(world: World) -> None:
    pool, chosen = world
    in_turn = run(pool, replace(chosen, prune=False, bids="turn"))
    assert run(pool, replace(chosen, bids="parallel")) == in_turn
    assert run(pool, replace(chosen, prune=False, bids="turn")) == in_turn


@thorough
@given(worlds())
def test_a_pruned_bid_could_not_have_won(world: World) -> None:
    pool, chosen = world
    events = run(pool, replace(chosen, prune=True))
    whole = {(e.round, e.member): e for e in run(pool, replace(chosen, prune=False)) if isinstance(e, Bid)}
    for e in events:
        if isinstance(e, Bid) and e.bound is not None:
            final = whole[e.round, e.member].z
            assert final is not None
            assert final <= e.bound


@thorough
@given(worlds())
def test_a_smaller_max_tokens_gives_a_beginning_of_the_same_answer(world: World) -> None:
    pool, chosen = world
    few, many = replace(chosen, max_tokens=9), replace(chosen, max_tokens=60)
    short = [e for e in run(pool, few) if isinstance(e, Token)]
    long = [e for e in run(pool, many) if isinstance(e, Token)]
    assert short == long[: len(short)]
    assert len(short) == min(9, len(long))


def undecided(events: list[Event]) -> list[Event]:
    """All that pruning must not change."""
    return [
        replace(e, counters={}) if isinstance(e, Finished) else e for e in events if not isinstance(e, Bid)
    ]


def written(events: list[Event]) -> int:
    return sum(len(e.tokens) for e in events if isinstance(e, Bid))
