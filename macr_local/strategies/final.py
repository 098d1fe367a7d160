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
    """The last line that says "Answer: ...", or else the last line there is, in a form that compares.

    Case, blanks, closing stops, quotes and emphasis do not count, and "three" is "3", as no member's wording
    should lose it a vote.

    Returns:
        None where the text says nothing.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    marked = [line for line in lines if _MARK.match(line)]
    if not lines:
        return None
    said = _MARK.sub("", marked[-1]) if marked else lines[-1]
    said = said.strip(_WRAPPING).rstrip(".!。").strip(_WRAPPING).casefold()
    said = _WORD.sub(lambda word: _DIGITS.get(word.group(), word.group()), said)
    return " ".join(said.split()) or None
