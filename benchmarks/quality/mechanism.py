"""Why the answer changed hands: triggers and winners, set against what is known of who knows what."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields

from macr_local.relay import events
from macr_local.relay.boundaries import goes_on
from macr_local.relay.events import Event
from macr_local.settings import RelaySettings
from macr_local.tiny.scenes.chain import WORDS, Kind
from macr_local.tiny.scenes.knowledge import topic_of
from macr_local.tiny.scenes.reader import Reading
from macr_local.tiny.scenes.wording import PLAIN, Language
from macr_local.utf8 import Utf8Assembler

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
    """Tokens that the relay judged: behind a bid and its cooldown, with a window of w tokens, and not within
    a word where a trigger must begin one."""
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
        judged = watch.judges(event)
        if isinstance(event, events.Token):
            pieces.append((len(written), len(written) + len(event.text), event.member, judged))
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
        self._round = 0
        self._initiation = False
        self._bids: dict[str, tuple[int, ...]] = {}
        self._bid: tuple[int, ...] = ()
        """Of the leader, as far as it may have joined the answer."""
        self._segment = b""
        self._characters = Utf8Assembler()
        self._tokens = self._behind = 0
        """Of the segment, and of those the ones behind the bid."""

    def judges(self, event: Event) -> bool:
        """Take note of an event; whether it is a token that was judged."""
        if isinstance(event, events.BidOpened):
            self._bids, self._initiation = {}, event.reason == "initiation"
        elif isinstance(event, events.Bid):
            self._bids[event.member] = event.tokens
        elif isinstance(event, events.Relayed):
            kept = self._settings.keep_trial or not self._initiation
            self._round, self._bid = event.round, self._bids.get(event.winner, ()) if kept else ()
            self._segment, self._tokens, self._behind = b"", 0, 0
        elif isinstance(event, events.Token):
            behind = not self._is_bid(event)
            judged = behind and self._may_trigger(event)
            self._behind += behind
            self._segment += self._characters.feed(event.text).encode()
            self._tokens += 1
            return judged
        return False

    def _is_bid(self, token: events.Token) -> bool:
        """Whether the next token was written in the bid."""
        last = len(self._bid) - 1
        if self._settings.confidence == "first-doubt" and self._tokens == last > 0:
            # The last one joined the answer only if it was beyond doubt.
            doubtful = token.z is not None and token.z < self._settings.threshold
            return token.id == self._bid[last] and not doubtful
        return self._tokens <= last

    def _may_trigger(self, token: events.Token) -> bool:
        """Whether a token behind the bid could have been a trigger, had it been less likely."""
        settings = self._settings
        if settings.trigger != "confidence" or token.z is None or self._behind < settings.cooldown:
            return False
        if settings.max_relays is not None and self._round >= settings.max_relays:
            return False
        if self._characters.pending or (settings.selection == "order" and self._tokens == 0):
            return False
        return settings.boundary == "token" or not goes_on(self._segment, token.text)


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
