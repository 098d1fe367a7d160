"""The values that answers come down to: letters, yes or no, numbers, lists, words."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation

from macr_local.evaluation.scoring.reading import plain
from macr_local.strategies.final import final

_LETTER = re.compile(r"^(?:option|choice|answer)?\s*[(\[]?([A-Za-z])[)\]]?(?=$|[\s.:,)\]*])", re.IGNORECASE)
_ALONE = re.compile(r"(?<![A-Za-z0-9'’])[(\[]?([A-Z])[)\]]?(?![A-Za-z0-9'’])")
_FEW = 4
"""So many words around a letter cannot be a sentence about another one."""
_SEPARATED = re.compile(r"[\s,;/&+()\[\]{}.*]+|\band\b", re.IGNORECASE)
_NUMBER = re.compile(r"[-+−]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?:[eE][-+]?\d+)?")
_FRACTION = re.compile(
    r"\\d?frac\s*\{\s*(-?\d+)\s*\}\s*\{\s*(\d+)\s*\}|(?<![\d/.])(-?\d+)\s*/\s*(\d+)(?![\d/.])"
)
_LIST = re.compile(r"\[[^\[\]]*\]")


def letter(said: str, options: Mapping[str, str]) -> str | None:
    """The one option that is named, by its letter or its whole text.

    Args:
        said: What stands in the place of the result.
        options: Texts by letter; empty where the data set keeps them in the image, and any letter may be.
    """
    text = plain(said)
    if exact := [name for name, option in options.items() if _same(option, text)]:
        return exact[0] if len({options[name] for name in exact}) == 1 else None
    named: set[str] = {
        found[1].upper() for found in _ALONE.finditer(text) if not options or found[1] in options
    }
    begins = _LETTER.match(text)
    if begins and (begins[1].upper() in options or not options):
        name: str = begins[1].upper()
        behind = text[begins.end() :]
        # "A red car" begins with an article: what follows a bare letter must be the option's own text.
        bare = begins[0].isalpha() and behind[:1].isspace()
        if not behind or _same(options.get(name, ""), plain(behind.strip(" .:)]("))):
            return name
        if not bare and not named - {name, "A", "I"}:
            return name
    if len(named) == 1 and not named & {"A", "I"} and len(text.split()) <= _FEW:
        return next(iter(named))
    return None


def letters(said: str) -> str | None:
    """A set of letters, sorted, as "A, C"; None where something else stands among them."""
    parts = [part for part in _SEPARATED.split(plain(said)) if part]
    if len(parts) == 1 and parts[0].isupper() and parts[0].isalpha() and len(parts[0]) <= 6:
        parts = list(parts[0])
    if parts and parts[0].lower() in ("option", "options"):
        parts = parts[1:]
    if not parts or not all(len(part) == 1 and part.isalnum() for part in parts):
        return None
    return ", ".join(sorted({part.upper() for part in parts}))


def yes_or_no(said: str) -> str | None:
    """Yes or No: the first word, or the only one of the two."""
    words: list[str] = re.findall(r"[a-z]+", plain(said).lower())
    if words and words[0] in ("yes", "no"):
        return words[0].capitalize()
    named = {word for word in words if word in ("yes", "no")}
    return named.pop().capitalize() if len(named) == 1 and words[-1] in named else None


def number(said: str) -> Decimal | None:
    """The one number that stands there, or behind the last "="; words up to twenty are numbers too."""
    text = plain(said).rsplit("=", 1)[-1].replace("\\,", "").replace("\\%", "%")
    fraction = _FRACTION.search(text)
    if fraction:
        above, below = [int(part) for part in fraction.groups() if part is not None]
        return Decimal(above) / Decimal(below) if below else None
    for wrapped in ([], [final(text) or ""]):  # numbers in words only where there are no digits
        found = {_decimal(each) for each in _NUMBER.findall(wrapped[0] if wrapped else text)} - {None}
        if found:
            return found.pop() if len(found) == 1 else None
    return None


def rounded(value: Decimal, precision: int | None) -> str:
    """A number as text, with so many decimals, or as short as it is."""
    if precision is None:
        return f"{value.normalize():f}"
    return f"{value.quantize(Decimal(1).scaleb(-precision), ROUND_HALF_EVEN):f}"


def items(said: str) -> list[object] | None:
    """A list in square brackets."""
    found = _LIST.findall(said)
    try:
        return list(ast.literal_eval(found[-1])) if found else None
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def words(said: str) -> str | None:
    """Words as they compare: without case, blanks, stops, quotes, articles; numbers as digits."""
    text = final(plain(said))
    return None if text is None else re.sub(r"^(?:an?|the)\s+(?=\S)", "", text)


def _same(option: str, said: str) -> bool:
    return bool(said) and words(option) == words(said)


def _decimal(text: str) -> Decimal | None:
    try:
        return Decimal(text.replace(",", "").replace("−", "-"))
    except InvalidOperation:
        return None
