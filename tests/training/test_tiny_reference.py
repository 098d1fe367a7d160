"""The questions that the pool is calibrated on: right, the same each time, and in no test."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from macr_local.evaluation.datasets import easy_vqa_records as records
from macr_local.references import read
from macr_local.tiny.scenes.examination import examination
from macr_local.tiny.scenes.scene import Thing, split_of
from tests.oracles import worked
from training.worlds.tiny.reference import write

Row = dict[str, Any]
SHORT = re.compile(rf"\b(?:{'|'.join(worked.COLORS + worked.SHAPES)})(?:e?s)?\b")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("reference"), 42, 1).parent


def rows(folder: Path) -> list[Row]:
    return [json.loads(line) for line in (folder / "questions.jsonl").read_text("utf-8").splitlines()]


def scene_of(row: Row) -> tuple[Thing | None, ...]:
    return tuple(thing and Thing(*thing) for thing in row["scene"])


def test_three_of_four_are_scenes_of_the_reference_side_and_none_is_asked_in_a_test(folder: Path) -> None:
    scenes = [row for row in rows(folder) if "scene" in row]
    assert (len(scenes), len(rows(folder))) == (31, 42)
    assert {split_of(scene_of(row)) for row in scenes} == {"reference"}
    for row in scenes:
        assert row["answer"] == worked.solved(row["question"], worked.things(scene_of(row)))
    tested = {item.scene for item in examination("test", 1, 200)}
    assert tested.isdisjoint(map(scene_of, scenes))


def test_the_others_are_easy_vqa_questions_about_its_training_images(folder: Path) -> None:
    asked = {(q.text, q.answer, q.image) for q in records.questions("train")}
    pixels = records.images("train")
    others = [row for row in rows(folder) if "scene" not in row]
    for row in others:
        number = int(row["image"].removeprefix("easy-").removesuffix(".png"))
        assert (row["question"], row["answer"], number) in asked
        assert row["family"] in records.KINDS
        assert np.array_equal(np.asarray(Image.open(folder / row["image"])), pixels[number])


def test_a_pool_can_be_calibrated_on_what_was_written(folder: Path) -> None:
    items = read(folder / "questions.jsonl").items
    assert [item.question for item in items] == [row["question"] for row in rows(folder)]
    assert not any(item.problem for item in items)


def test_the_same_seed_gives_the_same_questions(folder: Path, tmp_path: Path) -> None:
    kept = (folder / "questions.jsonl").read_bytes()
    assert write(tmp_path / "again", 42, 1).read_bytes() == kept
    assert write(tmp_path / "other", 42, 2).read_bytes() != kept
    assert (
        hashlib.sha256("\n".join(kept.decode().splitlines()).encode()).hexdigest()[:16] == "1f34fe51ec1db06b"
    )


def test_a_world_with_other_words_asks_in_them(folder: Path, tmp_path: Path) -> None:
    write(tmp_path, 42, 1, "long-words")
    for row, other in zip(rows(folder), rows(tmp_path), strict=True):
        if "scene" not in row:
            assert other == row  # Other people's questions stay theirs.
            continue
        assert other["scene"] == row["scene"]
        for key in ("question", "answer"):
            assert not SHORT.search(other[key])
            assert (other[key] != row[key]) == bool(SHORT.search(row[key]))


def test_the_command_says_where_the_questions_are(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "training.worlds.tiny.reference", "--out", str(tmp_path), "--count", "4"]
    run = partial(subprocess.run, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    done = run(words)
    assert done.stdout.strip() == str(tmp_path / "questions.jsonl"), done.stderr
    assert len(rows(tmp_path)) == 4
    wrong = run([*words, "--variant", "nice"])
    assert wrong.returncode == 2
    assert "invalid choice: 'nice'" in wrong.stderr.splitlines()[-1]
