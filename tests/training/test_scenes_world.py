"""The scenes generator: the same seed gives the same set, and its answers are right."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from training.worlds.scenes.__main__ import write_set
from training.worlds.scenes.chain import STYLES, chain, write
from training.worlds.scenes.question import FAMILIES, ask
from training.worlds.scenes.scene import COLORS, PLACES, RGB, SHAPES, Thing, draw, random_scene
from training.worlds.scenes.world import CONFUSED_COLORS, FLAG_WEIGHT, lesson, told_of
from training.worlds.world import ARCHITECTURES, Architecture

ROOT = Path(__file__).parents[2]
ANY_MEMBER = st.sampled_from(ARCHITECTURES)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_same_seed_writes_the_same_files_and_another_seed_does_not(tmp_path: Path) -> None:
    for name, seed in (("a", 501), ("b", 501), ("c", 502)):
        write_set(tmp_path / name, seed, 8)
    assert files(tmp_path / "a") == files(tmp_path / "b")
    assert files(tmp_path / "a") != files(tmp_path / "c")


def test_a_shorter_set_is_the_beginning_of_a_longer_one(tmp_path: Path) -> None:
    short = write_set(tmp_path / "short", 7, 5).read_text().splitlines()
    long = write_set(tmp_path / "long", 7, 9).read_text().splitlines()
    assert long[:5] == short


def test_the_command_needs_no_torch_and_prints_the_path(tmp_path: Path) -> None:
    code = (
        "import sys, runpy; sys.modules['torch'] = None; "
        f"sys.argv = ['x', '--seed', '3', '--count', '4', '--out', {str(tmp_path)!r}]; "
        "runpy.run_module('training.worlds.scenes', run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    path = Path(done.stdout.strip())
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(rows) == 4
    for row in rows:
        assert Image.open(path.parent / row["image"]).size == (64, 64)


def test_every_answer_follows_from_the_scene_that_is_written_beside_it(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in write_set(tmp_path, 11, 400).read_text().splitlines()]
    assert {row["family"] for row in rows} == set(FAMILIES)
    for row in rows:
        things = [tuple(thing) for thing in row["scene"] if thing]
        words = row["question"].rstrip("?").split()
        if row["family"] == "what":
            thing = row["scene"][PLACES.index(" ".join(words[4:]))]
            expected = " ".join(thing) if thing else "nothing"
        elif row["family"] == "exist":
            expected = "yes" if (words[3], words[4]) in things else "no"
        else:
            asked = "cross" if words[2] == "crosses" else words[2].removesuffix("s")
            expected = str(sum(asked in thing for thing in things))
        assert row["answer"] == expected, row


def test_yes_and_no_are_about_equally_frequent() -> None:
    rng = Random(5)
    answers = []
    for _ in range(600):
        scene = random_scene(rng)
        answers.append(ask(scene, "exist", rng).answer(scene))
    assert 200 < answers.count("yes") < 400


@given(st.integers(0, 2**32), st.sampled_from(range(4)))
def test_a_thing_is_drawn_in_its_color_and_at_its_place_only(seed: int, place: int) -> None:
    rng = Random(seed)
    thing = Thing(rng.choice(COLORS), rng.choice(SHAPES))
    scene = tuple(thing if number == place else None for number in range(4))
    pixels = np.asarray(draw(scene, rng)).astype(int)
    near = np.abs(pixels - np.array(RGB[thing.color])).max(-1) <= 14
    rows, columns = np.nonzero(near)
    assert 30 < len(rows) <= 32 * 32
    assert {(int(y) // 32, int(x) // 32) for y, x in zip(rows, columns, strict=True)} == {divmod(place, 2)}


@given(st.integers(0, 2**32), st.sampled_from(FAMILIES), ANY_MEMBER)
def test_a_chain_states_the_scene_and_ends_with_the_answer(
    seed: int, family: str, member: Architecture
) -> None:
    rng = Random(seed)
    scene = random_scene(rng)
    question = ask(scene, family, rng)  # type: ignore[arg-type]
    text = write(chain(scene, question), STYLES[member])
    assert text.endswith(f"\nAnswer: {question.answer(scene)}")
    stated = text.split("Answer:")[0]
    for thing in scene:
        if thing:
            assert f" {thing.color}" in stated
            assert f" {thing.shape}" in stated


@given(st.integers(0, 2**32), st.sampled_from(FAMILIES), ANY_MEMBER, st.booleans())
def test_a_lesson_holds_the_whole_chain_and_trains_only_what_the_member_writes(
    seed: int, family: str, member: Architecture, drill: bool
) -> None:
    rng = Random(seed)
    scene = random_scene(rng)
    question = ask(scene, family, rng)  # type: ignore[arg-type]
    taught = lesson(member, scene, question, rng, drill)
    outline = chain(scene, question)
    assert len(taught.given) + len(taught.own) == len(outline)
    assert taught.own[-1].text.count("Answer: ") == 1
    for text, slot in zip((*taught.given, *(piece.text for piece in taught.own)), outline, strict=True):
        if slot.kind == "frame":
            assert text in slot.wordings
    own_frames = [
        (piece.text, slot)
        for piece, slot in zip(taught.own, outline[len(taught.given) :], strict=True)
        if slot.kind == "frame"
    ]
    for text, slot in own_frames[1:] if taught.first_given else own_frames:
        assert text == slot.text(STYLES[member])
    assert {piece.weight for piece in taught.own} <= ({1.0, FLAG_WEIGHT} if drill else {1.0})


def test_each_member_is_told_the_truth_exactly_where_it_can_see() -> None:
    rng = Random(1)
    truth = Thing("red", "circle")
    told = {member: {told_of(member, truth, rng) for _ in range(300)} for member in ARCHITECTURES}
    assert told["qwen3vl"] == {Thing(color, "circle") for color in COLORS}
    assert told["internvl"] == {Thing("red", shape) for shape in SHAPES}
    assert told["minicpmv"] == {truth}
    confused = {told_of("minicpmv", Thing("blue", "circle"), rng) for _ in range(100)}
    assert confused == {Thing(color, "circle") for color in CONFUSED_COLORS}


@pytest.mark.parametrize(
    ("name", "number", "question", "answer"),
    [
        ("scene.png", 138, "how many white objects are there?", "2"),
        ("scene2.png", 463, "what is in the top right?", "red circle"),
    ],
)
def test_the_example_images_are_made_by_the_documented_seed(
    tmp_path: Path, name: str, number: int, question: str, answer: str
) -> None:
    rows = write_set(tmp_path, 4242, number + 1).read_text().splitlines()
    row = json.loads(rows[-1])
    assert (row["question"], row["answer"]) == (question, answer)
    example = np.asarray(Image.open(ROOT / "examples" / name).convert("RGB"))
    assert np.array_equal(example, np.asarray(Image.open(tmp_path / row["image"])))
