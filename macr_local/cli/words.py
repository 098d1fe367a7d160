"""The words of ``ask``: which are images and which is the question, with help for slips of order."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import click

_IMAGE = re.compile(
    r"\.(png|jpe?g|jfif|webp|gif|bmp|tiff?|hei[cf]|avif|jxl|p[pgn]m|ico|svg|pdf)", re.IGNORECASE
)


def split(words: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Images, as given, and the question, which is the last word.

    Raises:
        click.UsageError: No question, or an order that cannot be meant.
    """
    if not words:
        raise click.UsageError('No question was given. Write: macr-local ask IMAGE "QUESTION"')
    *images, question = words
    if _is_image(question):
        _refuse_image_for_question(images, question)
    if not question.strip():
        raise click.UsageError("The question is empty. Put it last, in quotes.")
    for word in images:
        if word != "-" and not _names_a_file(word):
            whole = " ".join(words[list(words).index(word) :])
            raise click.UsageError(
                f'"{word}" is taken for an image, and there is no such file. '
                f"Put the whole question in quotes: {_example(images[: images.index(word)], whole)}"
            )
    if images.count("-") > 1:
        raise click.UsageError('Only one image can come from stdin; give "-" once.')
    if "-" in images and sys.stdin.isatty():
        raise click.UsageError(
            '"-" reads an image from stdin, and nothing is piped in. Write: ... < photo.png'
        )
    return tuple(images), question


def check_text(name: str, text: str | None) -> None:
    """Refuse text that was not valid in the terminal's encoding (it carries lone surrogates).

    Raises:
        click.UsageError: It does.
    """
    if text is not None and any("\ud800" <= char <= "\udfff" for char in text):
        raise click.UsageError(f"{name} is not valid text in this terminal's encoding. Use UTF-8.")


def _refuse_image_for_question(images: list[str], last: str) -> None:
    asked = [word for word in images if word != "-" and not _names_a_file(word)]
    if asked:
        others = [word for word in images if word not in asked]
        raise click.UsageError(f"The question comes last: {_example([*others, last], ' '.join(asked))}")
    raise click.UsageError(
        f'The last word, "{last}", is an image, so there is no question. '
        f"Write: {_example([*images, last], 'What is in the picture?')}"
    )


def _is_image(word: str) -> bool:
    """Whether a word names an image rather than asks something."""
    return word == "-" or (_has_image_suffix(word) and (len(word.split()) == 1 or _exists(word)))


def _names_a_file(word: str) -> bool:
    """Whether a word is meant as a file; whether it can be read is for the image loader to say."""
    return _exists(word) or _has_image_suffix(word) or "://" in word or "/" in word


def _has_image_suffix(word: str) -> bool:
    return _IMAGE.fullmatch(Path(word).suffix) is not None


def _exists(word: str) -> bool:
    try:
        return Path(word).exists()
    except (OSError, ValueError):  # too long for a file name, or a NUL in it
        return False


def _example(images: Sequence[str], question: str) -> str:
    return " ".join(["macr-local ask", *map(shlex.quote, images), '"' + question.replace('"', '\\"') + '"'])
