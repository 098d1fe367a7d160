"""Whole characters: of bytes that come in pieces, and of texts that hold halves of some."""

from __future__ import annotations

import codecs


class Utf8Assembler:
    """Turns a stream of bytes into text and withholds the beginning of a character until it is complete.

    A token may hold a part of a character. Bytes that can never become one are left out, so no replacement
    character (U+FFFD) appears that the model did not write.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("ignore")

    @property
    def pending(self) -> bytes:
        """The beginning of a character that waits for the rest; at most three bytes."""
        return self._decoder.getstate()[0]

    def feed(self, data: bytes) -> str:
        """Take in bytes and return the characters that are whole now."""
        return self._decoder.decode(data)


def whole(data: bytes) -> int:
    """How many of these bytes come before an incomplete character at the end."""
    assembler = Utf8Assembler()
    # An incomplete character is at most three bytes, and its first byte ends whatever came before.
    assembler.feed(data[-3:])
    return len(data) - len(assembler.pending)


def is_text(text: str) -> bool:
    """Whether a text has bytes in UTF-8; half of a surrogate pair, from JSON or an odd terminal, has none."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
