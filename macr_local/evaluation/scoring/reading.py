"""Where in an answer its result stands."""

from __future__ import annotations

import re
from typing import NamedTuple

_THOUGHT = re.compile(r"<(think|thinking)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_OPEN_THOUGHT = re.compile(r"<(think|thinking)>", re.IGNORECASE)
_CLOSED_THOUGHT = re.compile(r"^.*</(think|thinking)>", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"<answer>(.*?)</answer>", re.DOTALL | re.IGNORECASE)
_BOXED = re.compile(r"\\(?:boxed|fbox)\s*\{")
_LINE = re.compile(
    r"^[^\w\n]*(?:(?:the|my)\s+)?(?:final\s+|correct\s+)?answer\s*(?:is\s*)?[*_]*\s*[:=](?!=)(.*)$",
    re.IGNORECASE | re.MULTILINE,
)
_PHRASE = re.compile(
    r"\b(?:answer|option|choice)\s+is\s*:?(?!\s*(?:not|wrong|right|correct)\b)(.*?)(?=[.;!?](?:\s|$)|\n|$)",
    re.IGNORECASE,
)
_TEX = re.compile(r"\\(?:text|textbf|mathbf|mathrm|mathit)\s*\{([^{}]*)\}")
_DRESS = " \t\r\n*_`\"'“”‘’$"


class Cue(NamedTuple):
    """A piece of an answer in which its result stands, and what pointed to it."""

    text: str
    rule: str


def spoken(text: str) -> str | None:
    """An answer without its thoughts; None where it never came out of them."""
    rest = _THOUGHT.sub("", text)
    if _OPEN_THOUGHT.search(rest):
        return None
    return _CLOSED_THOUGHT.sub("", rest)


def cue(text: str) -> Cue | None:
    """The last place that is marked as the result, or else the last line.

    Marks are TeX's boxed, ``<answer>``, a line that begins with "Answer:", and "the answer is". Where nothing
    stands behind "Answer:", the next line does.

    Returns:
        None for a text that says nothing.
    """
    marked = [
        *((found.start(), Cue(found[1], "tag")) for found in _TAG.finditer(text)),
        *((found.start(), Cue(_braced(text, found.end()), "boxed")) for found in _BOXED.finditer(text)),
        *((found.end(), Cue(_behind(text, found), "answer-line")) for found in _LINE.finditer(text)),
        *((found.start(), Cue(found[1], "answer-is")) for found in _PHRASE.finditer(text)),
    ]
    said = [(place, Cue(plain(one.text), one.rule)) for place, one in marked if plain(one.text)]
    if said:
        return max(said, key=lambda found: found[0])[1]
    lines = [plain(line) for line in text.splitlines() if plain(line)]
    return Cue(lines[-1], "last-line") if lines else None


def plain(text: str) -> str:
    """Without TeX's words around text, emphasis, quotes and closing stops."""
    text = _TEX.sub(r"\1", text)
    boxed = _BOXED.search(text)
    if boxed:
        text = _braced(text, boxed.end())
    tag = _TAG.search(text)
    if tag:
        text = tag[1]
    text = text.strip(_DRESS)
    return text.rstrip(".。!;,").strip(_DRESS)


def _behind(text: str, found: re.Match[str]) -> str:
    if plain(found[1]):
        return found[1]
    return next((line for line in text[found.end() :].splitlines() if plain(line)), "")


def _braced(text: str, start: int) -> str:
    depth = 1
    for place in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return text[start:place]
    return text[start:]
