"""Strict reading of TOML: unknown keys and wrong types are refused with file, line and the right name."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NoReturn, Union, get_args, get_origin

from macr_local.errors import ConfigError

Keys = tuple[str, ...]
_HEADER = re.compile(r"\s*\[([^\[\]]+)\]\s*(#.*)?$")
_ASSIGNMENT = re.compile(r"\s*([^=#\[\]{}]+?)\s*=")
_KINDS = {int: "a whole number", float: "a number", str: "text in quotes", bool: "true or false"}


@dataclass(frozen=True, slots=True)
class Source:
    """A TOML file's text, kept to say on which line something stands."""

    path: Path
    text: str

    @classmethod
    def read(cls, path: Path) -> tuple[Source, dict[str, Any]]:
        """Read and parse a file.

        Raises:
            ConfigError: It cannot be read, is not UTF-8, or is not TOML.
        """
        try:
            text = path.read_bytes().decode("utf-8-sig")
        except OSError as error:
            raise ConfigError(
                f"{path} cannot be read: {error.strerror or error}", "Give the path of a models.toml"
            ) from None
        except UnicodeDecodeError as error:
            line = path.read_bytes()[: error.start].count(b"\n") + 1
            raise ConfigError(f"{path}, line {line}: not UTF-8 text", "Save the file as UTF-8") from None
        try:
            return cls(path, text), tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(
                f"{path} is not valid TOML: {error}",
                "Mend that line; https://toml.io shows the format in short",
            ) from None

    def fail(self, keys: Keys, found: str, fix: str) -> NoReturn:
        """Raise a ConfigError that names the file and, where it can be told, the line of a key."""
        line = line_of(self.text, keys)
        at = f"{self.path}, line {line}" if line else str(self.path)
        raise ConfigError(f"{at}: {found}", fix)


def line_of(text: str, keys: Keys) -> int | None:
    """The line, from 1, on which a key stands, or else the nearest table around it; None if not found."""
    best, depth = None, 0
    section: Keys = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            here = section = _split(header[1])
        elif assignment := _ASSIGNMENT.match(line):
            here = section + _split(assignment[1])
        else:
            continue
        shared = min(len(here), len(keys))
        if depth < shared and here[:shared] == keys[:shared]:
            best, depth = number, shared
    return best


def _split(dotted: str) -> Keys:
    try:
        node: Any = tomllib.loads(f"{dotted} = 0")
    except tomllib.TOMLDecodeError:
        return ("",)
    keys = []
    while isinstance(node, dict):
        key, node = next(iter(node.items()))
        keys.append(key)
    return tuple(keys)


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint at the known name closest to a wrong one, or at all of them."""
    names = sorted(set(known))
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f'Perhaps "{close[0]}" is meant'
    return f"Known are: {', '.join(names)}" if names else "None is known"


def table(source: Source, values: Mapping[str, Any], keys: Keys) -> dict[str, Any]:
    """The sub-table at the last of ``keys``, empty where it is absent; anything else there is refused."""
    value = values.get(keys[-1], {})
    if not isinstance(value, dict):
        source.fail(
            keys,
            f"{dotted(keys)} is {show(value)}, not a table",
            f"Write [{dotted(keys)}] and its keys below",
        )
    return value


def fields(source: Source, values: Mapping[str, Any], keys: Keys, types: Mapping[str, Any]) -> dict[str, Any]:
    """Check a table against the names and types it may hold and convert its values.

    Args:
        source: The file, for messages.
        values: The table.
        keys: Where the table stands in the file.
        types: The type of each key: int, float, str, bool, ``tuple[str, ...]``, a Literal, dict (a table that
            is left as it is), or one of these ``| None``.

    Raises:
        ConfigError: A key is unknown or a value has another type.
    """
    known = {}
    for name, value in values.items():
        if name not in types:
            place = f"in [{dotted(keys)}]" if keys else "at the top level"
            source.fail((*keys, name), f'unknown key "{name}" {place}', nearest(name, types))
        known[name] = _convert(source, (*keys, name), value, types[name])
    return known


def _convert(source: Source, keys: Keys, value: Any, kind: Any) -> Any:
    if get_origin(kind) in (Union, UnionType):
        (kind,) = (part for part in get_args(kind) if part is not NoneType)
    origin = get_origin(kind)
    if origin is Literal:
        if value in get_args(kind):
            return value
        want = "one of " + ", ".join(f'"{choice}"' for choice in get_args(kind))
    elif origin is tuple:
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
        want = 'a list of texts, such as ["a", "b"]'
    elif kind is dict:
        if isinstance(value, dict):
            return value
        want = "a table, such as { key = value }"
    else:
        if kind is float and type(value) is int:
            return float(value)
        if type(value) is kind and value == value and value not in (float("inf"), float("-inf")):
            return value
        want = _KINDS[kind]
    return source.fail(keys, f"{dotted(keys)} is {show(value)}", f"Use {want}")


def dotted(keys: Keys) -> str:
    """A key path as TOML writes it."""
    return ".".join(key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else f'"{key}"' for key in keys)


def show(value: Any) -> str:
    """A value as TOML writes it, shortened."""
    text = f'"{value}"' if isinstance(value, str) else str(value)
    if isinstance(value, bool):
        text = text.lower()
    return text if len(text) <= 60 else text[:57] + "..."
