"""What is asked, and what is made of an answer."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from benchmarks.quality.mechanism import Mechanism
from benchmarks.quality.task import Task, easy_vqa, scenes
from benchmarks.quality.trial import Method, Outcome, attempt, final_line, who_knows
from macr_local.errors import DataError
from macr_local.evaluation.datasets import easy_vqa_records as records
from macr_local.relay.counters import Counters
from macr_local.relay.events import Event, Finished, Relayed, Started, Text, Token
from macr_local.settings import RelaySettings
from macr_local.tiny.scenes.chain import write
from macr_local.tiny.scenes.examination import examination
from macr_local.tiny.scenes.scene import split_of
from macr_local.tiny.scenes.wording import Language
from tests.oracles import worked

MEMBERS = ("tiny-qwen3vl", "tiny-internvl", "tiny-minicpmv")
RELAY = Method("relay", "relay", RelaySettings(window=1))


# Tasks.


def test_scenes_are_those_of_the_test_set_two_to_a_cluster() -> None:
    tasks = list(scenes("test", 1, 40))
    assert len({task.key for task in tasks}) == 40
    assert Counter(task.cluster for task in tasks) == dict.fromkeys(range(20), 2)
    for task, item in zip(tasks, examination("test", 1, 40), strict=True):
        assert (task.question, task.family) == (item.question.text, item.question.family)
        assert task.answer == worked.solved(task.question, worked.things(item.scene))
        assert split_of(item.scene) == "test"
        assert np.array_equal(task.image.pixels, np.asarray(item.image))
        assert task.reference == item.reference


def test_scenes_in_other_words_ask_and_answer_in_them() -> None:
    language = Language(words={"red": "vermilion", "cross": "saltire"})
    named = re.compile(r"\b(?:red|cross(?:es)?)\b")
    changed = 0
    for plain, other in zip(scenes("tuning", 1, 80), scenes("tuning", 1, 80, language), strict=True):
        for before, after in ((plain.question, other.question), (plain.answer, other.answer)):
            assert not named.search(after)
            assert (before != after) == bool(named.search(before))
            changed += before != after
        assert write(list(other.reference), 0).endswith(f"\nAnswer: {other.answer}")
    assert changed > 20


@pytest.fixture(scope="module")
def asked() -> list[Task]:
    return list(easy_vqa("test", 1, 600))


def test_easy_vqa_asks_as_much_of_each_kind_and_for_yes_as_often_as_for_no(asked: list[Task]) -> None:
    assert Counter(task.family for task in asked) == dict.fromkeys(records.KINDS, 150)
    for kind in ("yes_no_color", "yes_no_shape"):
        answers = Counter(task.answer for task in asked if task.family == kind)
        assert answers == {"yes": 75, "no": 75}
    shapes = Counter(task.answer for task in asked if task.family == "open_shape")
    assert shapes == dict.fromkeys(records.SHAPES, 50)
    colors = Counter(task.answer for task in asked if task.family == "open_color")
    assert max(colors.values()) - min(colors.values()) <= 1
    assert len(colors) == len(records.COLORS)


def test_easy_vqa_asks_about_each_image_once_and_nothing_that_is_not_true(asked: list[Task]) -> None:
    assert len({task.cluster for task in asked}) == len({task.key for task in asked}) == len(asked)
    told = {(q.text, q.image): q.answer for q in records.questions("test")}
    for task in asked:
        assert told[task.question, task.cluster] == task.answer
        assert np.array_equal(task.image.pixels, records.images("test")[task.cluster])
        assert (task.item, task.reference) == (None, ())


def test_easy_vqa_is_the_same_for_the_same_seed_and_short_sets_begin_long_ones(asked: list[Task]) -> None:
    again = [(task.key, task.question) for task in easy_vqa("test", 1, 30)]
    assert again == [(task.key, task.question) for task in asked[:30]]
    assert again != [(task.key, task.question) for task in easy_vqa("test", 2, 30)]


def test_more_questions_than_there_are_images_for_are_refused() -> None:
    with pytest.raises(DataError, match="only 964 balanced questions"):
        list(easy_vqa("test", 1, 5000))


# Outcomes.


def happened(text: str, member: str = MEMBERS[0]) -> Iterator[Event]:
    """One member writes a text, word by word; it reads 10 cells and an image of 16, and drops two tokens."""
    pieces = re.findall(r"\s*\w+|\s*[^\w\s]", text)
    yield Started((member,), {member: 10}, {member: 16}, 0.1)
    yield Relayed(0, None, member, 0.1)
    for number, piece in enumerate(pieces):
        yield Token(member, number, 0, piece.encode(), -0.25 * (number % 2), -0.1, 0.5)
        yield Text(member, piece)
    counters = Counters(prompt_text=10, prompt_image=16, committed=len(pieces), discarded=2, ingested=3)
    yield Finished("end", len(pieces), 0.2, {member: counters})


def tried(task: Task, text: str, method: Method = RELAY) -> Outcome:
    return attempt(lambda *_: list(happened(text)), method, task, MEMBERS, who_knows())


@pytest.fixture(scope="module")
def task() -> Task:
    return next(task for task in scenes("test", 1, 80) if task.family == "largest")


def test_a_whole_right_chain_is_right_all_through(task: Task) -> None:
    text = write(list(task.reference), 2)
    found = tried(task, text)
    assert (found.right, found.chain, found.text) == (True, True, text)
    assert (found.key, found.cluster, found.family) == (task.key, task.cluster, "largest")
    assert (found.prompt, found.discarded, found.ingested) == (26, 2, 3)
    assert found.generated == found.committed + 2
    assert found.relays == found.handovers == 0
    count = found.committed
    assert found.mean == pytest.approx(-0.25 * (count // 2) / count)
    assert found.mechanism.tokens == count
    topical = [slot for slot in task.reference if slot.kind in ("color", "shape", "digit", "most")]
    assert found.mechanism.values == len(topical)
    unknown = [slot for slot in topical if slot.kind in ("color", "shape")]
    assert found.mechanism.values_unknown == len(unknown), "it knows numbers"


def test_a_right_answer_can_stand_behind_a_wrong_chain_and_the_other_way_round(task: Task) -> None:
    body, mark, answer = write(list(task.reference), 0).partition("\nAnswer: ")
    lucky = tried(task, f"top left: digit one.{mark}{answer}")
    assert (lucky.right, lucky.chain) == (True, False)
    slip = tried(task, f"{body}{mark}red star")
    assert (slip.right, slip.chain) == (False, False)
    nothing = tried(task, body)
    assert (nothing.right, nothing.chain) == (False, False)


def test_only_relays_and_members_alone_have_a_mechanism(task: Task) -> None:
    text = write(list(task.reference), 0)
    for name, counted in (("relay", True), ("single", True), ("vote", False), ("best-of", False)):
        method = Method(name, name, RELAY.settings)
        assert (tried(task, text, method).mechanism != Mechanism()) == counted, name


def test_nobody_knows_a_worked_answer_to_easy_vqa(asked: list[Task]) -> None:
    found = tried(asked[0], f"so it is.\nAnswer: {asked[0].answer}")
    assert (found.right, found.chain, found.mechanism) == (True, None, Mechanism())


def test_an_outcome_survives_a_file(task: Task) -> None:
    found = tried(task, write(list(task.reference), 0))
    assert Outcome.of(json.loads(json.dumps(found.to_dict()))) == found


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("so it is two.\nAnswer: two", "two"),
        ("Answer: Two. ", "two"),
        ("Answer: one\nAnswer: red circle three, blue cross one", "red circle three, blue cross one"),
        ("Answer:", ""),
        ("so it is two.", None),
        ("", None),
    ],
)
def test_the_final_line_is_what_the_last_mark_is_followed_by(text: str, line: str | None) -> None:
    assert final_line(text) == line
