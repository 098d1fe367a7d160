"""Encoded images: where their bytes come from, and what is wrong with those that cannot be decoded."""

from __future__ import annotations

import io
import os
import re
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

import PIL.Image

from macr_local.errors import ImageError

_URL = re.compile(r"^(https?|ftp|file|data|s3)://|^data:", re.IGNORECASE)

_FORMATS = frozenset({
    "JPEG", "MPO", "PNG", "GIF", "WEBP", "TIFF", "BMP", "DIB", "AVIF", "JPEG2000", "PPM", "ICO", "ICNS",
    "TGA", "PCX", "SGI", "QOI", "PSD", "DDS", "FITS", "HEIF",
})  # fmt: skip
"""What is decoded: Pillow's formats of images, and HEIF where its plug-in is registered. Not drawings, for
which Pillow starts Ghostscript on whatever a stranger's file says."""

_SPECIAL = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}
"""What never ends or waits for others; a folder is left to `open`, which has an error for it."""

_MAX_BYTES = 1 << 30
"""More than any image of `images.MAX_PIXELS` has; a model or a video is not read to its end."""

_PNG = "Convert it to PNG"
_FRAME = "Extract a frame as PNG"
_KNOWN: tuple[tuple[int, bytes, str, str], ...] = (
    (0, b"%PDF", "a PDF document, not an image", "Convert the page to PNG"),
    (0, b"%!PS", "a PostScript drawing", _PNG),
    (0, b"\xc5\xd0\xd3\xc6", "an EPS drawing", _PNG),
    (0, b"\xd7\xcd\xc6\x9a", "a WMF drawing", _PNG),
    (0, b"\0\0\0\x0cJXL ", "a JPEG XL image, which Pillow cannot read", _PNG),
    (0, b"\xff\x0a", "a JPEG XL image, which Pillow cannot read", _PNG),
    (0, b"PK\x03\x04", "a ZIP archive (or an office document), not an image", "Unpack it first"),
    (0, b"\x1f\x8b", "gzip data, not an image", "Unpack it first"),
    (0, b"\x1aE\xdf\xa3", "a Matroska or WebM video, not an image", _FRAME),
    (0, b"\0\0\x01\xba", "an MPEG video, not an image", _FRAME),
    (8, b"AVI ", "an AVI video, not an image", _FRAME),
    (8, b"WAVE", "a WAV sound, not an image", "Give an image file"),
    (0, b"GGUF", "a GGUF model, not an image", "Give an image first and the question last"),
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
        ImageError: The file is missing, a folder, a pipe, a device, not readable, empty, too large, or an
            address.
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        name = name or "the image data"
        return _not_empty(bytes(source), name), name
    if not isinstance(source, (str, os.PathLike)):
        if not hasattr(source, "read"):
            raise ImageError(
                f"An image was given as {type(source).__name__}",
                "Give a path, bytes, a binary file, an array or a Pillow image",
            )
        name = name or str(getattr(source, "name", "") or "the image file")
        return _whole(source, name), name
    path = os.fspath(source)
    name = name or str(path)
    if _URL.match(str(path)):
        raise ImageError(f"{_short(name)} is an address", "Download it and give the local file")
    try:
        # A pipe that nobody writes to would already wait in open.
        if what := _SPECIAL.get(stat.S_IFMT(os.stat(path).st_mode)):
            raise ImageError(
                f"{_short(name)} is {what}, not a file",
                'Pipe it in and give "-"; from Python, give an open file',
            )
        with open(path, "rb") as file:
            return _whole(file, name), name
    except FileNotFoundError:
        raise ImageError(f"There is no file {name or repr(name)}", "Check the path") from None
    except IsADirectoryError:
        raise ImageError(f"{name} is a folder", "Give an image file in it") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        found = f"{_short(name)} cannot be read ({reason})"
        raise ImageError(found, "Check the path and its permissions") from None


def _whole(file: BinaryIO, name: str) -> bytes:
    """All of a file, or an error as soon as its beginning or its length shows that it is no image."""
    data = bytearray()
    while part := file.read(1 << 20):  # a raw file may give less than it is asked for
        if not isinstance(part, (bytes, bytearray)):
            raise ImageError("An image file was opened as text", 'Open it in binary mode ("rb")')
        if not data:
            _refuse_known(part, name)
        data += part
        if len(data) > _MAX_BYTES:
            raise ImageError(f"{name} has more than {_MAX_BYTES >> 30} GiB", "Give an image file")
    return _not_empty(bytes(data), name)


def _not_empty(data: bytes, name: str) -> bytes:
    if not data:
        raise ImageError(f"{name} is empty (0 bytes)", "Give a whole image file")
    return data


def _refuse_known(data: bytes | bytearray, name: str) -> None:
    for offset, magic, what, fix in _KNOWN:
        if data[offset : offset + len(magic)] == magic:
            raise ImageError(f"{name} is {what}", fix)


@contextmanager
def opened(data: bytes, name: str) -> Iterator[PIL.Image.Image]:
    """Open encoded bytes; no pixel is decoded yet.

    Raises:
        ImageError: Pillow does not know the format; names what it looks like instead.
    """
    _refuse_known(data, name)
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
    trouble: Exception | None = None
    kinds = [kind for kind in PIL.Image.ID if kind in _FORMATS]
    # Formats without a mark at their beginning come last: what they say about a damaged PNG says nothing.
    for kind in sorted(kinds, key=lambda kind: PIL.Image.OPEN[kind][1] is None):
        factory, accepts = PIL.Image.OPEN[kind]
        answer = accepts(data[:16]) if accepts is not None else True
        if not answer or isinstance(answer, str):
            continue
        try:
            return factory(io.BytesIO(data), "")
        except (SyntaxError, IndexError, TypeError, struct.error) as error:  # Pillow's "not mine"
            trouble = trouble or error
    raise trouble or PIL.UnidentifiedImageError("no format of Pillow's begins like this")


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
    text = text.replace("not identified by this driver", "its header is not right")
    # Pillow names the in-memory file it was given, which means nothing to the user.
    return re.sub(r"<_io\.BytesIO object at 0x[0-9a-f]+>", "its data", text)


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:60]}..."
