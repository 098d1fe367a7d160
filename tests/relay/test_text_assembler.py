"""From tokens' bytes to text that can be shown."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import decoded, read

from macr_local.relay.text import THOUGHT_ONLY, TextAssembler

PATTERNS = ("<think>", "</think>", "STOP", "ab", "aba", "b\n", "。")

answers = st.lists(
    st.one_of(
        st.sampled_from((*PATTERNS, "<", "/", "think>", "ST", " ", "\n", "a", "b", "é", "🙂")),
        st.text(max_size=3),
    ),
    max_size=25,
).map("".join)
stops = st.lists(
    st.sampled_from(("STOP", "ab", "aba", "b\n", "。", "k>x", "🙂")), unique=True, max_size=3
).map(tuple)
cuts = st.lists(st.integers(0, 200), max_size=30)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    return [data[a:b] for a, b in itertools.pairwise(places)]


def text_of(shown: list, *, thought: bool) -> str:
    return "".join(piece.text for piece in shown if piece.thought is thought)


@given(answers, stops, cuts, st.booleans())
def test_the_text_is_the_same_however_it_is_cut(
    answer: str, stop: tuple[str, ...], cut: list[int], inside: bool
) -> None:
    assembler = TextAssembler(stop, in_thought=inside)
    shown = [t for piece in pieces(answer.encode("utf-8", "replace"), cut) for t in assembler.feed(piece)]
    text, thought, stopped, is_inside, opened = read(answer, stop, inside)
    assert assembler.stopped is stopped
    if not stopped:
        assert (b"<think>" in assembler.forbidden) is opened
        assert (b"</think>" in assembler.forbidden) is not is_inside
    rest, notes = assembler.close()
    if notes:
        assert not text.strip()
        text += thought
    assert text_of([*shown, *rest], thought=False) == text
    assert text_of([*shown, *rest], thought=True) == thought


@given(answers, stops.filter(bool), cuts)
def test_no_stop_string_is_ever_shown_not_even_in_part(
    answer: str, stop: tuple[str, ...], cut: list[int]
) -> None:
    assembler, shown = TextAssembler(stop), ""
    final = read(answer, stop, False)[0]
    for piece in pieces(answer.encode("utf-8", "replace"), cut):
        shown += text_of(assembler.feed(piece), thought=False)
        assert final.startswith(shown)
    if assembler.stopped:
        assert shown == final


@given(st.binary(max_size=60), cuts)
def test_any_bytes_give_whole_characters_only(data: bytes, cut: list[int]) -> None:
    assembler = TextAssembler()
    shown = [t for piece in pieces(data, cut) for t in assembler.feed(piece)]
    whole, partial = decoded(data)
    assert assembler.mid_character is partial
    shown += assembler.close()[0]
    text, thought, *_ = read(whole, (), False)
    assert text_of(shown, thought=True) == thought
    assert text_of(shown, thought=False) == (text if text.strip() or not thought.strip() else text + thought)


@given(
    st.lists(
        st.tuples(
            st.sampled_from("xyz"),
            st.sampled_from((b"a", b"ST", b"O", b"P", b" ", b"<think>", b"</", b"think>")),
        ),
        max_size=20,
    )
)
def test_every_piece_keeps_its_owner(tokens: list[tuple[str, bytes]]) -> None:
    assembler = TextAssembler(("STOP",))
    shown = [t for segment, (who, data) in enumerate(tokens) for t in assembler.feed(data, who, segment)]
    shown += assembler.close()[0]
    for piece in shown:
        assert tokens[piece.segment][0] == piece.member
        assert set(piece.text) <= set(tokens[piece.segment][1].decode())


def test_a_fork_goes_its_own_way() -> None:
    assembler = TextAssembler(("STOP",))
    assembler.feed("S\N{GRINNING FACE}".encode()[:3], "a")
    fork = assembler.fork()
    fork.feed("\N{GRINNING FACE}STOP".encode()[2:], "b")
    assert fork.stopped
    assert not assembler.stopped
    assert assembler.mid_character
    shown = assembler.feed("\N{GRINNING FACE}".encode()[2:], "a")
    assert [(t.member, t.text) for t in shown] == [("a", "S\N{GRINNING FACE}")]


def test_the_beginning_of_a_character_can_be_given_up() -> None:
    assembler = TextAssembler()
    assembler.feed("é".encode()[:1], "a")
    assembler.forget_tail()
    assert not assembler.mid_character
    assert [t.text for t in assembler.feed(b"x", "b")] == ["x"]


@pytest.mark.parametrize(
    "answer", ["<think>It is red.", "<think>It is red.</think>\n\n", "<think> It is red.</think>"]
)
def test_an_answer_that_is_all_thought_gives_the_thought(answer: str) -> None:
    assembler = TextAssembler()
    shown = assembler.feed(answer.encode(), "a")
    rest, notes = assembler.close()
    assert text_of([*shown, *rest], thought=False) == "It is red."
    assert notes == (THOUGHT_ONLY,)


def test_a_blank_line_after_a_thought_does_not_stop_the_answer() -> None:
    assembler = TextAssembler(("\n\n",))
    shown = assembler.feed(b"<think>One.\n\nTwo.</think>\n\nRed.\n\nMore", "a")
    assert text_of(shown, thought=True) == "One.\n\nTwo."
    assert text_of(shown, thought=False) == "Red."
    assert assembler.stopped


def test_there_is_one_thought_at_most() -> None:
    assembler = TextAssembler()
    assert assembler.forbidden == (b"</think>",)
    assembler.feed(b"<think>")
    assert assembler.forbidden == (b"<think>",)
    assembler.feed(b"x</think>")
    assert assembler.forbidden == (b"<think>", b"</think>")
    assert text_of(assembler.feed(b"a<think>b</think>c"), thought=False) == "abc"
