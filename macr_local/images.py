"""Any image a user has, as upright RGB pixels with a hash; and the size that one member was made for."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import PIL.Image
from numpy.typing import NDArray

from macr_local import image_bytes, image_pixels
from macr_local.errors import ImageError
from macr_local.specs import ImageLimits

ImageSource = str | os.PathLike[str] | bytes | BinaryIO | NDArray[np.generic] | PIL.Image.Image
"""A path, encoded bytes, an open binary file, an array of pixels, or a Pillow image."""

MAX_PIXELS = 178_956_970
"""Pixels an image may say it has: about half a gigabyte of RGB, where Pillow would refuse too."""

_LIMIT = "MACR_LOCAL_MAX_PIXELS"

KEPT_PIXELS = 16_000_000
"""Pixels an image keeps in memory. More than any member's ceiling, so nothing a model could see is lost."""


@dataclass(frozen=True, slots=True, eq=False)
class Image:
    """An upright RGB image. Equal when its pixels are.

    Attributes:
        pixels: (height, width, 3) uint8, C-contiguous, read-only.
        sha256: Of width, height and pixels, in hex; what caches are keyed by.
        name: What messages call it.
        notes: What was done to it that a user may want to know.
    """

    pixels: NDArray[np.uint8]
    sha256: str
    name: str
    notes: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        """Columns."""
        return int(self.pixels.shape[1])

    @property
    def height(self) -> int:
        """Rows."""
        return int(self.pixels.shape[0])

    def __eq__(self, other: object) -> bool:
        return self.sha256 == other.sha256 if isinstance(other, Image) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.sha256)


def load(source: ImageSource, *, name: str | None = None, max_pixels: int | None = None) -> Image:
    """Decode an image: EXIF upright, transparency over white, every mode to RGB, the first frame.

    Args:
        source: A local path, encoded bytes, a binary file (read to its end), an array or a Pillow image. An
            array is (height, width), or with 1, 2 (grey, alpha), 3 or 4 channels last; bool, unsigned
            integers of 8 or 16 bits, or floats from 0 to 1.
        name: What messages call it; None takes the path, or what kind of source it is.
        max_pixels: Refuse an image that says it has more, before any pixel is decoded. None takes
            ``$MACR_LOCAL_MAX_PIXELS``, or else `MAX_PIXELS`.

    Raises:
        ImageError: It cannot be read, or it is too large; says what was found.
    """
    limit = _limit() if max_pixels is None else max_pixels
    if isinstance(source, np.ndarray):
        name = name or "an array"
        pixels, notes = image_pixels.from_array(source, name)
        return _shrunk(pixels, name, notes)
    if isinstance(source, PIL.Image.Image):
        name = name or getattr(source, "filename", "") or "a Pillow image"
        _refuse_large(source.width, source.height, name, limit)
        with image_bytes.naming_faults(name):
            return _decoded(source.copy(), name)
    data, name = image_bytes.read(source, name)
    with image_bytes.opened(data, name) as image:
        _refuse_large(image.width, image.height, name, limit)
        # A JPEG can be decoded at an eighth of its size, in an eighth of the memory.
        full = image.size
        if image.format in ("JPEG", "MPO") and image.width * image.height > KEPT_PIXELS:
            scale = (KEPT_PIXELS / (image.width * image.height)) ** 0.5
            image.draft(None, (int(image.width * scale), int(image.height * scale)))
        with image_bytes.naming_faults(name):
            return _decoded(image, name, full)


def _decoded(image: PIL.Image.Image, name: str, full: tuple[int, int] | None = None) -> Image:
    notes = []
    if getattr(image, "n_frames", 1) > 1:
        notes.append(f"the first of its {image.n_frames} frames is used")  # type: ignore[attr-defined]
    if full is not None and image.size != full:
        notes.append(f"reduced from {full[0]}x{full[1]} while it was decoded")
    pixels, said = image_pixels.from_pillow(image)
    return _shrunk(pixels, name, (*notes, *said))


def _shrunk(pixels: NDArray[np.uint8], name: str, notes: tuple[str, ...]) -> Image:
    height, width = pixels.shape[:2]
    if width * height > KEPT_PIXELS:
        scale = (KEPT_PIXELS / (width * height)) ** 0.5
        size = max(1, int(width * scale)), max(1, int(height * scale))
        pixels = image_pixels.resized(pixels, size)
        notes = (*notes, f"reduced from {width}x{height} to {size[0]}x{size[1]}")
    return _image(pixels, name, notes)


def _image(pixels: NDArray[np.uint8], name: str, notes: tuple[str, ...]) -> Image:
    pixels = np.ascontiguousarray(pixels)
    pixels.flags.writeable = False
    digest = hashlib.sha256(f"{pixels.shape[1]}x{pixels.shape[0]}:".encode())
    digest.update(pixels.data)
    return Image(pixels, digest.hexdigest(), name, notes)


def _limit() -> int:
    given = os.environ.get(_LIMIT)
    if given is None:
        return MAX_PIXELS
    if not given.isdecimal():
        raise ImageError(f"{_LIMIT} is {given!r}", "Set it to a number of pixels, or unset it")
    return int(given)


def _refuse_large(width: int, height: int, name: str, limit: int) -> None:
    if width * height > limit:
        raise ImageError(
            f"{name} says it has {width}x{height} = {width * height:,} pixels, more than {limit:,}",
            f"Reduce it first, or raise the limit: {_LIMIT}={width * height}",
        )
    if width == 0 or height == 0:
        raise ImageError(f"{name} has no pixels ({width}x{height})", "Use another image")


def fit(image: Image, limits: ImageLimits) -> Image:
    """Bring an image to the size that one member was made for, keeping its shape.

    With ``limits.square`` it is scaled to fit that square and padded with white around; an image of exactly
    that size is not touched. Otherwise images over ``max_pixels`` are reduced, and those with a side below
    ``min_side`` are enlarged, or padded with white where enlarging would break the ceiling.

    Returns:
        The same image, or a new one with a note of what was done.
    """
    if limits.square is not None:
        return _letterboxed(image, limits.square)
    size = _within(image.width, image.height, limits)
    canvas = max(size[0], limits.min_side), max(size[1], limits.min_side)
    if canvas == (image.width, image.height):
        return image
    pixels = image_pixels.resized(image.pixels, size)
    if canvas != size:
        pixels = image_pixels.padded(pixels, canvas)
    verb = "padded" if canvas != size else "enlarged" if size[0] > image.width else "reduced"
    note = f"{image.name} was {verb} from {image.width}x{image.height} to {canvas[0]}x{canvas[1]}"
    return _image(pixels, image.name, (*image.notes, note))


def _within(width: int, height: int, limits: ImageLimits) -> tuple[int, int]:
    """The size to scale to: under the ceiling, and with a short side long enough where that is possible."""
    if width * height > limits.max_pixels:
        scale = (limits.max_pixels / (width * height)) ** 0.5
        width, height = max(1, int(width * scale)), max(1, int(height * scale))
    short = min(width, height)
    scale = limits.min_side / short
    if scale > 1 and width * height * scale**2 <= limits.max_pixels:
        width, height = round(width * scale), round(height * scale)
    return width, height


def _letterboxed(image: Image, side: int) -> Image:
    if image.width == image.height == side:
        return image
    scale = side / max(image.width, image.height)
    size = max(1, round(image.width * scale)), max(1, round(image.height * scale))
    pixels = image_pixels.padded(image_pixels.resized(image.pixels, size), (side, side))
    note = f"{image.name} was fitted from {image.width}x{image.height} into {side}x{side}"
    return _image(pixels, image.name, (*image.notes, note))
