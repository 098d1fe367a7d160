"""Which words of ``ask`` are images and which is the question."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from macr_local.cli.words import check_text, split


@pytest.fixture(autouse=True)
def _in_a_folder_with_photo_png(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "photo.png").write_bytes(b"\x89PNG")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)


def refusal(*words: str) -> str:
    with pytest.raises(click.UsageError) as caught:
        split(words)
    return caught.value.format_message()


def test_the_last_word_is_the_question() -> None:
    assert split(["photo.png", "other.jpg", "-", "what?"]) == (("photo.png", "other.jpg", "-"), "what?")
    assert split(["what?"]) == ((), "what?")
    assert split(["What is in photo.png"]) == ((), "What is in photo.png")


def test_an_image_that_is_not_there_is_left_to_the_loader() -> None:
    assert split(["absent.JPEG", "what?"])[0] == ("absent.JPEG",)
    assert split(["some/folder", "what?"])[0] == ("some/folder",)
    assert split(["https://example.org/x", "what?"])[0] == ("https://example.org/x",)


def test_no_words_are_answered_with_an_example() -> None:
    assert 'macr-local ask IMAGE "QUESTION"' in refusal()


def test_an_empty_question_is_refused() -> None:
    assert "empty" in refusal("photo.png", "  ")


@pytest.mark.parametrize("image", ["photo.png", "absent.png", "-"])
def test_an_image_in_the_last_place_means_that_the_question_is_missing(image: str) -> None:
    assert f'"{image}", is an image, so there is no question' in refusal(image)


@pytest.mark.parametrize("image", ["photo.png", "absent.png"])
def test_a_question_in_front_is_put_last(image: str) -> None:
    assert refusal("what is this?", image).endswith(f'macr-local ask {image} "what is this?"')


def test_a_question_without_quotes_is_put_into_quotes() -> None:
    assert refusal("photo.png", "what", "is", "it").endswith('macr-local ask photo.png "what is it"')


def test_stdin_gives_one_image_and_only_from_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 'give "-" once' in refusal("-", "-", "what?")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    assert "nothing is piped in" in refusal("-", "what?")


def test_bytes_that_are_no_text_are_refused() -> None:
    check_text("--system", "fine ✓")
    check_text("--system", None)
    with pytest.raises(click.UsageError, match="--system is not valid text"):
        check_text("--system", b"caf\xe9".decode("utf-8", "surrogateescape"))
