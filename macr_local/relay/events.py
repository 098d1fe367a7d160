"""What happens in a relay, as frozen records, in the order in which it happens."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from macr_local.relay.counters import Counters

BidReason = Literal["initiation", "confidence", "sentence", "failure"]
FinishReason = Literal["end", "stop", "max_tokens", "context_full", "deadline", "cancelled"]


@dataclass(frozen=True, slots=True)
class Started:
    """Every member holds the prompt; nothing is written yet."""

    members: tuple[str, ...]
    prompt_text: dict[str, int]
    prompt_image: dict[str, int]
    seconds: float
    """From the question's start to here: encoding and prefill."""
    notes: tuple[str, ...] = ()
    """What was done to the prompt that a user may want to know (an image was reduced)."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token joined the answer."""

    member: str
    index: int
    """Its place among the answer's tokens, from 0."""
    id: int
    text: bytes
    """The bytes it adds; may be part of a character."""
    logprob: float
    mean: float | None = None
    """Mean log-probability of the window that ends here; None until the segment holds w tokens."""
    z: float | None = None
    """The mean, standardised (Eq. 5)."""
    is_end: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """Text that can be shown now: whole characters, no part of a stop string, no thought marker.

    It may come a few tokens later than its tokens, even after the next `Relayed`.
    """

    member: str
    """Who wrote it."""
    text: str
    thought: bool = False
    segment: int = 0
    """The segment it belongs to: 0 begins at the first `Relayed`, 1 at the second, and so on."""


@dataclass(frozen=True, slots=True)
class BidOpened:
    """A new round begins: at the start (round 0), because the trigger fired, or because the leader failed.

    All members are asked to bid; with ``selection="order"`` nobody is, and the event records the trigger.
    """

    round: int
    """0 is initiation."""
    leader: str | None
    """Who led; None at initiation."""
    index: int
    """Tokens of the answer so far."""
    reason: BidReason
    mean: float | None = None
    """The window mean at the trigger, the dropped token included; None where it is not defined."""
    z: float | None = None
    dropped: bytes = b""
    """The token proposed when the trigger fired (empty for the end token); it is not part of the answer."""


@dataclass(frozen=True, slots=True)
class Bid:
    """One member's bid, finished or given up. The bids of a round come in pool order."""

    round: int
    member: str
    text: bytes
    """What it would have added to the answer, as bytes; may end inside a character."""
    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    mean: float | None
    """Mean over the tokens it has, the end token included (Eq. 6); None when given up before a token."""
    z: float | None
    """The mean, standardised; None when the bid was pruned or the member did not bid."""
    bound: float | None = None
    """When pruned: the highest z it could still have reached, which was not enough."""
    short: bool = False
    """Fewer than w tokens because it ended, or came to a doubtful token, which is its last."""
    note: str = ""
    """Why a member did not bid (no room, failed before)."""


@dataclass(frozen=True, slots=True)
class Relayed:
    """A member takes the lead (perhaps again) and a new segment begins.

    Where it bid (and, in round 0, where the trial is kept), the next `Token` events are its bid.
    """

    round: int
    leader: str | None
    winner: str
    z: float | None
    """The winner's z; None where nobody bid (a fixed first leader, a fixed order)."""


@dataclass(frozen=True, slots=True)
class Answered:
    """What a member said by itself: its whole answer, where one of several is chosen, or a step towards one.

    Tokens follow only for the answer that is given in the end.
    """

    member: str
    text: str
    thought: str
    final: str | None
    """What it comes down to, as answers are compared; None where it says nothing."""
    reason: FinishReason
    tokens: int
    mean: float | None
    """Mean log-probability of all its tokens, the end token included."""
    z: float | None
    """The mean, standardised; None where the member has no calibration."""
    step: str = ""
    """Which step of the method this is ("scene graph", "round 1"); empty for an answer that can be chosen."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """One of several whole answers is taken; `Relayed` and its tokens follow, as its member wrote them."""

    member: str
    among: int
    """Answers that could be taken."""
    votes: int | None = None
    """How many of them come down to the same; None where confidence decided."""
    tied: bool = False
    """Whether another was as good, so that pool order decided."""


@dataclass(frozen=True, slots=True)
class MemberFailed:
    """A member dropped out for the rest of this question."""

    member: str
    error: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The answer is complete, for this reason."""

    reason: FinishReason
    index: int
    """Tokens of the answer, an end token included."""
    seconds: float
    counters: dict[str, Counters] = field(default_factory=dict)
    """What each member read, wrote and computed, in pool order."""
    notes: tuple[str, ...] = ()


Event = Started | Token | Text | BidOpened | Bid | Relayed | Answered | Chosen | MemberFailed | Finished
