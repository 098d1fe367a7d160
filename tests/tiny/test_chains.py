"""Worked answers: what they see is there, what they work out is right; and they can be read back."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

import pytest

from macr_local.tiny.scenes.chain import Kind, Slot, answer, chain, write
from macr_local.tiny.scenes.examination import Item, examination
from macr_local.tiny.scenes.question import FAMILIES
from macr_local.tiny.scenes.reader import agrees, follow, stated
from macr_local.tiny.scenes.wording import STYLES, Language
from tests.oracles import worked

CLOSE = Language(close=True)
OTHER_WORDS = Language(words={"red": "vermilion", "cross": "saltire", "circle": "roundel"})
LANGUAGES = pytest.mark.parametrize(
    "language", [Language(), CLOSE, OTHER_WORDS], ids=["plain", "close", "other"]
)
NUMBERS = worked.ENGLISH


@pytest.fixture(scope="module")
def items() -> list[Item]:
    return list(examination("test", 4, 640))


def texts(slots: list[Slot] | tuple[Slot, ...], rng: Random) -> list[str]:
    """A chain in each style, and in a mixture of them."""
    one_hand = [write(list(slots), style) for style in range(STYLES)]
    return [*one_hand, "".join(slot.text(rng.randrange(STYLES)) for slot in slots)]


def in_plain_words(text: str, language: Language) -> str:
    for plain, other in language.words.items():
        text = re.sub(rf"\b{other}\b", plain, text)
    return text


# What a chain says.


def test_every_statement_of_a_worked_answer_is_true_in_any_wording(items: list[Item]) -> None:
    rng = Random(1)
    for item in items:
        scene = worked.things(item.scene)
        for text in texts(item.reference, rng):
            done, result = worked.checked(text, item.question.text, scene)
            assert [one.said for one in done] == [one.right for one in done], text
            assert text.partition("\nAnswer: ")[2] == result == worked.solved(item.question.text, scene)
        slots = [(slot.kind, slot.value) for slot in item.reference if slot.value and slot.kind != "answer"]
        assert slots == [(one.kind, one.right) for one in done]


@pytest.mark.parametrize("language", [CLOSE, OTHER_WORDS], ids=["close", "other"])
def test_another_language_says_the_same(items: list[Item], language: Language) -> None:
    rng = Random(2)
    seen = set()
    for item in items[:200]:
        slots = chain(item.scene, item.question, language=language)
        for text in texts(slots, rng):
            plain = in_plain_words(text, language)
            done, result = worked.checked(plain, item.question.text, worked.things(item.scene))
            assert [one.said for one in done] == [one.right for one in done], text
            assert plain.partition("\nAnswer: ")[2] == result
            seen |= set(re.findall(r"\w+", text))
    assert seen.isdisjoint(language.words)
    assert seen >= set(language.words.values())


def test_nothing_stands_between_close_values(items: list[Item]) -> None:
    for item in items[:80]:
        text = write(chain(item.scene, item.question, language=CLOSE), 0)
        if item.question.family == "row" and item.answer != "nothing":
            color, shape, digit = item.answer.partition(",")[0].split()
            assert re.match(rf"\w+ \w+: {color} {shape} {digit};", text), text


@LANGUAGES
def test_what_follows_from_a_wrong_word_follows_from_it(items: list[Item], language: Language) -> None:
    """Whatever is said, the next step is right by the text: a chain gone astray is consistent."""
    rng = Random(3)
    strayed = 0
    for item in items[:320]:
        lies: list[tuple[str, str]] = []
        slots = chain(item.scene, item.question, liar(rng, 0.25, lies), language)
        for text in texts(slots, rng):
            plain = in_plain_words(text, language)
            done, result = worked.checked(plain, item.question.text, worked.things(item.scene))
            assert [(one.right, one.said) for one in done if one.kind != "place"] == lies, text
            assert plain.partition("\nAnswer: ")[2] == result
        strayed += result != item.answer
    assert strayed > 50


def liar(rng: Random, share: float, told: list[tuple[str, str]]) -> Callable[[Kind, str, int], str]:
    """Says something else now and then, and keeps what was right and what was said."""
    other = {**worked.WORDS, "flag": ["yes", "no"], "verdict": ["yes", "no"]}
    for worked_out in ("tally", "total", "most", "count"):
        other[worked_out] = NUMBERS

    def say(kind: Kind, word: str, number: int) -> str:
        said = rng.choice(other[kind]) if kind in other and rng.random() < share else word
        if kind != "place":
            told.append((word, said))
        return said

    return say


def test_chains_are_as_long_as_their_scenes_are_full(items: list[Item]) -> None:
    """In words and marks, roughly tokens: mostly 30 to 90. What is in a row is said in fewer."""
    for style in range(STYLES):
        lengths: dict[str, list[int]] = {family: [] for family in FAMILIES}
        for item in items:
            length = len(re.findall(r"\w+|[^\w\s]", write(list(item.reference), style)))
            lengths[item.question.family].append(length)
        each = [length for some in lengths.values() for length in some]
        assert max(each) <= 90
        assert sum(length < 30 for length in each) < 0.15 * len(each)
        means = {family: sum(some) / len(some) for family, some in lengths.items()}
        assert min(means, key=means.__getitem__) == "row"
        assert all(20 <= mean <= 70 for mean in means.values()), means


def test_the_last_line_is_the_answer_and_there_is_only_one(items: list[Item]) -> None:
    for item in items:
        for style in range(STYLES):
            text = write(list(item.reference), style)
            assert text.endswith(f"\nAnswer: {item.answer}")
            assert text.count("\n") == text.count("Answer") == 1
            assert text == text.strip() or item.reference[0].kind == "answer"
        assert answer(item.scene, item.question) == item.answer


# Reading it back.


def test_a_right_chain_agrees_whoever_worded_it(items: list[Item]) -> None:
    rng = Random(4)
    for item in items[:320]:
        for text in texts(item.reference, rng):
            assert agrees(text, item.reference)
            found = [(one.value, one.start, one.end) for one in stated(text)]
            assert found == [(one.value, one.start, one.end) for one in worked.statements(text)]
            thought = text.replace("\nAnswer:", "\n</think>\n\nAnswer:")
            assert agrees(thought, item.reference), "a thought may end before the answer"


def test_a_chain_with_one_thing_wrong_does_not_agree(items: list[Item]) -> None:
    rng = Random(5)
    for item in items[:320]:
        text = "".join(slot.text(rng.randrange(STYLES)) for slot in item.reference)
        body, mark, result = text.partition("\nAnswer: ")
        for one in worked.statements(text):
            instead = rng.choice([w for w in (*NUMBERS, *worked.COLORS, "yes", "no") if w != one.value])
            assert not agrees(text[: one.start] + instead + text[one.end :], item.reference)
            assert not agrees(text[: one.start] + text[one.end :], item.reference), "left out"
        assert not agrees(f"{body} red{mark}{result}", item.reference), "one too many"
        for wrong in ("", "not " + result, result + " red", result[:-1]):
            assert not agrees(f"{body}{mark}{wrong}", item.reference)
        assert not agrees(body, item.reference)


@LANGUAGES
def test_other_words_are_read_as_what_they_stand_for(items: list[Item], language: Language) -> None:
    rng = Random(6)
    for item in items[:120]:
        slots = chain(item.scene, item.question, language=language)
        for text in texts(slots, rng):
            assert agrees(text, slots, language)
            for one in stated(text, language):
                assert text[one.start : one.end] == language.words.get(one.value, one.value)


# Following it.


def followed(
    text: str, item: Item, language: Language, kinds: list[str], values: list[str], ends: list[int]
) -> None:
    """At every character of a text that states these values, which end there."""
    for at in range(len(text) + 1):
        reading = follow(text[:at], item.scene, item.question, language)
        known = sum(end <= at for end in ends)
        found = [(found.value, kind) for found, kind in reading.values]
        right = list(zip(values[:known], kinds[:known], strict=True))
        if text[max(at - 1, 0) : at + 1].isalpha() and at < len(text):
            # Within a word nobody can tell: "no" may become "now", and "four" may become "fourteen".
            assert found[:known] == right
            assert len(found) <= known + 1
        else:
            assert found == right, text[:at]
            assert reading.following == (kinds[known] if known < len(kinds) else None), text[:at]


@LANGUAGES
@pytest.mark.parametrize("share", [0.0, 0.3], ids=["right", "astray"])
def test_what_comes_next_is_known_at_every_point(items: list[Item], language: Language, share: float) -> None:
    rng = Random(7)
    for item in items[:24]:
        slots = chain(item.scene, item.question, liar(rng, share, []), language)
        style = rng.randrange(STYLES + 1)
        text = texts(slots, rng)[style]
        plain = in_plain_words(text, language)
        done, _ = worked.checked(plain, item.question.text, worked.things(item.scene))
        ends = [one.end for one in stated(text, language)]
        followed(text, item, language, [one.kind for one in done], [one.said for one in done], ends)


def test_a_text_that_is_no_chain_any_more_is_followed_no_further(items: list[Item]) -> None:
    rng = Random(8)
    strange = {
        "place": ["red", "circle", "five", "yes", "nothing"],
        "size": ["red", "five", "yes", "top left"],
        "color": ["small", "circle", "five", "no", "bottom right"],
        "shape": ["red", "five", "yes", "nothing"],
        "digit": ["zero", "six", "red", "yes"],
        "flag": ["red", "one", "nothing", "top left"],
        "verdict": ["red", "one", "nothing"],
    }
    strange |= {kind: ["red", "yes", "top left", "nothing"] for kind in ("tally", "total", "most", "count")}
    tried = set()
    for item in items[:160]:
        text = "".join(slot.text(rng.randrange(STYLES)) for slot in item.reference)
        done, _ = worked.checked(text, item.question.text, worked.things(item.scene))
        for number, one in enumerate(done):
            for word in strange.get(one.kind, ()):
                reading = follow(text[: one.start] + word + text[one.end :], item.scene, item.question)
                assert reading.following is None
                assert [kind for _, kind in reading.values] == [before.kind for before in done[:number]]
                tried.add(one.kind)
            if one.kind == "place":
                other = rng.choice([place for place in worked.PLACES if place != one.said])
                reading = follow(text[: one.start] + other, item.scene, item.question)
                assert (len(reading.values), reading.following) == (number, None)
    assert tried == set(strange)


def test_nothing_follows_a_whole_chain_or_what_is_said_beyond_it(items: list[Item]) -> None:
    for item in items[:80]:
        text = write(list(item.reference), 1)
        whole = follow(text, item.scene, item.question)
        assert whole.following is None
        body = text.partition("\nAnswer")[0]
        beyond = follow(f"{body} red.", item.scene, item.question)
        assert (beyond.following, len(beyond.values)) == (None, len(whole.values))
