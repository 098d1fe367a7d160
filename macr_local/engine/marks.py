"""Tokens that stand for a text as a whole, found in a text before it is tokenised."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

CONTROL_LIKE = re.compile(rb"\s*(?:<[^<>]*[\w|\xef][^<>]*>|\[[^\[\]]*[\w|][^\[\]]*\])\s*")
"""The shape of a marker: ``<think>``, ``<|channel|>``, ``[INST]``; not a run of blanks, not a letter."""

# Vocabularies hold these whole because the web is full of them (Gemma's 80). Typed by a user they mean what
# they always mean, and no chat template gives them another sense. <img> and <s> are missing on purpose:
# one begins an image, the other a sequence, in other vocabularies.
_HTML = re.compile(
    rb"</?(?:a|b|blockquote|body|br|caption|code|div|em|footer|h[1-6]|header|hr|html|i|iframe|li|ol|p|pre|span"
    rb"|strong|sub|sup|table|tbody|td|tfoot|th|thead|tr|u|ul)/?>"
)


def is_control_like(text: bytes) -> bool:
    """Whether a user-defined token looks like one that a chat template gives a meaning to."""
    return CONTROL_LIKE.fullmatch(text) is not None and _HTML.fullmatch(text.strip()) is None


class Marks:
    """A set of texts to be found in other texts, the leftmost first and of those the longest."""

    def __init__(self, ids: Mapping[bytes, int]) -> None:
        self._ids = dict(ids)
        # Thousands of marks (Gemma has 6,000) share a few first bytes, and those a few lengths.
        self._lengths: dict[int, list[int]] = {}
        for first, length in sorted({(text[0], len(text)) for text in ids}, reverse=True):
            self._lengths.setdefault(first, []).append(length)
        firsts = b"".join(re.escape(bytes([first])) for first in self._lengths)
        self._first = re.compile(b"[" + firsts + b"]") if firsts else None

    def get(self, text: bytes) -> int | None:
        """The token of exactly this text."""
        return self._ids.get(text)

    def find(self, data: bytes, start: int, end: int) -> tuple[int, int, int] | None:
        """The first mark that lies within ``data[start:end]``: where it starts and ends, and its token."""
        if self._first is None:
            return None
        for match in self._first.finditer(data, start, end):
            at = match.start()
            for length in self._lengths[data[at]]:
                if at + length <= end and (token := self._ids.get(data[at : at + length])) is not None:
                    return at, at + length, token
        return None

    def split(self, data: bytes) -> Iterator[tuple[bytes, int | None]]:
        """A text as pieces between marks and the marks themselves (with their token); none is empty."""
        at = 0
        while found := self.find(data, at, len(data)):
            start, end, token = found
            if start > at:
                yield data[at:start], None
            yield data[start:end], token
            at = end
        if at < len(data):
            yield data[at:], None
