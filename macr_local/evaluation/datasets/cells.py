"""The image cells of a table: base64, a path, or a list of either."""

from __future__ import annotations

import ast
import base64
import binascii
import os
from pathlib import Path

_LONGEST_NAME = 1024
_SHORTEST_IMAGE = 8


def listed(cell: str) -> list[str]:
    """The parts of a cell: a list written as Python writes it, or the one thing it holds.

    Raises:
        ValueError: It is a list that cannot be read.
    """
    cell = cell.strip()
    if not (cell.startswith("[") and cell.endswith("]")):
        return [cell] if cell else []
    try:
        values = ast.literal_eval(cell)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise ValueError("its image is a list that cannot be read") from None
    if not all(isinstance(value, str) for value in values):
        raise ValueError("its image is a list with something else than text in it")
    return list(values)


def encoded(cell: str) -> bytes:
    """The bytes of a base64 cell, with or without the head of a data URL.

    Raises:
        ValueError: It is not base64.
    """
    body = cell.partition(",")[2] if cell[:64].lower().startswith("data:") else cell
    try:
        data = base64.b64decode("".join(body.split()), validate=True)
    except (binascii.Error, ValueError):
        data = b""
    if len(data) < _SHORTEST_IMAGE:
        raise ValueError(f"its image ({cell[:40]!r}) is not base64")
    return data


def found(name: str, folders: tuple[Path, ...]) -> Path:
    """An image file by the name that a row gives it, in one of some folders.

    Raises:
        ValueError: It is in none of them.
    """
    for folder in folders:
        try:
            if (path := folder / name).is_file():
                return path
        except (OSError, ValueError):  # too long for a name, or it holds a NUL
            break
    raise ValueError(f"there is no image {name[:80]}")


def is_name(cell: str) -> bool:
    """Whether a cell may be the name of a file: base64 of an image is longer, and has no dot."""
    return len(cell) <= _LONGEST_NAME and "." in os.path.basename(cell)
