"""Pixels of every kind to 8-bit RGB, and their resizing."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import PIL.Image
import PIL.ImageCms
import PIL.ImageOps
from numpy.typing import NDArray

from macr_local.errors import ImageError

Pixels = NDArray[np.uint8]
"""(height, width, 3)."""

_STRIP = 4_000_000
"""Pixels that are converted at a time."""


def from_pillow(image: PIL.Image.Image) -> tuple[Pixels, tuple[str, ...]]:
    """Upright RGB over white, and notes; decodes the image.

    Raises:
        Exception: Whatever Pillow raises over damaged data.
    """
    image.load()
    profile = image.info.get("icc_profile")
    image = PIL.ImageOps.exif_transpose(image)
    if image.mode in ("F", "I") or image.mode.startswith("I;16"):
        return _deep(image)
    if image.mode in ("P", "PA", "LA", "La", "RGBa", "RGBA") or "transparency" in image.info:
        rgba = image.convert("RGBA") if image.mode not in ("La", "RGBa") else _unmultiplied(image)
        return _over_white(np.asarray(_in_srgb(rgba, profile))), ()
    if image.mode == "CMYK":
        return np.asarray(_in_srgb(image, profile).convert("RGB")), ()
    return np.asarray(_in_srgb(image.convert("RGB"), profile)), ()


def from_array(array: NDArray[Any], name: str) -> tuple[Pixels, tuple[str, ...]]:
    """Pixels of an array: (height, width) or (height, width, 1 to 4).

    Raises:
        ImageError: Its shape or type is no image's.
    """
    shape = "x".join(map(str, array.shape))
    fits = array.ndim == 2 or (array.ndim == 3 and array.shape[2] in (1, 2, 3, 4))
    if not fits or 0 in array.shape:
        raise ImageError(
            f"{name} has the shape {shape or 'of a number'}",
            "Give (height, width), or (height, width, channels) with 1 to 4 channels",
        )
    values, notes = _to_bytes(array, name)
    if values.ndim == 2:
        values = values[:, :, None]
    channels = values.shape[2]
    if channels in (1, 2):
        values = np.concatenate([np.repeat(values[:, :, :1], 3, axis=2), values[:, :, 1:]], axis=2)
    return (_over_white(values) if channels in (2, 4) else values.copy()), notes


def _to_bytes(array: NDArray[Any], name: str) -> tuple[Pixels, tuple[str, ...]]:
    if array.dtype == np.uint8:
        return array, ()
    if array.dtype == np.bool_:
        return array.astype(np.uint8) * np.uint8(255), ()
    if array.dtype.kind == "u" and array.dtype.itemsize == 2:  # of either byte order
        return _from_16_bits(array), ()
    if np.issubdtype(array.dtype, np.floating):
        return _from_floats(array, name)
    raise ImageError(f"{name} holds {array.dtype}", "Give bool, uint8, uint16, or floats from 0 to 1")


def _deep(image: PIL.Image.Image) -> tuple[Pixels, tuple[str, ...]]:
    """16-bit, 32-bit and float grey: Pillow's own conversion would clip them at 255."""
    values = np.asarray(image)
    if image.mode == "F":
        grey, notes = _from_floats(values, "the image")
    elif image.mode == "I":
        grey, notes = _from_integers(values)
    else:
        grey, notes = _from_16_bits(values), ()
    clear = image.info.get("transparency")
    if isinstance(clear, int):
        grey[values == clear] = 255
    return np.repeat(grey[:, :, None], 3, axis=2), notes


def _by_rows(
    function: Callable[[NDArray[Any]], NDArray[Any]], values: NDArray[Any], channels: int = 0
) -> Pixels:
    """Bytes of an array, some rows at a time: what is computed in between is wider than the result."""
    height, width = values.shape[:2]
    shape = (height, width, channels) if channels else values.shape
    result = np.empty(shape, np.uint8)
    step = max(1, _STRIP // width)
    for top in range(0, height, step):
        result[top : top + step] = function(values[top : top + step])
    return result


def _from_16_bits(values: NDArray[Any]) -> Pixels:
    # 65535 = 255 * 257, so this is the nearest 8-bit value.
    return _by_rows(lambda rows: (rows.astype(np.uint32) + 128) // 257, values)


def _from_integers(values: NDArray[np.int32]) -> tuple[Pixels, tuple[str, ...]]:
    low, high = int(values.min()), int(values.max())
    if low >= 0 and high <= 255:
        return values.astype(np.uint8), ()
    if low >= 0 and high <= 65535:
        return _from_16_bits(values), ()
    return _stretched(values, low, high)


def _from_floats(values: NDArray[np.floating[Any]], name: str) -> tuple[Pixels, tuple[str, ...]]:
    finite = np.isfinite(values)
    if not finite.any():
        raise ImageError(f"{name} has no finite pixel value", "Use another image")
    notes: tuple[str, ...] = ()
    if not finite.all():
        notes = (f"{int((~finite).sum())} values that are not finite were set to 0",)
        values = np.where(finite, values, 0)
    low, high = float(values.min()), float(values.max())
    if low >= 0 and high <= 255:
        factor = 255 if high <= 1 else 1
        return _by_rows(lambda rows: np.rint(rows.astype(np.float64) * factor), values), notes
    pixels, said = _stretched(values, low, high)
    return pixels, (*notes, *said)


def _stretched(values: NDArray[Any], low: float, high: float) -> tuple[Pixels, tuple[str, ...]]:
    # Halved first, for the range of two extreme floats is no float.
    span = high / 2 - low / 2
    factor = 255 / span / 2 if span > 0 else 0.0
    scaled = _by_rows(lambda rows: np.rint((rows.astype(np.float64) / 2 - low / 2) * 2 * factor), values)
    return scaled, (f"values from {low:g} to {high:g} were stretched to 0 to 255",)


def _over_white(rgba: NDArray[np.uint8]) -> Pixels:
    """Composite over white; what lies under alpha 0 leaves no trace."""

    def mixed(rows: NDArray[np.uint8]) -> NDArray[np.uint16]:
        alpha = rows[:, :, 3:].astype(np.uint16)
        return (rows[:, :, :3] * alpha + 255 * (255 - alpha) + 127) // 255

    return _by_rows(mixed, rgba, channels=3)


def _unmultiplied(image: PIL.Image.Image) -> PIL.Image.Image:
    return image.convert("LA" if image.mode == "La" else "RGBA").convert("RGBA")


_SRGB = PIL.ImageCms.ImageCmsProfile(PIL.ImageCms.createProfile("sRGB"))


def _in_srgb(image: PIL.Image.Image, profile: bytes | None) -> PIL.Image.Image:
    """Colours as the embedded profile means them; a profile that does not fit or is broken is ignored."""
    if not profile:
        return image
    out = "RGB" if image.mode == "CMYK" else image.mode
    try:
        source = PIL.ImageCms.ImageCmsProfile(io.BytesIO(profile))
        space = source.profile.xcolor_space.strip()
        if space != ("CMYK" if image.mode == "CMYK" else "RGB"):
            return image
        if "srgb" in PIL.ImageCms.getProfileDescription(source).lower():
            return image
        converted = PIL.ImageCms.profileToProfile(image, source, _SRGB, outputMode=out)
    except (PIL.ImageCms.PyCMSError, OSError, ValueError, TypeError, AttributeError):
        return image
    return converted if converted is not None else image


def resized(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    """To (width, height), by Lanczos, which also averages when it reduces."""
    if (pixels.shape[1], pixels.shape[0]) == size:
        return pixels
    return np.asarray(PIL.Image.fromarray(pixels).resize(size, PIL.Image.Resampling.LANCZOS))


def padded(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    """Centred on a white canvas of (width, height)."""
    canvas = np.full((size[1], size[0], 3), 255, np.uint8)
    top, left = (size[1] - pixels.shape[0]) // 2, (size[0] - pixels.shape[1]) // 2
    canvas[top : top + pixels.shape[0], left : left + pixels.shape[1]] = pixels
    return canvas
