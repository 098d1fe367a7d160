"""The words in which methods ask; `prompts.toml` has them, and users may have their own."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType

from macr_local.errors import ConfigError
from macr_local.utf8 import is_text

_PLACE = re.compile(r"\{([a-z]+)\}")


class Prompts:
    """Texts with places in braces, by names like "ccot.graph".

    Attributes:
        texts: All of them.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = MappingProxyType(dict(texts))

    def fill(self, name: str, **parts: str) -> str:
        """A text with its places filled; braces in what is filled in stay as they are."""
        return _PLACE.sub(lambda place: parts.get(place[1], place[0]), self.texts[name])

    def of(self, tables: Collection[str]) -> Mapping[str, str]:
        """The texts of some tables."""
        return {name: text for name, text in self.texts.items() if name.partition(".")[0] in tables}


@cache
def builtin() -> Prompts:
    """The package's own."""
    return Prompts(
        _flat(tomllib.loads(resources.files(__package__).joinpath("prompts.toml").read_text("utf-8")))
    )


def load(path: Path) -> Prompts:
    """The package's own, with those of a file in their place.

    Raises:
        ConfigError: The file cannot be read, names a text that no method has, or leaves out a place that its
            method fills.
    """
    try:
        given = _flat(tomllib.loads(path.read_text("utf-8-sig")))
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read ({error.strerror})", "Give a TOML file of prompts"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, TypeError, RecursionError) as error:
        raise ConfigError(f"{path} is no file of prompts ({error})", _FIX) from None
    own = builtin().texts
    for name, text in given.items():
        if name not in own:
            raise ConfigError(f'{path} has "{name}", which no method asks', f"Use {', '.join(own)}")
        if not is_text(text) or not text.strip():
            raise ConfigError(f'{path}: "{name}" is no text', _FIX)
        missing = sorted(set(_PLACE.findall(own[name])) - set(_PLACE.findall(text)))
        if missing:
            raise ConfigError(
                f'{path}: "{name}" has no place for {", ".join(missing)}',
                f"Write {' and '.join(f'{{{one}}}' for one in missing)} where it is to stand",
            )
    return Prompts({**own, **given})


_FIX = 'Write tables with texts, such as [cot] and answer = "{question} ..."'


def _flat(tables: Mapping[str, object]) -> dict[str, str]:
    """Texts by "table.name".

    Raises:
        TypeError: It is no table of texts.
    """
    found: dict[str, str] = {}
    for table, texts in tables.items():
        if not isinstance(texts, Mapping):
            raise TypeError(f'"{table}" is no table')
        for name, text in texts.items():
            if not isinstance(text, str):
                raise TypeError(f'"{table}.{name}" is no text')
            found[f"{table}.{name}"] = text
    return found
