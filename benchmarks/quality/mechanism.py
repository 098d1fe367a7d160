"""Why the answer changed hands: triggers and winners, set against what is known of who knows what."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields

from macr_local.relay import events
from macr_local.relay.events import Event
from macr_local.tiny.scenes.chain import WORDS, Kind, Slot
from macr_local.tiny.scenes.knowledge import topic_of
from macr_local.tiny.scenes.reader import Stated, next_kind, stated
from macr_local.tiny.scenes.wording import PLAIN, Language

Knows = Callable[[str, Kind], bool]
"""Whether a member (by name) can know what belongs into a slot of this kind."""


@dataclass(frozen=True, slots=True)
class Mechanism:
    """Counts of one answer, or sums of several."""

    tokens: int = 0
    """Tokens of the answer, and tokens dropped at triggers: where a trigger could have been."""
    weak: int = 0
    """Those that begin a value which their writer cannot know."""
    watched: int = 0
    """Tokens that were proposed under watch: not part of a bid, and with a window of w tokens."""
    watched_weak: int = 0
    """Those of them that begin a value which their writer cannot know."""
    triggers: int = 0
    """Triggers by confidence."""
    hits: int = 0
    """Triggers on a token that begins a value which the leader cannot know."""
    contests: int = 0
    """Hits after which some member of the pool knows what belongs there."""
    won_by_knower: int = 0
    """Contests that were won by a member who knows."""
    knowers: float = 0.0
    """Sum over contests of the share of members who know: those that a winner by lot would have got right."""
    values: int = 0
    """Values of a topic that the answer states."""
    values_unknown: int = 0
    """Those of them whose writer cannot know them."""

    def __add__(self, other: Mechanism) -> Mechanism:
        return Mechanism(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Mechanism)))


def observe(
    happened: Iterable[Event],
    members: Sequence[str],
    reference: Sequence[Slot],
    knows: Knows,
    language: Language = PLAIN,
) -> Mechanism:
    """Read one answer's events.

    Args:
        happened: The events of a relay.
        members: The pool.
        reference: The worked answer; it says what kind of value comes next.
        knows: Who knows what.
        language: The words.
    """
    written = b""
    pieces: list[tuple[int, int, str, bool]] = []  # start, end, writer, watched
    counts = Mechanism()
    contest: Kind | None = None
    for event in happened:
        if isinstance(event, events.Token):
            pieces.append((len(written), len(written) + len(event.text), event.member, event.z is not None))
            written += event.text
        elif isinstance(event, events.BidOpened) and event.reason == "confidence":
            kind = _begins(written.decode("utf-8", "replace"), event.dropped, reference, language)
            hit = kind is not None and not knows(event.leader or "", kind)
            counts += Mechanism(tokens=1, weak=hit, watched=1, watched_weak=hit, triggers=1, hits=hit)
            able = sum(knows(name, kind) for name in members) if hit and kind is not None else 0
            contest = kind if able else None
            counts += Mechanism(contests=able > 0, knowers=able / len(members))
        elif isinstance(event, events.Relayed) and contest is not None:
            counts += Mechanism(won_by_knower=knows(event.winner, contest))
            contest = None
    return counts + _written(written, pieces, reference, knows, language)


def _written(
    written: bytes,
    pieces: Sequence[tuple[int, int, str, bool]],
    reference: Sequence[Slot],
    knows: Knows,
    language: Language,
) -> Mechanism:
    """What the tokens of the answer say, and whether their writers could know it."""
    text = written.decode("utf-8", "replace")
    starts = _topical(stated(text, language), reference)
    counts = Mechanism()
    for start, end, writer, watched in pieces:
        kind = next((starts[at] for at in range(start, end) if at in starts), None)
        weak = kind is not None and not knows(writer, kind)
        counts += Mechanism(
            tokens=1,
            weak=weak,
            watched=watched,
            watched_weak=watched and weak,
            values=kind is not None,
            values_unknown=weak,
        )
    return counts


def _topical(found: Sequence[Stated], reference: Sequence[Slot]) -> dict[int, Kind]:
    """Where values of a topic begin. The language is ASCII, so characters are bytes."""
    slots = [slot for slot in reference if slot.value and slot.kind != "answer"]
    return {
        value.start: slot.kind
        for value, slot in zip(found, slots, strict=False)
        if topic_of(slot.kind) is not None
    }


def _begins(text: str, dropped: bytes, reference: Sequence[Slot], language: Language) -> Kind | None:
    """The kind of the topical value that a dropped token begins, if it begins one."""
    kind = next_kind(text, reference, language)
    piece = dropped.decode("utf-8", "ignore").strip()
    if kind is None or topic_of(kind) is None or not piece:
        return None
    return kind if any(language.word(word).startswith(piece) for word in WORDS[kind]) else None
