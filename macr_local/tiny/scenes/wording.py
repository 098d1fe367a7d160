"""How each style words a slot, and what may be different about the language as a whole."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

STYLES = 3
"""Ways to word a chain, one for each member."""

Wordings = tuple[str, str, str]

FIRST: dict[str, Wordings] = {
    "size": (" size", " the size is", " being"),
    "color": (" color", " the color is", " paint"),
    "shape": (" shape", " the shape is", " form"),
    "digit": (" digit", " the digit is", " mark"),
}
"""What stands before a value that begins the description of a place."""

LATER: dict[str, Wordings] = {
    "size": (", size", " and size", " and being"),
    "color": (", color", " and color", " with paint"),
    "shape": (", shape", " and shape", " with form"),
    "digit": (", digit", " and digit", " with mark"),
}
"""The same within a description."""

FLAG: Wordings = (", match", " that fits", " so")
TALLY: Wordings = (", tally", " the score is", " now stands")
TO: Wordings = (" to", " against", " over")
TOTAL: Wordings = (", total", " which gives", " sum")
MOST: Wordings = (", most", " the most is", " at best")
STOP: Wordings = (";", ".", ",")
THEREFORE: Wordings = (" so it is", " that makes", " therefore")
BESIDE: dict[str, Wordings] = {
    "left": (" left of it,", " to its left is", " going left,"),
    "right": (" right of it,", " to its right is", " going right,"),
    "above": (" above it,", " higher up is", " going up,"),
    "below": (" below it,", " lower down is", " going down,"),
}


def place(name: str, first: bool) -> Wordings:
    """A place that is about to be described."""
    gap = "" if first else " "
    return (f"{gap}{name}:", f"{gap}at the {name}", f"{gap}now {name},")


@dataclass(frozen=True, slots=True)
class Language:
    """What may be changed about the language of a world.

    Attributes:
        close: Values of a description stand side by side ("red circle five"), with no word between them.
        words: Other words for some values.
    """

    close: bool = False
    words: Mapping[str, str] = field(default_factory=dict)

    def word(self, value: str) -> str:
        """The word for a value."""
        return self.words.get(value, value)

    def rename(self, text: str) -> str:
        """A text (a question, an answer) in the words of this language; plurals and articles follow."""
        for value, word in self.words.items():
            text = re.sub(rf"\b{value}(?:(?=\b)|e?(?=s\b))", word, text)
        return re.sub(r"\ba (?=[aeiou])", "an ", text) if self.words else text


PLAIN = Language()
