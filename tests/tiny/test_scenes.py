"""The visual world: answers are right, sets can be made again to the byte, no scene is on two sides."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import pytest
from PIL import Image

from macr_local.tiny.scenes.chain import NUMBERS, chain, write
from macr_local.tiny.scenes.examination import examination
from macr_local.tiny.scenes.examination import write as write_set
from macr_local.tiny.scenes.knowledge import BLIND, TOPICS, knows
from macr_local.tiny.scenes.question import FAMILIES
from macr_local.tiny.scenes.reader import agrees, follow, stated
from macr_local.tiny.scenes.scene import PLACES, split_of
from macr_local.tiny.scenes.wording import STYLES, Language

COUNT = 480
PLACE = {name: number for number, name in enumerate(PLACES)}
WORDS = {"size": r"small|large", "shape": r"circle|square|triangle|cross"}
WORDS["color"] = r"red|green|blue|yellow|purple|white"


@pytest.fixture(scope="module")
def records() -> list[dict]:  # type: ignore[type-arg]
    return [item.record("x.png") for item in examination("test", 1, COUNT)]


def number(word: str) -> int:
    return NUMBERS.index(word)


def things(record: dict) -> dict[int, dict[str, str]]:  # type: ignore[type-arg]
    """What stands at each place that is not empty."""
    keys = ("size", "color", "shape", "digit")
    return {i: dict(zip(keys, thing, strict=True)) for i, thing in enumerate(record["scene"]) if thing}


def wanted(phrase: str) -> dict[str, str]:
    """The attributes that a phrase names."""
    return {what: found[0] for what, words in WORDS.items() if (found := re.findall(words, phrase))}


def fits(thing: dict[str, str], named: dict[str, str]) -> bool:
    return all(thing[what] == value for what, value in named.items())


def solved(record: dict) -> str:  # type: ignore[type-arg]
    """The answer, worked out anew from the words of the question and the scene."""
    question, scene = record["question"], things(record)
    match record["family"]:
        case "count":
            return NUMBERS[sum(fits(t, wanted(question)) for t in scene.values())]
        case "exist":
            return "yes" if any(fits(t, wanted(question)) for t in scene.values()) else "no"
        case "none":
            return "no" if any(fits(t, wanted(question)) for t in scene.values()) else "yes"
        case "row":
            where = {"top": (0, 1), "bottom": (2, 3), "left": (0, 2), "right": (1, 3)}
            (side,) = re.findall(r"top|bottom|left|right", question)
            said = [scene[i] for i in where[side] if i in scene]
            return ", ".join(f"{t['color']} {t['shape']} {t['digit']}" for t in said) or "nothing"
        case "compare":
            first, second = question.split(" than ")
            counts = [sum(fits(t, wanted(half)) for t in scene.values()) for half in (first, second)]
            return "yes" if counts[0] > counts[1] else "no"
        case "sum":
            return NUMBERS[sum(number(t["digit"]) for t in scene.values() if fits(t, wanted(question)))]
        case "largest":
            best = max(scene.values(), key=lambda t: number(t["digit"]))
            return f"{best['color']} {best['shape']}"
        case "side":
            asked, phrase = re.fullmatch(r"what (\w+) is (.*)\?", question).groups()  # type: ignore[union-attr]
            (here,) = [i for i, t in scene.items() if fits(t, wanted(phrase))]
            (side,) = re.findall(r"left|right|above|below", phrase)
            row, column = divmod(here, 2)
            row += {"above": -1, "below": 1}.get(side, 0)
            column += {"left": -1, "right": 1}.get(side, 0)
            there = row * 2 + column if row in (0, 1) and column in (0, 1) else -1
            return scene[there][asked] if there in scene else "nothing"
    raise AssertionError(record["family"])


def test_every_answer_is_the_one_that_the_scene_gives(records: list[dict]) -> None:  # type: ignore[type-arg]
    assert Counter(record["family"] for record in records) == dict.fromkeys(FAMILIES, COUNT // len(FAMILIES))
    for record in records:
        assert record["answer"] == solved(record), record


def test_no_constant_answer_gets_far(records: list[dict]) -> None:  # type: ignore[type-arg]
    for family in FAMILIES:
        answers = Counter(r["answer"] for r in records if r["family"] == family)
        assert answers.most_common(1)[0][1] <= 0.67 * answers.total(), (family, answers)


def test_what_a_chain_sees_is_there(records: list[dict]) -> None:  # type: ignore[type-arg]
    for record in records:
        scene, here = things(record), None
        for kind, value in record["chain"]:
            if kind == "place":
                here = PLACE[value]
            elif kind in ("size", "color", "shape", "digit"):
                assert here is not None
                assert scene[here][kind] == value


def test_chains_are_as_long_as_their_scenes_are_full() -> None:
    lengths = []
    for item in examination("test", 1, COUNT):
        text = write(list(item.reference), 0)
        lengths.append(len(re.findall(r"\w+|[^\w\s]", text)))
        assert text.endswith(f"\nAnswer: {item.answer}")
    assert max(lengths) <= 90
    assert 25 <= sum(lengths) / len(lengths) <= 60


# Sets.


def digest(split: str, seed: int) -> str:
    """Of questions, answers, chains and pixels; PNG files may differ with the compressor's version."""
    found = hashlib.sha256()
    for item in examination(split, seed, 40):  # type: ignore[arg-type]
        found.update(json.dumps(item.record("x")).encode())
        found.update(np.asarray(item.image).tobytes())
    return found.hexdigest()[:16]


def test_a_set_is_made_again_to_the_byte() -> None:
    assert digest("test", 1) == "4ecd1a3437ea57fb"
    assert digest("tuning", 7) == "c37ba5ffaab642dc"
    assert digest("test", 2) != digest("test", 1)


def test_a_shorter_set_is_the_beginning_of_a_longer_one() -> None:
    long = [item.record("x") for item in examination("test", 5, 20)]
    assert [item.record("x") for item in examination("test", 5, 7)] == long[:7]


def test_no_scene_is_on_two_sides() -> None:
    sides = ("train", "reference", "tuning", "test")
    seen = {side: {item.scene for item in examination(side, 3, 200)} for side in sides}  # type: ignore[arg-type]
    for side, scenes in seen.items():
        assert {split_of(scene) for scene in scenes} == {side}
        assert all(scenes.isdisjoint(others) for name, others in seen.items() if name != side)


def test_the_command_writes_a_set_that_can_be_read(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "macr_local.tiny.scenes", "--split", "test", "--count", "4"]
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "set")], capture_output=True, text=True, check=True
    )
    path = Path(done.stdout.strip())
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["question"] for row in rows] == [i.question.text for i in examination("test", 1, 4)]
    for row in rows:
        assert Image.open(path.parent / row["image"]).size == (64, 64)
    wrong = subprocess.run([*command, "--out", "x", "--split", "dev"], capture_output=True, text=True)
    assert wrong.returncode == 2
    assert "Traceback" not in wrong.stderr


def test_the_same_pictures_are_written(tmp_path: Path) -> None:
    path = write_set(tmp_path, examination("test", 1, 4))
    for item in examination("test", 1, 4):
        name = json.loads(path.read_text().splitlines()[item.number])["image"]
        assert np.array_equal(np.asarray(Image.open(tmp_path / name)), np.asarray(item.image))


# Who knows what.


def test_each_topic_is_known_by_exactly_one_member() -> None:
    for kinds in TOPICS.values():
        for kind in kinds:
            assert sum(knows(member, kind) for member in BLIND) == 1
    for kind in ("frame", "place", "flag", "verdict", "copy", "answer", "size"):
        assert all(knows(member, kind) for member in BLIND)  # type: ignore[arg-type]


# Reading a chain back.


def test_a_right_chain_agrees_whoever_worded_it_and_a_wrong_one_does_not() -> None:
    rng = Random(5)
    for item in examination("tuning", 2, 80):
        mixed = "".join(slot.text(rng.randrange(STYLES)) for slot in item.reference)
        assert agrees(mixed, item.reference)
        values = [slot.value for slot in item.reference if slot.value and slot.kind != "answer"]
        assert [found.value for found in stated(mixed)] == values
        found = rng.choice([one for one in stated(mixed) if one.value != "red"])
        assert not agrees(f"{mixed[: found.start]}red{mixed[found.end :]}", item.reference)
        assert not agrees(mixed.replace("Answer: ", "Answer: not "), item.reference)
        assert not agrees(mixed.partition("\n")[0], item.reference)


@pytest.mark.parametrize("language", [Language(), Language(close=True), Language(words={"red": "vermilion"})])
def test_what_comes_next_is_known_at_every_point_of_a_chain_right_or_wrong(language: Language) -> None:
    rng = Random(6)
    for item in examination("tuning", 3, 60, language):

        def said(kind: str, word: str, number: int) -> str:
            wrong = {"flag": ("yes", "no"), "color": ("red", "blue"), "digit": ("one", "two")}
            return rng.choice(wrong[kind]) if kind in wrong and rng.random() < 0.3 else word

        slots = chain(item.scene, item.question, said, language)
        text = ""
        for slot in slots:
            if slot.kind in ("size", "color", "shape", "digit", "flag", "tally", "total", "most", "count"):
                reading = follow(text, item.scene, item.question, language)
                assert reading.following == slot.kind, (text, slot)
            text += slot.text(rng.randrange(STYLES))
        topical = [slot.kind for slot in slots if slot.value and slot.kind != "answer"]
        assert [kind for _, kind in follow(text, item.scene, item.question, language).values] == topical
