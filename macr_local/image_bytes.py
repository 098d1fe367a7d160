"""Encoded images: where their bytes come from, and what is wrong with those that cannot be decoded."""

from __future__ import annotations

import io
import os
import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

import PIL.Image

from macr_local.errors import ImageError

_URL = re.compile(r"^(https?|ftp|file|data|s3)://|^data:", re.IGNORECASE)

_KNOWN: tuple[tuple[int, bytes, str, str], ...] = (
    (0, b"%PDF", "a PDF document", "Convert the page to PNG"),
    (0, b"PK\x03\x04", "a ZIP archive (or an office document)", "Unpack it first"),
    (0, b"\x1f\x8b", "gzip data", "Unpack it first"),
    (0, b"\x1aE\xdf\xa3", "a Matroska or WebM video", "Extract a frame as PNG"),
    (0, b"GGUF", "a GGUF model", "Give an image first and the question last"),
    (0, b"\x00\x00\x01\xba", "an MPEG video", "Extract a frame as PNG"),
    (8, b"AVI ", "an AVI video", "Extract a frame as PNG"),
    (0, b"version https://git-lfs", "a Git LFS pointer, not the image itself", "Run: git lfs pull"),
)
_BRANDS = {
    b"heic": "HEIC", b"heix": "HEIC", b"hevc": "HEIC", b"hevx": "HEIC", b"heim": "HEIC", b"heis": "HEIC",
    b"mif1": "HEIF", b"msf1": "HEIF", b"avif": "AVIF", b"avis": "AVIF",
}  # fmt: skip
_MAGICS = {
    b"\xff\xd8\xff": "a JPEG", b"\x89PNG": "a PNG", b"GIF8": "a GIF", b"BM": "a BMP", b"RIFF": "a WebP",
    b"II*\0": "a TIFF", b"MM\0*": "a TIFF",
}  # fmt: skip


def read(source: str | os.PathLike[str] | bytes | BinaryIO, name: str | None) -> tuple[bytes, str]:
    """The encoded bytes of a source, and what messages call it.

    Raises:
        ImageError: The file is missing, a folder, not readable, empty, or an address.
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        return _not_empty(bytes(source), name or "the image bytes")
    if not isinstance(source, (str, os.PathLike)):
        if not hasattr(source, "read"):
            raise ImageError(
                f"An image was given as {type(source).__name__}",
                "Give a path, bytes, a binary file, an array or a Pillow image",
            )
        data = source.read()
        if not isinstance(data, (bytes, bytearray)):
            raise ImageError("An image file was opened as text", 'Open it in binary mode ("rb")')
        return _not_empty(bytes(data), name or str(getattr(source, "name", "") or "the image file"))
    path = os.fspath(source)
    name = name or str(path)
    if _URL.match(str(path)):
        raise ImageError(f"{_short(name)} is an address", "Download it and give the local file")
    try:
        with open(path, "rb") as file:
            return _not_empty(file.read(), name)
    except FileNotFoundError:
        raise ImageError(f"There is no file {name}", "Check the path") from None
    except IsADirectoryError:
        raise ImageError(f"{name} is a folder", "Give an image file in it") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        found = f"{_short(name)} cannot be read ({reason})"
        raise ImageError(found, "Check the path and its permissions") from None


def _not_empty(data: bytes, name: str) -> tuple[bytes, str]:
    if not data:
        raise ImageError(f"{name} is empty (0 bytes)", "Give a whole image file")
    return data, name


@contextmanager
def opened(data: bytes, name: str) -> Iterator[PIL.Image.Image]:
    """Open encoded bytes; no pixel is decoded yet.

    Raises:
        ImageError: Pillow does not know the format; names what it looks like instead.
    """
    try:
        image = _open(data)
    except Exception as error:
        raise _unknown(data, name, error) from None
    with image:
        yield image


def _open(data: bytes) -> PIL.Image.Image:
    """As `PIL.Image.open`, without its alarm about large images.

    That alarm warns on the host's stderr and has one limit for the whole process; ours is per call, and
    checked against the same header before a pixel is decoded.
    """
    PIL.Image.init()
    trouble: Exception = PIL.UnidentifiedImageError("no format of Pillow's begins like this")
    for kind in PIL.Image.ID:
        factory, accepts = PIL.Image.OPEN[kind]
        answer = accepts(data[:16]) if accepts is not None else True
        if not answer or isinstance(answer, str):
            continue
        try:
            return factory(io.BytesIO(data), "")
        except (SyntaxError, IndexError, TypeError, struct.error) as error:  # Pillow's "not mine"
            trouble = error
    raise trouble


@contextmanager
def naming_faults(name: str) -> Iterator[None]:
    """Turn whatever a decoder raises over damaged pixels into one line.

    Raises:
        ImageError: The image is damaged; says how, as far as the decoder knows.
    """
    try:
        yield
    except ImageError:
        raise
    except MemoryError:
        raise ImageError(f"{name} does not fit into memory", "Reduce it first") from None
    except Exception as error:
        raise ImageError(f"{name} is damaged ({_reason(error)})", "Get the whole file again") from None


def _unknown(data: bytes, name: str, error: Exception) -> ImageError:
    for offset, magic, what, fix in _KNOWN:
        if data[offset:].startswith(magic):
            return ImageError(f"{name} is {what}, not an image", fix)
    if data[4:8] == b"ftyp":
        kind = _BRANDS.get(data[8:12])
        if kind in ("HEIC", "HEIF"):
            return ImageError(
                f"{name} is {kind} data, whatever its name says",
                "Convert it to JPEG or PNG: with pillow-heif (pip install pillow-heif), sips or heif-convert",
            )
        if kind == "AVIF":
            return ImageError(f"{name} is AVIF data that this Pillow cannot read", "Convert it to PNG")
        return ImageError(f"{name} is an MP4 or QuickTime video, not an image", "Extract a frame as PNG")
    head = data[:512].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if head.startswith((b"<!doctype html", b"<html")):
        return ImageError(f"{name} is an HTML page, not an image", "Download the image itself")
    if b"<svg" in data[:2048].lower():
        return ImageError(f"{name} is an SVG drawing", "Convert it to PNG")
    if kind := next((what for magic, what in _MAGICS.items() if data.startswith(magic)), None):
        found = f"{name} begins like {kind} and is damaged ({_reason(error)})"
        return ImageError(found, "Get the whole file again")
    if b"\0" not in data[:512] and _is_text(data[:512]):
        return ImageError(f"{name} is text, not an image", "Give an image file")
    found = f"{name} is in no image format that Pillow knows (it begins with {data[:8].hex(' ')})"
    return ImageError(found, "Convert it to PNG")


def _is_text(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start > len(data) - 4 and len(data) >= 512
    return True


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    # Pillow names the in-memory file it was given, which means nothing to the user.
    return re.sub(r"<_io\.BytesIO object at 0x[0-9a-f]+>", "its data", text)


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:60]}..."
