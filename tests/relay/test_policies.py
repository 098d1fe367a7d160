"""When to bid, who wins, who is next."""

from __future__ import annotations

import pytest

from macr_local.relay.policies import begins_sentence, goes_on, rank, successors


@pytest.mark.parametrize(
    ("written", "piece", "begins"),
    [
        ("It is red.", " The", True),
        ("It is red.", "\n", True),
        ("It is red. ", "The", True),
        ("It is red.\n\n", "The", True),
        ('He said "no!"', " Then", True),
        ("(It is red.)", " Then", True),
        ("Is it?", " Yes", True),
        ("Well…", " yes", True),
        ("It is 3.", "14", False),
        ("It is red.", ")", False),
        ("It is red.", "", False),
        ("It is red. ", " ", False),
        ("It is red. ", "", False),
        ("It is red", " and", False),
        ("", "The", False),
        ("", " The", False),
        ("\n", "The", False),
        ("它是红的。", "它", True),
        ("它是红的。", "」", False),
        ("「它是红的。」", "它", True),
        ("是吗？", "！", False),
        ("它是红的。", "\n", False),
        ("它是红的。\n", "它", True),
        ("它是红的", "。", False),
    ],
)
def test_a_sentence_begins_where_one_has_ended(written: str, piece: str, begins: bool) -> None:
    assert begins_sentence(written.encode(), piece.encode()) is begins


def test_a_piece_that_is_part_of_a_character_begins_no_sentence() -> None:
    assert not begins_sentence("它是红的。".encode(), "它".encode()[:2])


@pytest.mark.parametrize(
    ("written", "piece", "inside"),
    [
        ("It is re", "d", True),
        ("It is red", " and", False),
        ("It is red", ",", False),
        ("It is red,", "blue", False),
        ("It is ", "red", False),
        ("", "red", False),
        ("It is red", "", False),
        ("a4", "2", True),
        ("snake_", "case", True),
        ("don", "'t", True),
        ("don", "’t", True),
        ("dogs", "' tails", False),
        ("cafe", "\u0301s", True),
        ("cafe\u0301", "s", True),
        ("它", "是", False),
        ("red", "的", False),
        ("ไท", "ย", False),
    ],
)
def test_a_piece_goes_on_with_a_word_or_begins_one(written: str, piece: str, inside: bool) -> None:
    assert goes_on(written.encode(), piece.encode()) is inside


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
