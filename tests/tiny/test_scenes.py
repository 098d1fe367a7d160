"""The visual world: answers are right, sets can be made again to the byte, no scene is on two sides."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import get_args

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from macr_local.tiny.scenes.chain import KINDS
from macr_local.tiny.scenes.examination import PER_IMAGE, Item, examination, write
from macr_local.tiny.scenes.knowledge import BLIND, TOPICS, knows
from macr_local.tiny.scenes.question import FAMILIES
from macr_local.tiny.scenes.scene import RGB, Split, random_thing, split_of
from macr_local.tiny.scenes.wording import Language
from tests.oracles import worked

COUNT = 800
SPLITS: tuple[Split, ...] = get_args(Split)


@pytest.fixture(scope="module")
def items() -> list[Item]:
    return list(examination("test", 1, COUNT))


# Questions and answers.


def test_every_answer_is_the_one_that_the_scene_gives(items: list[Item]) -> None:
    assert Counter(i.question.family for i in items) == dict.fromkeys(FAMILIES, COUNT // len(FAMILIES))
    for item in items:
        text = item.question.text
        assert worked.asked(text).family == item.question.family
        assert item.answer == worked.solved(text, worked.things(item.scene)), (text, item.scene)


def test_no_constant_answer_gets_far(items: list[Item]) -> None:
    # Most frequent: "one" is half of the counts; yes and no are even; elsewhere there are many answers.
    bounds = {"count": 0.6, "exist": 0.6, "none": 0.6, "compare": 0.6}
    bounds |= {"row": 0.15, "side": 0.25, "sum": 0.3, "largest": 0.15}
    for family, bound in bounds.items():
        answers = Counter(item.answer for item in items if item.question.family == family)
        assert answers.most_common(1)[0][1] <= bound * answers.total(), (family, answers)


def test_questions_ask_for_what_is_there_and_for_what_is_not(items: list[Item]) -> None:
    sums = Counter(item.answer for item in items if item.question.family == "sum")
    counts = Counter(item.answer for item in items if item.question.family == "count")
    assert counts.keys() >= {"zero", "one", "two", "three"}
    assert len(sums) > 10
    sides = [worked.asked(item.question.text) for item in items if item.question.family == "side"]
    assert {(ask.side, ask.attribute) for ask in sides} == {
        (side, attribute) for side in ("left", "right", "above", "below") for attribute in ("color", "shape")
    }


# Sets.


def digest(split: Split, seed: int) -> str:
    """Of questions, answers, chains and pixels; PNG files may differ with the compressor's version."""
    found = hashlib.sha256()
    for item in examination(split, seed, 40):
        found.update(json.dumps(item.record("x")).encode())
        found.update(np.asarray(item.image).tobytes())
    return found.hexdigest()[:16]


def test_a_set_is_made_again_to_the_byte() -> None:
    assert digest("test", 1) == "4ecd1a3437ea57fb"
    assert digest("tuning", 7) == "c37ba5ffaab642dc"
    assert digest("test", 2) != digest("test", 1)


def test_a_written_set_is_the_same_file_and_the_same_pictures(tmp_path: Path, items: list[Item]) -> None:
    path = write(tmp_path, iter(items[:20]))
    assert hashlib.sha256(path.read_bytes()).hexdigest()[:16] == "48b8a3323bc77197"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert sorted(file.name for file in tmp_path.glob("*.png")) == sorted({row["image"] for row in rows})
    for row, item in zip(rows, items, strict=False):
        assert np.array_equal(np.asarray(Image.open(tmp_path / row["image"])), np.asarray(item.image))
        assert (row["question"], row["answer"]) == (item.question.text, item.answer)
        assert {kind for kind, _ in row["chain"]} <= set(KINDS)


def test_an_empty_set_has_no_lines(tmp_path: Path) -> None:
    assert write(tmp_path, iter(())).read_bytes() == b""


def test_a_shorter_set_is_the_beginning_of_a_longer_one() -> None:
    long = [item.record("x") for item in examination("test", 5, 20)]
    assert [item.record("x") for item in examination("test", 5, 7)] == long[:7]


def test_two_questions_share_an_image_and_differ_in_family(items: list[Item]) -> None:
    assert [item.image_number for item in items] == [n // PER_IMAGE for n in range(COUNT)]
    for first, second in zip(items[::2], items[1::2], strict=True):
        assert first.scene == second.scene
        assert first.question.family != second.question.family


def test_no_scene_is_on_two_sides() -> None:
    seen = {side: {item.scene for item in examination(side, 3, 200)} for side in SPLITS}
    for side, scenes in seen.items():
        assert {split_of(scene) for scene in scenes} == {side}
        assert all(scenes.isdisjoint(others) for name, others in seen.items() if name != side)


def test_a_scene_s_side_is_a_matter_of_what_it_shows() -> None:
    """The last figure of a sha256's first byte: one is for reference, one for tuning, one for tests."""
    parts: dict[int, Split] = {0: "reference", 1: "tuning", 2: "test"}
    rng = Random(9)
    shares: Counter[Split] = Counter()
    for _ in range(2000):
        scene = tuple(rng.choice((None, random_thing(rng))) for _ in range(4))
        shown = ["-" if t is None else f"{t.size} {t.color} {t.shape} {t.digit}" for t in scene]
        first = hashlib.sha256("|".join(shown).encode()).digest()[0]
        side = split_of(scene)
        assert side == parts.get(first % 10, "train")
        shares[side] += 1
    assert shares["train"] / shares.total() == pytest.approx(0.7, abs=0.04)


# Pictures.


def quarter(pixels: NDArray[np.int64], place: int) -> NDArray[np.int64]:
    """The inside of a place, which no neighbour's soft edge reaches, as (n, 3)."""
    row, column = divmod(place, 2)
    return pixels[32 * row + 3 : 32 * row + 29, 32 * column + 3 : 32 * column + 29].reshape(-1, 3)


def test_each_place_shows_its_thing_in_its_color_and_nothing_where_nothing_is(items: list[Item]) -> None:
    for item in items[:200:2]:
        pixels = np.asarray(item.image).astype(np.int64)
        background = pixels[0, 0]
        assert len(set(background)) == 1, "it is gray"
        for place, thing in enumerate(item.scene):
            inside = quarter(pixels, place)
            if thing is None:
                assert (inside == background).all()
                continue
            # Tints go up to 12 from the color; ink is a small part.
            near = [(np.abs(inside - np.array(rgb)).max(1) <= 14).sum() for rgb in RGB.values()]
            assert list(RGB)[int(np.argmax(near))] == thing.color
            assert max(near) > 30


def test_large_things_cover_more_of_their_place_than_small_ones(items: list[Item]) -> None:
    covered: dict[tuple[str, str], list[int]] = {}
    for item in items[::2]:
        pixels = np.asarray(item.image).astype(np.int64)
        for place, thing in enumerate(item.scene):
            if thing is not None:
                shown = np.abs(quarter(pixels, place) - pixels[0, 0]).max(-1) > 20
                covered.setdefault((thing.shape, thing.size), []).append(int(shown.sum()))
    for shape in worked.SHAPES:
        assert max(covered[shape, "small"]) < min(covered[shape, "large"]), shape


# The command.


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "macr_local.tiny.scenes", *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True)


def test_the_command_writes_a_set_that_can_be_read(tmp_path: Path) -> None:
    done = command("--split", "test", "--count", 4, "--out", tmp_path / "new" / "set")
    assert done.returncode == 0, done.stderr
    path = Path(done.stdout.strip())
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert [row["question"] for row in rows] == [i.question.text for i in examination("test", 1, 4)]
    for row in rows:
        assert Image.open(path.parent / row["image"]).size == (64, 64)


def test_what_the_command_cannot_do_is_one_clear_line(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    wrong = {
        ("--split", "dev", "--out", "x"): "invalid choice: 'dev'",
        ("--count", "2"): "--out",
        ("--count", "0", "--out", "x"): "'0' is no number of questions",
        ("--count=-4", "--out", "x"): "'-4' is no number of questions",
        ("--count", "many", "--out", "x"): "'many' is no number of questions",
        ("--seed", "1.5", "--out", "x"): "'1.5'",
        ("--count", "2", "--out", str(file)): f"{file} cannot be written",
        ("--count", "2", "--out", str(file / "in")): f"{file / 'in'} cannot be written",
    }
    for arguments, said in wrong.items():
        done = command(*arguments)
        assert done.returncode == 2, arguments
        assert done.stdout == ""
        assert "Traceback" not in done.stderr
        assert said in done.stderr.splitlines()[-1], done.stderr
    assert not Path("x").exists()


# Who knows what.


def test_each_topic_is_known_by_exactly_one_member() -> None:
    expert = {"color": "minicpmv", "shape": "internvl"}
    expert |= dict.fromkeys(("digit", "tally", "total", "most", "count"), "qwen3vl")
    assert set(expert) == set().union(*TOPICS.values())
    for kind in KINDS:
        able = {member for member in BLIND if knows(member, kind)}
        assert able == ({expert[kind]} if kind in expert else set(BLIND)), kind


def test_articles_follow_the_words_of_a_language() -> None:
    language = Language(words={"white": "alabaster", "blue": "ultramarine", "circle": "roundel"})
    assert language.rename("is there a white circle?") == "is there an alabaster roundel?"
    assert language.rename("is there a blue square?") == "is there an ultramarine square?"
    assert language.rename("are there more circles than crosses?") == "are there more roundels than crosses?"
    assert Language().rename("is there a orange?") == "is there a orange?"
