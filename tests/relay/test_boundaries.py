"""Where sentences and words end."""

from __future__ import annotations

import pytest

from macr_local.relay.boundaries import begins_sentence, goes_on


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
        ("\U00029f60", "a", False),
        ("a", "\U00029f60", False),
        ("\U00029f60", "\U00030000", False),
        ("ｶ", "ﾅ", False),
        ("\U0001b000", "\u3042", False),
        ("ꦲ", "ꦤ", False),
        ("ᨠ", "ᨡ", False),
        ("ꀀ", "ꀁ", False),
        ("佐", "々", False),
        ("ㄅ", "ㄆ", False),
        ("빨", "강", True),
        ("крас", "ный", True),
        ("ला", "ल", True),
    ],
)
def test_a_piece_goes_on_with_a_word_or_begins_one(written: str, piece: str, inside: bool) -> None:
    assert goes_on(written.encode(), piece.encode()) is inside
