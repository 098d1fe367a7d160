"""From tokens' bytes to text that can be shown: whole characters, no stop string, no thought marker."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace

from macr_local.relay.events import Text
from macr_local.utf8 import Utf8Assembler

OPEN, CLOSE = "<think>", "</think>"

THOUGHT_ONLY = "Nothing was written outside the thought, so the thought is given as the answer"


class TextAssembler:
    """Assembles one answer from the bytes of its tokens, in order, each piece with its owner.

    It withholds what cannot be judged yet: a character that is not whole, and text that may be the beginning
    of a stop string or of a thought marker.

    * A stop string ends the answer before it. The first one to be completed, character by character, counts
      (of several completed by the same character, the longest), so the result depends on the text alone and
      not on how it is cut into tokens. Stop strings are not looked for inside a thought.
    * ``<think>`` and ``</think>`` are never shown, nor the white space after them. The first of each opens
      and closes the one thought an answer can have; any other is left out and changes nothing.
    * If the answer ends with nothing but its thought, the thought is given as the answer.
    """

    def __init__(self, stop: Sequence[str] = (), *, in_thought: bool = False) -> None:
        """Start an answer.

        Args:
            stop: Strings that end the answer.
            in_thought: Whether the prompt has opened a thought already.
        """
        self._stop = tuple(stop)
        self._beginnings = {pattern[0] for pattern in (OPEN, CLOSE, *self._stop)}
        self._in_thought = in_thought
        self._has_opened = in_thought
        self._skip_space = in_thought
        self._stopped = False
        self._blank = True
        self._utf8 = Utf8Assembler()
        self._held: list[tuple[str, str, int]] = []
        self._thoughts: list[Text] = []

    @property
    def stopped(self) -> bool:
        """Whether a stop string was completed; nothing more is taken in."""
        return self._stopped

    @property
    def mid_character(self) -> bool:
        """Whether the bytes so far end inside a character."""
        return bool(self._utf8.pending)

    @property
    def forbidden(self) -> tuple[bytes, ...]:
        """Markers that must not be written now: a second opening, a closing without an open thought."""
        opening = (OPEN.encode(),) if self._has_opened else ()
        closing = () if self._in_thought else (CLOSE.encode(),)
        return opening + closing

    def fork(self) -> TextAssembler:
        """A copy to try out a bid on; it goes its own way and is thrown away."""
        twin = copy.copy(self)
        twin._held = list(self._held)
        twin._thoughts = []
        twin._utf8 = Utf8Assembler()
        twin._utf8.feed(bytes(self._utf8.pending))
        return twin

    def feed(self, data: bytes, member: str = "", segment: int = 0) -> list[Text]:
        """Take in one token's bytes and return what can be shown now."""
        shown: list[Text] = []
        text = self._utf8.feed(data)
        if text and not (self._stopped or self._held or self._skip_space or self._beginnings & set(text)):
            # Nearly every token: nothing is held, and no pattern begins in it.
            return self._given([Text(member, text, self._in_thought, segment)])
        for character in text:
            if self._stopped:
                break
            if self._skip_space and character.isspace():
                continue
            self._skip_space = False
            self._held.append((character, member, segment))
            self._judge(shown)
        return self._given(shown)

    def forget_tail(self) -> None:
        """Drop the beginning of a character that nobody will complete."""
        self._utf8 = Utf8Assembler()

    def close(self) -> tuple[list[Text], tuple[str, ...]]:
        """End the answer: what was withheld, and notes; the beginning of a character is dropped."""
        shown: list[Text] = []
        self._show(len(self._held), shown)
        shown = self._given(shown)
        if self._blank and not self._stopped and any(piece.text.strip() for piece in self._thoughts):
            shown += (replace(piece, thought=False) for piece in self._thoughts)
            return shown, (THOUGHT_ONLY,)
        return shown, ()

    def _judge(self, shown: list[Text]) -> None:
        """After one more character: is a pattern complete, and how much can still become one?"""
        held = "".join(character for character, _, _ in self._held)
        patterns = (OPEN, CLOSE) if self._in_thought else (OPEN, CLOSE, *self._stop)
        if complete := max((p for p in patterns if held.endswith(p)), key=len, default=""):
            self._show(len(held) - len(complete), shown)
            self._held.clear()
            self._obey(complete)
            return
        longest = min(len(held), max(map(len, patterns)) - 1)
        keep = next((n for n in range(longest, 0, -1) if any(p.startswith(held[-n:]) for p in patterns)), 0)
        self._show(len(held) - keep, shown)

    def _obey(self, pattern: str) -> None:
        if pattern not in (OPEN, CLOSE):
            self._stopped = True
            return
        if pattern == CLOSE:
            self._in_thought = False
        elif not self._has_opened:
            self._in_thought = self._has_opened = True
        self._skip_space = True

    def _show(self, count: int, shown: list[Text]) -> None:
        """Give the first characters of what is held, joined where owner and kind stay the same."""
        for character, member, segment in self._held[:count]:
            last = shown[-1] if shown else None
            if last and (last.member, last.segment, last.thought) == (member, segment, self._in_thought):
                shown[-1] = replace(last, text=last.text + character)
            else:
                shown.append(Text(member, character, self._in_thought, segment))
        del self._held[:count]

    def _given(self, shown: list[Text]) -> list[Text]:
        self._thoughts += (piece for piece in shown if piece.thought)
        self._blank = self._blank and not any(p.text.strip() for p in shown if not p.thought)
        return shown
