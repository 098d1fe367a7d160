"""Whole characters out of bytes that come in pieces."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from macr_local.utf8 import Utf8Assembler, is_text, whole

CUTS = st.lists(st.integers(0, 60), max_size=8)


def cut(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(min(at, len(data)) for at in cuts), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


@given(st.text(max_size=20), CUTS)
def test_any_pieces_of_a_text_give_the_text(text: str, cuts: list[int]) -> None:
    assembler = Utf8Assembler()
    assert "".join(assembler.feed(piece) for piece in cut(text.encode(), cuts)) == text
    assert assembler.pending == b""


@given(st.binary(max_size=40), CUTS)
def test_any_pieces_of_any_bytes_give_the_same_without_a_replacement_character(
    data: bytes, cuts: list[int]
) -> None:
    pieces, at_once = Utf8Assembler(), Utf8Assembler()
    assert "".join(map(pieces.feed, cut(data, cuts))) == at_once.feed(data)
    assert pieces.pending == at_once.pending
    assert "\ufffd" not in data.decode("utf-8", "ignore") or b"\xef\xbf\xbd" in data


def test_the_beginning_of_a_character_waits_for_the_rest() -> None:
    assembler = Utf8Assembler()
    assert [assembler.feed(bytes([byte])) for byte in "a😀b".encode()] == ["a", "", "", "", "😀", "b"]
    assert assembler.feed("漢".encode()[:2]) == ""
    assert assembler.pending == "漢".encode()[:2]


@pytest.mark.parametrize("data", [b"a\xffb", b"\xf0a\x80b", b"\xed\xa0\x80ab", b"a\xc0\x80b"])
def test_bytes_that_are_no_character_are_left_out(data: bytes) -> None:
    assert Utf8Assembler().feed(data) == "ab"


def test_a_replacement_character_that_was_written_is_shown() -> None:
    assert Utf8Assembler().feed("\ufffd".encode()) == "\ufffd"


@given(st.binary(max_size=30))
def test_whole_ends_before_what_an_assembler_would_withhold(data: bytes) -> None:
    assembler = Utf8Assembler()
    assembler.feed(data)
    assert data[whole(data) :] == assembler.pending


@given(st.text(max_size=8), st.characters(min_codepoint=0x80, exclude_categories=["Cs"]))
def test_whole_leaves_every_incomplete_tail(text: str, last: str) -> None:
    data, end = text.encode(), last.encode()
    assert whole(data + end) == len(data) + len(end)
    for size in range(1, len(end)):
        assert whole(data + end[:size]) == len(data)


def test_half_a_character_is_no_text() -> None:
    assert is_text("caf\xe9 \U0001f600 \0 \ufffe")
    assert not is_text("caf\udce9")
    assert not is_text("\ud83d")
