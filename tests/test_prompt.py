"""A prompt holds what it says it holds; anything else is refused before a model sees it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from macr_local.errors import ConfigError
from macr_local.images import load
from macr_local.prompt import Prompt


@pytest.mark.parametrize("question", [None, 3, b"what?", ["what?"], Path("x.png")])
def test_a_question_that_is_no_text_is_refused_by_its_type(question: Any) -> None:
    for make in (Prompt, Prompt.of):
        with pytest.raises(ConfigError, match=f"question is of type {type(question).__name__}"):
            make(question)


@pytest.mark.parametrize("question", ["", " ", "\n\t", "\u2003"])
def test_a_blank_question_is_refused(question: str) -> None:
    for make in (Prompt, Prompt.of):
        with pytest.raises(ConfigError, match="asks nothing"):
            make(question)


def test_half_a_character_is_refused_wherever_it_stands() -> None:
    with pytest.raises(ConfigError, match="question holds half a character"):
        Prompt("caf\udce9?")
    with pytest.raises(ConfigError, match="system holds half a character"):
        Prompt("what?", system="\ud83d")


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ({"system": 3}, "system is of type int"),
        ({"think": 1}, "think is 1"),
        ({"think": "yes"}, "think is 'yes'"),
        ({"images": None}, "images is of type NoneType"),
        ({"images": "x.png"}, "images is of type str"),
        ({"images": ("x.png",)}, "images is a tuple with a str"),
    ],
)
def test_other_parts_of_another_type_are_refused_by_name(more: dict[str, Any], found: str) -> None:
    with pytest.raises(ConfigError, match=found):
        Prompt("what?", **more)


def test_images_may_be_loaded_already(scene: Path) -> None:
    image = load(scene)
    assert Prompt.of("what?", image).images == Prompt.of("what?", [image]).images == (image,)
    assert Prompt.of("what?", [scene, image]).images == (image, image)
    assert Prompt("what?", [image]) == Prompt("what?", (image,))  # type: ignore[arg-type]


def test_a_question_about_no_image_needs_no_image_library() -> None:
    code = "import sys; from macr_local.prompt import Prompt; Prompt('?'); print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
