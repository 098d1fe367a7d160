"""Who wins, who is next."""

from __future__ import annotations

from macr_local.relay.policies import rank, successors


def test_on_a_tie_the_leader_comes_first_and_then_pool_order() -> None:
    ranks = {place: rank(0.5, place, leads=place == 2, hysteresis=0.0) for place in range(4)}
    assert sorted(ranks, key=ranks.__getitem__, reverse=True) == [2, 0, 1, 3]


def test_another_must_beat_the_leader_by_more_than_the_hysteresis() -> None:
    leader = rank(0.5, 1, leads=True, hysteresis=0.25)
    assert rank(0.75, 0, leads=False, hysteresis=0.25) < leader
    assert rank(0.7500001, 0, leads=False, hysteresis=0.25) > leader


def test_the_next_in_order_goes_round_the_pool_and_ends_with_the_leader() -> None:
    assert successors("abc", "b") == ["c", "a", "b"]
    assert successors("abc", None) == ["a", "b", "c"]
