"""What an answer comes down to, so that answers in different words can be counted together."""

from __future__ import annotations

import re

_NUMBERS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
)  # fmt: skip
_DIGITS = {word: str(number) for number, word in enumerate(_NUMBERS)}
_MARK = re.compile(r"^.*\banswer\b(?:\s+is)?\W*:\s*", re.IGNORECASE)
_WRAPPING = " \t*_`\"'“”‘’"
_WORD = re.compile(r"[^\W\d_]+")


def final(text: str) -> str | None:
    """What stands behind the last "Answer:", or else the last line there is, in a form that compares.

    Case, blanks, closing stops, quotes and emphasis do not count, and "three" is "3", as no member's wording
    should lose it a vote. Where nothing stands behind the mark, the next line does.

    Returns:
        None where the text says nothing.
    """
    lines = [line for line in text.splitlines() if _undressed(line)]
    marks = [number for number, line in enumerate(lines) if _MARK.match(line)]
    said = [_MARK.sub("", lines[marks[-1]]), *lines[marks[-1] + 1 :]] if marks else lines[-1:]
    return next(filter(None, map(_undressed, said)), None)


def _undressed(line: str) -> str:
    said = line.strip(_WRAPPING).rstrip(".!。").strip(_WRAPPING).casefold()
    said = _WORD.sub(lambda word: _DIGITS.get(word.group(), word.group()), said)
    return " ".join(said.split())
