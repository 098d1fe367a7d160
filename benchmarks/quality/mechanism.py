"""Why the answer changed hands: triggers and winners, set against what is known of who knows what."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields

from macr_local.relay import events
from macr_local.relay.events import Event
from macr_local.settings import RelaySettings
from macr_local.tiny.scenes.chain import WORDS, Kind
from macr_local.tiny.scenes.knowledge import topic_of
from macr_local.tiny.scenes.reader import Reading
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
    """Tokens that the relay judged: behind a bid and its cooldown, with a window of w tokens."""
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
    read: Callable[[str], Reading],
    knows: Knows,
    settings: RelaySettings,
    language: Language = PLAIN,
) -> Mechanism:
    """Read one answer's events.

    Args:
        happened: The events of a relay.
        members: The pool.
        read: Follows the beginning of an answer; it says what kind of value comes next.
        knows: Who knows what.
        settings: Of the relay.
        language: The words.
    """
    written = b""
    pieces: list[tuple[int, int, str, bool]] = []  # start, end, writer, watched
    counts = Mechanism()
    contest: Kind | None = None
    watch = _Watch(settings)
    for event in happened:
        watch.see(event)
        if isinstance(event, events.Token):
            pieces.append((len(written), len(written) + len(event.text), event.member, watch.watches(event)))
            written += event.text
        elif isinstance(event, events.BidOpened) and event.reason == "confidence":
            kind = _begins(written.decode("utf-8", "replace"), event.dropped, read, language)
            hit = kind is not None and not knows(event.leader or "", kind)
            counts += Mechanism(tokens=1, weak=hit, watched=1, watched_weak=hit, triggers=1, hits=hit)
            able = sum(knows(name, kind) for name in members) if hit and kind is not None else 0
            contest = kind if able else None
            counts += Mechanism(contests=able > 0, knowers=able / len(members))
        elif isinstance(event, events.Relayed) and contest is not None:
            counts += Mechanism(won_by_knower=knows(event.winner, contest))
            contest = None
    return counts + _written(written, pieces, read, knows)


class _Watch:
    """Which tokens of the answer could have been a trigger instead: those that the relay judges."""

    def __init__(self, settings: RelaySettings) -> None:
        self._settings = settings
        self._bids: dict[str, int] = {}
        self._round = 0
        self._unwatched = 0

    def see(self, event: Event) -> None:
        """Take note of an event, before `watches` is asked about it."""
        settings = self._settings
        if isinstance(event, events.BidOpened):
            self._bids = {}
        elif isinstance(event, events.Bid):
            self._bids[event.member] = len(event.tokens)
        elif isinstance(event, events.Relayed):
            self._round = event.round
            kept = event.round > 0 or settings.keep_trial
            self._unwatched = (self._bids.get(event.winner, 0) if kept else 0) + settings.cooldown
        elif isinstance(event, events.Token):
            self._unwatched -= 1

    def watches(self, token: events.Token) -> bool:
        """Whether this token of the answer was judged."""
        limit = self._settings.max_relays
        return token.z is not None and self._unwatched < 0 and (limit is None or self._round < limit)


def _written(
    written: bytes,
    pieces: Sequence[tuple[int, int, str, bool]],
    read: Callable[[str], Reading],
    knows: Knows,
) -> Mechanism:
    """What the tokens of the answer say, and whether their writers could know it."""
    # The language is ASCII, so characters are bytes.
    values = read(written.decode("utf-8", "replace")).values
    starts = {found.start: kind for found, kind in values if topic_of(kind) is not None}
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


def _begins(text: str, dropped: bytes, read: Callable[[str], Reading], language: Language) -> Kind | None:
    """The kind of the topical value that a dropped token begins, if it begins one."""
    kind = read(text).following
    piece = dropped.decode("utf-8", "ignore")
    if kind is None or topic_of(kind) is None or not piece.strip():
        return None
    if text[-1:].isalnum() and not piece[0].isspace():
        return None  # It goes on with a word that others began.
    return kind if any(language.word(word).startswith(piece.strip()) for word in WORDS[kind]) else None
