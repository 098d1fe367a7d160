"""One row of a data file: its fields, and how its images are had when they are wanted."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from string import ascii_uppercase
from typing import Any

Images = tuple[Path | bytes, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """One row.

    Attributes:
        number: Its place in the file, as an editor counts.
        where: File and row, for messages.
        fields: Everything but the images.
        images: Reads the images, or raises ValueError with what is wrong with them.
        problem: Why nothing could be read at all; empty where something could.
    """

    number: int
    where: str
    fields: Mapping[str, Any]
    images: Callable[[], Images] = field(default=tuple)
    problem: str = ""

    def text(self, *names: str) -> str:
        """The first of some fields that says anything; empty where none does."""
        for name in names:
            value = self.fields.get(name)
            if not blank(value):
                return str(value).strip() if isinstance(value, str) else _plain(value)
        return ""

    def options(self) -> dict[str, str]:
        """Option texts by letter: columns A to Z, or a list or mapping in "options" or "choices"."""
        columns = {
            letter: self.text(letter) for letter in ascii_uppercase if not blank(self.fields.get(letter))
        }
        if columns:
            return columns
        given = self.listed("options") or self.listed("choices")
        if isinstance(given, Mapping):
            return {str(letter).strip().upper(): str(text) for letter, text in given.items()}
        return dict(zip(ascii_uppercase, map(_plain, given), strict=False))

    def listed(self, name: str) -> Any:
        """A list or mapping, written as such or as Python text; an empty list where there is none.

        Raises:
            ValueError: It is text that is neither.
        """
        value: Any = self.fields.get(name)
        if blank(value):
            return []
        if isinstance(value, str):
            try:
                value = ast.literal_eval(value.strip())
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                raise ValueError(f'its "{name}" is a list that cannot be read') from None
        if not isinstance(value, (list, tuple, Mapping)):
            raise ValueError(f'its "{name}" is of type {type(value).__name__}, not a list')
        return value


def blank(value: Any) -> bool:
    """Whether a cell says nothing: empty, or "nan", which is how pandas writes an empty cell."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return True
    return isinstance(value, str) and value.strip().lower() in ("", "nan")


def _plain(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
