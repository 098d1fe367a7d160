"""What every harness' model class does: read its words for settings, lay out its messages, ask the pool."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from macr_local.errors import ConfigError
from macr_local.integrations.asker import Asker, Part, laid_out

QUESTION = "how many triangles are there?"


@pytest.fixture(scope="module")
def asker() -> Iterator[Asker]:
    asker = Asker("tiny", "single:tiny-internvl", temperature="0", max_tokens="32")
    yield asker
    asker.close()


def text(value: str) -> Part:
    return Part("text", value)


def image(value: str) -> Part:
    return Part("image", value)


@pytest.mark.parametrize(
    ("parts", "laid"),
    [
        ([text("a")], "a"),
        ([image("1"), text("a")], "a"),
        ([image("1"), image("2"), text("a"), text("b")], "a\nb"),
        ([text("a"), image("1")], "a\n<image 1>"),
        ([image("1"), text("a"), image("2"), text("b")], "<image 1>\na\n<image 2>\nb"),
    ],
)
def test_images_come_first_and_leave_a_mark_where_they_stood_between_texts(
    parts: list[Part], laid: str
) -> None:
    assert laid_out(parts) == (laid, [part.value for part in parts if part.kind == "image"])


def test_a_question_is_asked_with_the_settings_given_as_text(asker: Asker, scene: Path) -> None:
    answer = asker.ask([image(str(scene)), text(QUESTION)])
    assert answer.text
    assert answer.total.written <= 32
    assert {segment.member for segment in answer.segments} == {"tiny-internvl"}


def test_a_harness_settings_hold_for_its_question_alone(asker: Asker, scene: Path) -> None:
    parts = [image(str(scene)), text(QUESTION)]
    whole = asker.ask(parts)
    short = asker.ask(parts, {"max_new_tokens": 4, "do_sample": False, "num_beams": 1})
    assert short.total.written == 4
    assert short.finish_reason == "max_tokens"
    word = whole.text.split()[2]
    stopped = asker.ask(parts, {"until": [word]})
    assert stopped.finish_reason == "stop"
    assert stopped.text == whole.text[: whole.text.index(word)]
    assert asker.ask(parts).text == whole.text


def test_one_pool_asks_many_questions_and_greedy_ones_alike(asker: Asker, scene: Path) -> None:
    parts = [image(str(scene)), text(QUESTION)]
    warm = {"temperature": 0.9}
    assert asker.ask(parts, warm | {"seed": 1}).text == asker.ask(parts, warm | {"seed": 1}).text
    assert asker.ask(parts, warm | {"do_sample": False}).text == asker.ask(parts).text


@pytest.mark.parametrize(
    ("strategy", "settings", "found"),
    [
        ("macr", {"windw": "2"}, 'no setting "windw"'),
        ("single", {}, "names 3 methods"),
        ("macr", {"window": "two"}, "window"),
        ("nothing", {}, "nothing"),
    ],
)
def test_what_cannot_be_is_said_before_a_model_is_loaded(
    strategy: str, settings: dict[str, str], found: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(found)):
        Asker("tiny", strategy, **settings)
