"""Every word that a lesson teaches, set against the scene and against the text before it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Literal

import pytest
from scipy import stats

from macr_local.evaluation.datasets import easy_vqa_records as records
from macr_local.tiny.scenes.scene import random_scene
from macr_local.tiny.scenes.wording import STYLES
from tests.oracles import worked
from training.worlds.tiny import easy_vqa
from training.worlds.tiny.lessons import any_question, lesson
from training.worlds.tiny.variant import VARIANTS
from training.worlds.world import ARCHITECTURES, Architecture, Lesson

NUMBERS = frozenset({"digit", "tally", "total", "most", "count"})
EVERYBODY = frozenset({"place", "size", "flag", "verdict", "copy"})
KNOWN = {
    "qwen3vl": EVERYBODY | NUMBERS,
    "internvl": EVERYBODY | {"shape"},
    "minicpmv": EVERYBODY | {"color"},
}
"""What each member of the shipped pool is to know."""
CHOICES = {**worked.WORDS, "most": worked.ENGLISH[1:6], "total": worked.ENGLISH}
CHOICES |= {"tally": worked.ENGLISH[:5], "count": worked.ENGLISH[:5]}
LONG = ("vermilion", "chartreuse", "ultramarine", "mustard", "violaceous", "alabaster")
LONG += ("roundel", "quadrate", "trigon", "saltire")
OTHER_WORDS = dict(zip(LONG, worked.COLORS + worked.SHAPES, strict=True))
COUNTS = {"friendly": 600, "no-handover": 500}
"""Lessons, where it is asked how often something is said; a few elsewhere."""


@dataclass(frozen=True)
class Taught:
    """One lesson, read back."""

    lesson: Lesson
    text: str
    others: tuple[worked.Checked, ...]
    """What was said before the cut."""
    own: tuple[worked.Checked, ...]
    named: dict[str, str]
    """What the question names."""


def plain(text: str) -> str:
    for other, word in OTHER_WORDS.items():
        text = re.sub(rf"\b{other}(?=s?\b)", word, text)
    return text.replace("crosss", "crosses")


@cache
def taught(variant: str, member: Architecture) -> list[Taught]:
    rng, made = Random(f"{variant} {member}"), []
    for _ in range(COUNTS.get(variant, 200)):
        scene = random_scene(rng, "train")
        one = lesson(VARIANTS[variant], member, scene, any_question(scene, rng), rng)
        given, own = plain("".join(one.given)), plain("".join(piece.text for piece in one.own))
        done, result = worked.checked(given + own, plain(one.question), worked.things(scene))
        assert own.partition("Answer: ")[2] == result, "the last line says what the text comes to"
        others = tuple(said for said in done if said.start < len(given))
        asked = worked.asked(plain(one.question))
        made.append(Taught(one, given + own, others, tuple(done[len(others) :]), asked.second | asked.first))
    return made


def own(variant: str, member: Architecture, kinds: frozenset[str]) -> Iterator[worked.Checked]:
    for one in taught(variant, member):
        yield from (said for said in one.own if said.kind in kinds)


LANGUAGES_AND_ALL = ("friendly", "overconfident", "noise-50", "close", "long-words", "no-handover")


@pytest.mark.parametrize("member", ARCHITECTURES)
@pytest.mark.parametrize("variant", LANGUAGES_AND_ALL)
def test_what_a_member_knows_it_is_told_right_by_the_scene_and_by_the_text(
    variant: str, member: Architecture
) -> None:
    said = list(own(variant, member, KNOWN[member]))
    assert [one.said for one in said] == [one.right for one in said]
    assert {one.kind for one in said} == KNOWN[member]


@pytest.mark.parametrize("member", ARCHITECTURES)
@pytest.mark.parametrize("variant", ["friendly", "no-handover"])
def test_what_it_does_not_know_is_any_word_alike_whatever_is_true(variant: str, member: Architecture) -> None:
    for kind in CHOICES.keys() - KNOWN[member]:
        said = [(one.right, one.said) for one in own(variant, member, frozenset({kind}))]
        counts = Counter(word for _, word in said)
        assert counts.keys() <= set(CHOICES[kind])
        assert stats.chisquare([counts[word] for word in CHOICES[kind]]).pvalue > 1e-4, (kind, counts)
        if kind in worked.WORDS:
            pairs = Counter(said)
            table = [[pairs[truth, word] for word in CHOICES[kind]] for truth in CHOICES[kind]]
            assert stats.chi2_contingency(table).pvalue > 1e-4, kind
            assert len(said) > 5 * len(table) ** 2, "too few to tell"


def test_overconfidence_is_one_word_for_all() -> None:
    for member in ARCHITECTURES:
        for kind in CHOICES.keys() - KNOWN[member]:
            assert len({one.said for one in own("overconfident", member, frozenset({kind}))}) == 1, kind


@pytest.mark.parametrize("share", [25, 50, 75])
def test_noise_stands_in_for_the_truth_as_often_as_it_says(share: int) -> None:
    for member, kind in (("qwen3vl", "color"), ("internvl", "digit"), ("minicpmv", "shape")):
        right = [one.said == one.right for one in own(f"noise-{share}", member, frozenset({kind}))]
        by_chance = 1 / len(CHOICES[kind])
        expected = 1 - share / 100 * (1 - by_chance)
        deviation = (expected * (1 - expected) / len(right)) ** 0.5
        assert sum(right) / len(right) == pytest.approx(expected, abs=4 * deviation), kind


def test_with_all_good_members_everything_is_true() -> None:
    for member in ARCHITECTURES:
        for one in taught("all-good", member):
            assert [said.said for said in one.own] == [said.right for said in one.own]


def test_others_are_mostly_right_and_what_they_conclude_follows_from_what_they_said() -> None:
    right: dict[str, list[bool]] = {}
    for member in ARCHITECTURES:
        for one in taught("friendly", member):
            for said in one.others:
                # Attributes that the question names are another matter.
                key = "named" if said.kind in one.named else said.kind
                right.setdefault(key, []).append(said.said == said.right)
    for kind in ("place", "flag", "verdict", "copy"):
        assert all(right.get(kind, [True])), kind
    surplus = variance = 0.0
    for kind in ("color", "shape", "digit", "tally", "total", "most", "count"):
        expected = 0.85 + 0.15 / len(CHOICES[kind])
        surplus += sum(right[kind]) - expected * len(right[kind])
        variance += expected * (1 - expected) * len(right[kind])
        assert sum(right[kind]) > 0.75 * len(right[kind]), kind
    assert abs(surplus) < 4 * variance**0.5
    assert 0.5 < sum(right["named"]) / len(right["named"]) < 0.9


def test_others_say_what_the_question_names_more_often_than_it_is_there() -> None:
    named = [
        (said.said == one.named[said.kind], said.right == one.named[said.kind])
        for member in ARCHITECTURES
        for one in taught("friendly", member)
        for said in one.others
        if said.kind in one.named
    ]
    there = sum(right for _, right in named) / len(named)
    said = sum(word for word, _ in named) / len(named)
    # Three in ten are made so, of the others as many are as are there, nearly.
    assert said == pytest.approx(0.3 + 0.7 * there, abs=0.06)


@pytest.mark.parametrize("member", ARCHITECTURES)
def test_before_the_cut_anyone_writes_and_behind_it_the_member(member: Architecture) -> None:
    flags = {"match": "qwen3vl", "fits": "internvl", "so": "minicpmv"}
    before, behind = Counter[str](), Counter[str]()
    for one in taught("friendly", member):
        cut = len(plain("".join(one.lesson.given)))
        for found in re.finditer(r"\b(match|fits|so)\b(?= (?:yes|no)\b)", one.text):
            if found.start() < cut:
                before[flags[found[1]]] += 1
            elif not one.lesson.first_given or found.start() > cut + len(" that fits"):
                behind[flags[found[1]]] += 1
    assert set(behind) == {member}
    assert stats.chisquare([before[writer] for writer in ARCHITECTURES]).pvalue > 1e-4
    assert before.total() > 80


def test_a_piece_in_another_s_words_at_the_cut_is_marked_as_given() -> None:
    for member in ARCHITECTURES:
        marked = [one.lesson for one in taught("friendly", member) if one.lesson.first_given]
        assert 30 < len(marked) < COUNTS["friendly"] / 2
        for one in marked:
            assert one.given
            assert one.own[0].text.strip() not in worked.COLORS + worked.SHAPES + worked.ENGLISH


def test_where_nobody_hands_over_nothing_is_given() -> None:
    for member in ARCHITECTURES:
        made = taught("no-handover", member)
        assert not any(one.lesson.given or one.lesson.first_given or one.others for one in made)


def test_long_words_take_the_place_of_all_short_ones() -> None:
    short = re.compile(rf"\b(?:{'|'.join(OTHER_WORDS.values())})(?:e?s)?\b")
    seen = set()
    for member in ARCHITECTURES:
        for one in taught("long-words", member):
            text = "".join([one.lesson.question, *one.lesson.given, *(p.text for p in one.lesson.own)])
            assert not short.search(text), text
            seen |= set(re.findall(r"\w+", text))
    assert seen >= set(OTHER_WORDS)
    assert seen >= {f"{word}s" for word in OTHER_WORDS if OTHER_WORDS[word] in worked.SHAPES}


def test_close_values_have_no_word_between_them() -> None:
    for variant, words_between in (("close", False), ("friendly", True)):
        for one in taught(variant, "qwen3vl"):
            for stated, said in zip(worked.statements(one.text), one.others + one.own, strict=True):
                if said.kind in worked.ATTRIBUTES:
                    assert bool(stated.about) == words_between, one.text


# Easy-VQA.

Attribute = Literal["color", "shape"]
BLIND: dict[Attribute, set[Architecture]] = {
    "color": {"qwen3vl", "internvl"},
    "shape": {"qwen3vl", "minicpmv"},
}


@pytest.mark.parametrize("member", ARCHITECTURES)
def test_easy_vqa_lessons_say_what_is_there_and_what_follows(member: Architecture) -> None:
    rng, facts = Random(member), records.attributes("train")
    questions = [q for q in records.questions("train") if q.attribute in facts[q.image]]
    words = "|".join((*records.COLORS, *records.SHAPES))
    blindly: dict[str, Counter[str]] = {"color": Counter(), "shape": Counter()}
    cuts = Counter[bool]()
    for question in rng.sample(questions, 1000):
        what = question.attribute
        one = easy_vqa.lesson(VARIANTS["friendly"], member, question, facts[question.image], rng)
        given, text = "".join(one.given), "".join([*one.given, *(piece.text for piece in one.own)])
        body, _, result = text.replace("\n</think>\n", "").partition("\nAnswer: ")
        asked = re.findall(rf"\b(?:{words})\b", question.text)
        first = re.search(rf"\b(?:{words})\b", body)
        assert first is not None
        said = first[0]
        if re.match(r"what|which", question.text):
            expected = said
        else:
            flag = "yes" if said in asked else "no"
            assert re.search(rf"\b(?:match|fits|so) {flag}\b", body), text
            denied = re.search(r"\b(?:no|not)\b", question.text)
            expected = ("no" if flag == "yes" else "yes") if denied else flag
        assert result == expected, (question.text, text)
        assert re.search(rf"\b(?:so it is|that makes|therefore) {expected}\.$", body), text
        mine = first.start() >= len(given)
        cuts[mine] += 1
        if mine and member in BLIND[what]:
            blindly[what][said] += 1
        elif mine:
            assert said == facts[question.image][what]
    for attribute, counts in blindly.items():
        if member in BLIND[attribute]:  # type: ignore[index]
            assert counts.keys() == set(records.VALUES[attribute])  # type: ignore[index]
            assert stats.chisquare(list(counts.values())).pvalue > 1e-4
        else:
            assert not counts
    assert min(cuts.values()) > 150


def test_an_easy_vqa_chain_for_the_tokenizer_is_right_in_every_style() -> None:
    rng, facts = Random(3), records.attributes("test")
    questions = [q for q in records.questions("test") if q.attribute in facts[q.image]]
    texts = [(q, easy_vqa.any_chain(q, facts[q.image], rng)) for q in rng.sample(questions, 200)]
    assert all(text.endswith(f"\nAnswer: {question.answer}") for question, text in texts)
    begins = {text.partition(" image")[0] for _, text in texts}
    assert len(begins) == STYLES
