"""The shared answer, as bytes that are the same for every member, and each member's place in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from macr_local.relay.events import Text
from macr_local.relay.text import TextAssembler
from macr_local.utf8 import Utf8Assembler


@dataclass(slots=True)
class _Place:
    """Where one member stands: what it has read or written, and the rounds it passed over since."""

    read: int = 0
    cuts: list[int] = field(default_factory=list)


class Transcript:
    """The words of the answer so far.

    What the members share are whole characters. A member that writes part of a character holds it in its own
    cache alone, until it has written the rest; then the others can read it.

    Members read lazily: words of others wait as text until a member needs them. They wait in the pieces in
    which a member that bids in every round would have read them, because a text that is cut elsewhere can
    come out as other tokens, and in batches of another shape; and a bid that was pruned must leave no trace.
    """

    def __init__(self, members: Sequence[str], stop: Sequence[str] = ()) -> None:
        self._stop = tuple(stop)
        self._places = {name: _Place() for name in members}
        self._shared = bytearray()
        self._utf8 = Utf8Assembler()
        self._assembler: TextAssembler | None = None
        self._segment_start = 0
        self.segment = -1
        """Index of the present segment; -1 before the first leader."""
        self.index = 0
        """Tokens of the answer."""

    # Writing.

    def begin_segment(self) -> None:
        """A member gains the lead."""
        self.segment += 1
        self._segment_start = len(self._shared)

    def write(self, member: str, data: bytes, *, opens_thought: bool) -> list[Text]:
        """Append one token of the leader; returns the text that can be shown now.

        Args:
            member: Who wrote it.
            data: The bytes it adds.
            opens_thought: Whether the writer's prompt ends inside a thought; counts for the first token only.
        """
        if self._assembler is None:
            self._assembler = self.reading(opens_thought)
        self.index += 1
        self._shared += self._utf8.feed(data).encode()
        self._places[member] = _Place(len(self._shared))
        return self._assembler.feed(data, member, self.segment)

    def forget_tail(self) -> None:
        """Drop the beginning of a character whose writer cannot complete it any more."""
        self._utf8 = Utf8Assembler()
        if self._assembler is not None:
            self._assembler.forget_tail()

    def close(self) -> tuple[list[Text], tuple[str, ...]]:
        """End the answer: text that was withheld, and notes."""
        return self._assembler.close() if self._assembler is not None else ([], ())

    # Looking.

    @property
    def written(self) -> bytes:
        """What was written since the last handover, the winner's bid included, in whole characters."""
        return bytes(self._shared[self._segment_start :])

    @property
    def mid_character(self) -> bool:
        """Whether the leader is in the middle of a character."""
        return bool(self._utf8.pending)

    @property
    def stopped(self) -> bool:
        """Whether a stop string was completed."""
        return self._assembler is not None and self._assembler.stopped

    def reading(self, opens_thought: bool) -> TextAssembler:
        """The answer as far as it goes, to try a continuation on.

        As long as nothing is written, each member's own prompt decides whether it begins inside a thought.
        """
        if self._assembler is None:
            return TextAssembler(self._stop, in_thought=opens_thought)
        return self._assembler.fork()

    def forbidden(self, opens_thought: bool) -> tuple[bytes, ...]:
        """Thought markers that must not be written next."""
        return (self._assembler or self.reading(opens_thought)).forbidden

    # Reading.

    def pending(self, member: str) -> list[bytes]:
        """What a member has not read: whole characters, cut at the rounds it passed over."""
        place = self._places[member]
        ends = [*place.cuts, len(self._shared)]
        starts = [place.read, *place.cuts]
        return [bytes(self._shared[a:b]) for a, b in zip(starts, ends, strict=True) if b > a]

    def read(self, member: str) -> None:
        """A member has read everything."""
        self._places[member] = _Place(len(self._shared))

    def pass_over(self, member: str) -> None:
        """A member did not have to read at a round in which it could have bid."""
        place = self._places[member]
        if len(self._shared) > (place.cuts[-1] if place.cuts else place.read):
            place.cuts.append(len(self._shared))
