"""What is asked: a question, its images, and how the models are to behave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
    """

    question: str
    images: tuple[Image, ...] = ()
    system: str | None = None
    think: bool | None = None

    @classmethod
    def of(
        cls,
        question: str,
        images: Sequence[ImageSource] | ImageSource = (),
        *,
        system: str | None = None,
        think: bool | None = None,
    ) -> Prompt:
        """Load images from paths, bytes, files, arrays or Pillow images and build a prompt.

        Args:
            question: The user's text.
            images: One image or several, in any form that `macr_local.images.load` takes.
            system: See `Prompt`.
            think: See `Prompt`.

        Raises:
            ImageError: An image cannot be read or is over the limits.
        """
        from macr_local.images import load

        sources = images if isinstance(images, (list, tuple)) else (images,)
        return cls(question, tuple(load(source) for source in sources), system, think)
