"""What is asked: a question, its images, and how the models are to behave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from macr_local.errors import ConfigError
from macr_local.utf8 import is_text

if TYPE_CHECKING:
    from macr_local.images import Image, ImageSource


@dataclass(frozen=True, slots=True)
class Prompt:
    """One question, ready for every member.

    Attributes:
        question: The user's text. It reaches the models as text: no control token in it is parsed.
        images: Upright RGB images in the order in which the models see them, before the question.
        system: A system prompt for all members; None leaves each member its own.
        think: True or False asks for thinking or for none where the chat template knows it; None leaves the
            member's own setting.

        ending: How the answer is to end. It stands behind the question wherever a method asks for the answer,
            the same for all methods, and not where one asks for a step before it.

    Raises:
        ConfigError: A part is of another type, the question is blank, or a text holds half a character.
    """

    question: str
    images: tuple[Image, ...] = ()
    system: str | None = None
    think: bool | None = None
    ending: str = ""

    def __post_init__(self) -> None:
        _check_text("question", self.question)
        if not self.question.strip():
            raise ConfigError(f"question is {self.question[:20]!r}, which asks nothing", "Write a question")
        object.__setattr__(self, "images", _images(self.images))
        _check_text("ending", self.ending)
        if self.system is not None:
            _check_text("system", self.system)
        if self.think is not None and not isinstance(self.think, bool):
            raise ConfigError(f"think is {self.think!r}", "Use True, False or None")

    @classmethod
    def of(
        cls,
        question: str,
        images: Sequence[ImageSource | Image] | ImageSource | Image = (),
        *,
        system: str | None = None,
        think: bool | None = None,
        ending: str = "",
    ) -> Prompt:
        """Load images from paths, bytes, files, arrays or Pillow images and build a prompt.

        Args:
            question: The user's text.
            images: One image or several, loaded or in any form that `macr_local.images.load` takes.
            system: See `Prompt`.
            think: See `Prompt`.
            ending: See `Prompt`.

        Raises:
            ImageError: An image cannot be read or is over the limits.
            ConfigError: See `Prompt`.
        """
        _check_text("question", question)  # before any image is decoded
        from macr_local.images import Image, load

        sources = images if isinstance(images, (list, tuple)) else (images,)
        loaded = tuple(one if isinstance(one, Image) else load(one) for one in sources)
        return cls(question, loaded, system, think, ending)

    @property
    def text(self) -> str:
        """What the models read behind the images: question and ending."""
        return f"{self.question}\n{self.ending}" if self.ending else self.question


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise ConfigError(f"{name} is of type {type(value).__name__}", "Use text (str)")
    if not is_text(value):
        raise ConfigError(f"{name} holds half a character (a lone surrogate)", "Use text that is valid UTF-8")


def _images(value: object) -> tuple[Image, ...]:
    if isinstance(value, (list, tuple)) and not value:
        return ()
    from macr_local.images import Image  # not needed for a question about no image, and not light

    if not isinstance(value, (list, tuple)):
        raise _no_images(f"of type {type(value).__name__}")
    for one in value:
        if not isinstance(one, Image):
            raise _no_images(f"a {type(value).__name__} with a {type(one).__name__}")
    return tuple(value)


def _no_images(what: str) -> ConfigError:
    return ConfigError(f"images is {what}", "Use a tuple of Image, or Prompt.of, which loads images")
