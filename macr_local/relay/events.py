"""What happens in a relay, as frozen records, in the order in which it happens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FinishReason = Literal["end", "stop", "max_tokens", "context_full", "deadline", "cancelled"]


@dataclass(frozen=True, slots=True)
class Started:
    """Every member holds the prompt; nothing is written yet."""

    members: tuple[str, ...]
    prompt_text: dict[str, int]
    prompt_image: dict[str, int]
    seconds: float
    """From the question's start to here: encoding and prefill."""


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
    """Text that can be shown now: whole characters, no part of a stop string, no thought marker."""

    member: str
    text: str
    thought: bool = False


@dataclass(frozen=True, slots=True)
class BidOpened:
    """All members are asked to bid: at the start (round 0), or because the trigger fired."""

    round: int
    """0 is initiation."""
    leader: str | None
    """Who led; None at initiation."""
    index: int
    """Tokens of the answer so far."""
    reason: Literal["initiation", "confidence", "sentence", "failure"]
    mean: float | None = None
    """The window mean that tripped the threshold, the dropped token included."""
    z: float | None = None
    dropped: bytes = b""
    """The token that tripped the threshold; it is not part of the answer."""


@dataclass(frozen=True, slots=True)
class Bid:
    """One member's bid, finished or given up."""

    round: int
    member: str
    text: bytes
    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    mean: float | None
    """Mean over the tokens it has, the end token included (Eq. 6); None when given up before a token."""
    z: float | None
    """Standardised mean; None when the bid was pruned."""
    bound: float | None = None
    """When pruned: the highest z it could still have reached."""
    short: bool = False
    """Fewer than w tokens because it ended."""
    note: str = ""
    """Why a member did not bid (no room, failed before)."""


@dataclass(frozen=True, slots=True)
class Relayed:
    """A member takes the lead (perhaps again) and its bid's words join the answer."""

    round: int
    leader: str | None
    winner: str
    z: float | None
    """The winner's z; None where nobody bid (fixed order)."""


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
    """Tokens of the answer."""
    seconds: float


Event = Started | Token | Text | BidOpened | Bid | Relayed | MemberFailed | Finished
