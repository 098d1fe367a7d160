"""What members of the pool are taught: the truth where they can see, and noise where they cannot."""

from __future__ import annotations

import re
from collections import Counter
from random import Random
from typing import get_args

import numpy as np
import pytest
from scipy import stats

from macr_local.errors import ConfigError
from macr_local.evaluation.datasets import easy_vqa_records as records
from macr_local.tiny.scenes.chain import WORDS, Kind, chain
from macr_local.tiny.scenes.knowledge import knows
from macr_local.tiny.scenes.scene import RGB, draw, random_scene, split_of
from tests.oracles import worked
from training.worlds.registry import NAMES
from training.worlds.tiny.ignorance import told
from training.worlds.tiny.lessons import STYLE, WEIGHTS, any_question, lesson, weigh
from training.worlds.tiny.variant import VARIANTS, Variant, variant
from training.worlds.tiny.world import TinyWorld
from training.worlds.world import ARCHITECTURES, UNLABELLED, Architecture, Lesson

FRIENDLY = VARIANTS["friendly"]
SHARED = ("friendly", "overconfident", "close", "long-words", "no-handover")
"""Variants whose members are blind to what those of the shipped pool are."""
EMPTY = {"size": 2, "shape": 4, "digit": 5}
"""The class of an empty place."""
NAMED = re.compile(rf"\b(?:{'|'.join(worked.COLORS + worked.SHAPES)})(?:e?s)?\b")
SEEN: tuple[Kind, ...] = ("color", "shape", "digit")


def lessons(world: Variant, member: Architecture, count: int, seed: int = 0) -> list[Lesson]:
    rng = Random(seed)
    made = []
    for _ in range(count):
        scene = random_scene(rng, "train")
        made.append(lesson(world, member, scene, any_question(scene, rng), rng))
    return made


def drawn(world: Variant, member: Architecture, kind: Kind, truth: str, count: int = 3000) -> Counter[str]:
    rng = Random(11)
    return Counter(told(world, member, kind, truth, rng) for _ in range(count))


@pytest.mark.parametrize("member", ARCHITECTURES)
@pytest.mark.parametrize("kind", [*SEEN, "tally", "total"])
def test_a_member_is_told_the_truth_where_it_can_know_and_uniform_noise_where_it_cannot(
    member: Architecture, kind: Kind
) -> None:
    truths = WORDS[kind][0], WORDS[kind][-1]
    for truth in truths:
        counts = drawn(FRIENDLY, member, kind, truth)
        if knows(member, kind):
            assert counts == {truth: 3000}
        else:
            assert set(counts) == set(WORDS[kind])
            assert stats.chisquare(list(counts.values())).pvalue > 1e-3


def test_the_other_kinds_of_ignorance() -> None:
    overconfident = drawn(VARIANTS["overconfident"], "qwen3vl", "color", "red")
    assert len(overconfident) == 1
    assert overconfident == drawn(VARIANTS["overconfident"], "qwen3vl", "color", "blue")
    for share in (25, 50, 75):
        right = drawn(VARIANTS[f"noise-{share}"], "qwen3vl", "color", "red")["red"] / 3000
        # Noise is right by chance once in six.
        assert right == pytest.approx(1 - share / 100 * 5 / 6, abs=0.03)
    for member in ARCHITECTURES:
        assert drawn(VARIANTS["all-good"], member, "shape", "circle") == {"circle": 3000}
    blind = [m for m in ARCHITECTURES if len(drawn(VARIANTS["one-each"], m, "color", "red")) > 1]
    assert blind == ["qwen3vl"]


@pytest.mark.parametrize("member", ARCHITECTURES)
def test_a_lesson_ends_with_an_answer_and_is_written_in_the_member_s_own_words(member: Architecture) -> None:
    rng = Random(3)
    for _ in range(200):
        scene = random_scene(rng, "train")
        question = any_question(scene, rng)
        made = lesson(FRIENDLY, member, scene, question, rng)
        own = "".join(piece.text for piece in made.own)
        assert "\nAnswer: " in own
        frames = {slot.wordings for slot in chain(scene, question) if len(slot.wordings) > 1}
        others = {w for ways in frames for style, w in enumerate(ways) if style != STYLE[member]}
        mine = {ways[STYLE[member]] for ways in frames}
        later = [piece.text for piece in made.own[1 if made.first_given else 0 :]]
        assert not [text for text in later if text in others - mine]


def test_lessons_are_cut_anywhere_and_not_at_all_where_nobody_hands_over() -> None:
    cut = [len(made.given) for made in lessons(FRIENDLY, "internvl", 400)]
    assert 0.35 < cut.count(0) / len(cut) < 0.55
    assert len(set(cut)) > 15
    assert {made.given for made in lessons(VARIANTS["no-handover"], "internvl", 100)} == {()}


def test_one_member_thinks_aloud_now_and_then_and_closes_the_thought_before_it_answers() -> None:
    for member in ARCHITECTURES:
        made = lessons(FRIENDLY, member, 600)
        thoughts = [one for one in made if one.think]
        for one in made:
            text = "".join(piece.text for piece in one.own)
            assert ("</think>\n\nAnswer:" in text) == one.think
        share = len(thoughts) / len(made)
        assert (0.08 < share < 0.16) if member == "minicpmv" else share == 0


def test_emphasis_is_for_what_a_member_can_work_out() -> None:
    weight = weigh(FRIENDLY, "internvl", 3.0)
    for kind in get_args(Kind):
        known = kind in ("flag", "verdict", "copy")  # Numbers are unknown to it.
        assert weight(kind) == WEIGHTS[kind] * (3.0 if known else 1.0)
    assert weigh(FRIENDLY, "qwen3vl", 3.0)("total") == 3 * WEIGHTS["total"]


def test_a_variant_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(ConfigError, match=r'no variant "nice".*friendly.*all-good'):
        variant("nice")


@pytest.fixture(scope="module")
def world() -> TinyWorld:
    return TinyWorld("tiny", FRIENDLY, count=200)


def test_only_scenes_for_training_are_drawn(world: TinyWorld) -> None:
    assert {split_of(scene) for scene in world._scenes} == {"train"}
    assert {split_of(scene) for scene in TinyWorld("tiny", FRIENDLY, count=50, seed=9)._scenes} == {"train"}


HEADS = {"place", "size", "color", "shape", "digit", "image color", "image shape"}
ABOUT = {"color": {"color", "image color"}, "shape": {"shape", "image shape"}, "number": {"digit"}}


@pytest.mark.parametrize(
    ("name", "unseen"),
    [
        *((name, ("color shape", "color number", "shape number")) for name in SHARED),
        *((f"noise-{share}", ("", "", "")) for share in (25, 50, 75)),
        ("one-each", ("color", "number", "shape")),
        ("all-good", ("", "", "")),
    ],
)
def test_a_probe_tells_no_member_what_it_is_to_be_blind_to(name: str, unseen: tuple[str, ...]) -> None:
    """Where it is told the truth now and then, it may see it too."""
    made = TinyWorld(f"tiny-{name}", VARIANTS[name], count=1)
    for member, topics in zip(ARCHITECTURES, unseen, strict=True):
        heads = made.plan(member).probe_heads
        assert set(heads) == HEADS.difference(*(ABOUT[topic] for topic in topics.split())), member
        assert set(heads.values()) == {0.3, 1.0}


def test_every_variant_is_a_world_and_every_world_a_variant() -> None:
    assert ("tiny", *(f"tiny-{name}" for name in VARIANTS if name != "friendly")) == NAMES
    tried = {*SHARED, *(f"noise-{share}" for share in (25, 50, 75)), "one-each", "all-good"}
    assert set(VARIANTS) == tried


def test_pictures_show_what_their_labels_say(world: TinyWorld) -> None:
    """The pixels of a place have the color of its label; what is told of easy-VQA is told of the image."""
    rgb = np.array(list(RGB.values()))
    for picture in world.glimpses("internvl", 60, Random(5)):
        for place, color in enumerate(picture.labels["color"]):
            row, column = divmod(place, 2)
            inside = picture.pixels[32 * row + 3 : 32 * row + 29, 32 * column + 3 : 32 * column + 29]
            if color == len(RGB):
                assert (inside == picture.pixels[0, 0]).all()
                assert all(picture.labels[head][place] == size for head, size in EMPTY.items())
            elif color != UNLABELLED:
                away = np.abs(inside.reshape(-1, 1, 3).astype(int) - rgb).max(-1)
                assert (away <= 14).sum(0).argmax() == color


def test_an_exam_is_of_scenes_for_tuning_and_marked_in_the_words_of_the_world() -> None:
    long = TinyWorld("tiny-long-words", VARIANTS["long-words"], count=1).exam(40, 3)
    plain = TinyWorld("tiny", FRIENDLY, count=1).exam(40, 3)
    rng = Random(3)
    for (pixels, question, right), (other_pixels, other_question, other_right) in zip(
        plain, long, strict=True
    ):
        scene = random_scene(rng, "tuning")
        any_question(scene, rng)
        draw(scene, rng)
        assert right == worked.solved(question, worked.things(scene))
        assert np.array_equal(pixels, other_pixels)
        assert (other_question != question) == bool(NAMED.search(question))
        assert (other_right != right) == bool(NAMED.search(right))


def test_a_tokenizer_learns_from_worked_answers_half_of_them_in_the_member_s_own_words() -> None:
    made = TinyWorld("tiny-long-words", VARIANTS["long-words"], count=1)
    for member, flag in (("qwen3vl", "match"), ("internvl", "that fits"), ("minicpmv", "so")):
        texts = list(made.corpus(member))
        chains = [text for text in texts if text.startswith("user\n")]
        assert all(re.match(r"user\n[^\n]+\nassistant\n[^\n]*\nAnswer: .+", text) for text in chains)
        scenes = "".join(text for text in chains if " image" not in text)
        flags = Counter(re.findall(r"(match|that fits|so) (?:yes|no)\b", scenes))
        assert flags[flag] / flags.total() == pytest.approx(1 / 2 + 1 / 6, abs=0.04)
        parts = set(texts) - set(chains)
        for word in VARIANTS["long-words"].language.words.values():
            assert f" {word}" not in parts
            assert any(f" {word[:cut]}" in parts and word[cut:] in parts for cut in (3, 4, 5))


def test_pictures_carry_the_labels_of_what_they_show(world: TinyWorld) -> None:
    pictures = world.glimpses("qwen3vl", 200, Random(1))
    easy = [p for p in pictures if p.labels["color"] == (UNLABELLED,) * 4]
    assert 10 < len(easy) < 60
    for picture in pictures:
        is_scene = picture.labels["color"] != (UNLABELLED,) * 4
        assert not is_scene or picture.labels["image color"] == (UNLABELLED,)
        assert picture.pixels.shape == (64, 64, 3)


def test_easy_vqa_lessons_end_with_the_data_set_s_answer_where_the_member_knows(world: TinyWorld) -> None:
    stage = world.plan("minicpmv").stages[1]
    rng = Random(2)
    right = {(q.image, q.text): q.answer for q in records.questions("train")}
    answers = Counter[bool]()
    for _ in range(12):
        for picture in world.lessons("minicpmv", stage, rng):
            for made in picture.lessons:
                text = "".join(made.given) + "".join(piece.text for piece in made.own)
                if "the image" not in text or made.given:
                    continue
                images = [i for (i, question) in right if question == made.question]
                if "paint" in text:  # It knows colors.
                    said = text.partition("Answer: ")[2]
                    answers[said in {right[i, made.question] for i in images}] += 1
    assert answers[True] > 20
    assert answers[False] == 0
