"""A self-test of one loaded member: whether what a relay relies on holds on this machine.

Written against the Member protocol alone. A member's logits are looked at through `Member.propose`: each
log-probability contains the sum over the whole vocabulary, so two looks agree to the last bit only where all
logits do (but for a coincidence).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from macr_local.errors import EngineError, MacrError
from macr_local.images import Image, load
from macr_local.prompt import Prompt
from macr_local.protocol import Member, Token
from macr_local.settings import Sampling

_QUESTION = "Describe the picture."
_LOOKS = 16
"""Draws of one look, evenly spread over [0, 1)."""
_WRITTEN = 6
"""Tokens of a trial bid."""
_TIMED = 64
"""Tokens of the throughput test, at most."""
_CLOSE = 0.01
"""Nats by which an adopted bid may differ: on some devices the place of a cell in the cache moves a sum."""

Look = tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was tried, and what came of it."""

    member: str
    name: str
    ok: bool
    detail: str


def check_member(member: Member, *, sees_images: bool) -> Iterator[Check]:
    """Test one member; each check is independent of the others' outcome.

    Args:
        member: A loaded member that nobody else is using.
        sees_images: Whether it has a projector.
    """
    prompts = (
        [Prompt(_QUESTION, (image,)) for image in golden_images()] if sees_images else [Prompt(_QUESTION)]
    )
    checks: list[tuple[str, Callable[[], str]]] = [("prefill", lambda: _prefill(member, prompts[0]))]
    if sees_images:
        checks.append(("images", lambda: _images(member, prompts)))
    checks += [
        ("drop", lambda: _drop(member, prompts[0])),
        ("adopt", lambda: _adopt(member, prompts[0])),
        ("speed", lambda: _speed(member, prompts[0])),
    ]
    for name, check in checks:
        try:
            yield Check(member.name, name, True, check())
        except MacrError as error:
            yield Check(member.name, name, False, error.found)


def golden_images() -> tuple[Image, Image]:
    """Two made pictures that no model can take for the same: colour fields, and black rings on white."""
    import numpy as np

    y, x = np.mgrid[0:96, 0:96]
    fields = np.stack([x * 255 // 95, y * 255 // 95, 255 - x * 255 // 95], axis=-1).astype(np.uint8)
    fields[24:56, 24:56] = (220, 20, 20)
    rings = np.where((np.hypot(x - 48, y - 48) // 8 % 2 == 0)[..., None], 0, 255).astype(np.uint8)
    return load(fields, name="colour fields"), load(np.repeat(rings, 3, axis=-1), name="rings")


def _prefill(member: Member, prompt: Prompt) -> str:
    started = time.perf_counter()
    size = _begin(member, prompt)
    look = _look(member)
    seconds = time.perf_counter() - started
    if not all(logprob <= 0 for _, logprob in look):
        raise EngineError("a log-probability is above 0")
    return f"{size} cells in {seconds:.2f} s, all logits finite"


def _images(member: Member, prompts: list[Prompt]) -> str:
    looks = []
    for prompt in (*prompts, prompts[0]):
        _begin(member, prompt)
        looks.append(_look(member))
    if looks[0] == looks[1]:
        raise EngineError("two different images give the same logits, so the model does not see them")
    if looks[0] != looks[2]:
        raise EngineError(
            f"the same image gives other logits the second time, {_distance(looks[0], looks[2])}"
        )
    return "different images give different logits, the same image the same"


def _drop(member: Member, prompt: Prompt) -> str:
    _begin(member, prompt)
    _write(member, 2)
    before = _look(member)
    for _ in range(3):
        member.branch(_WRITTEN)
        _write(member, _WRITTEN)
        member.drop()
        after = _look(member)
        if after != before:
            raise EngineError(f"a dropped bid leaves a trace in the logits, {_distance(before, after)}")
    return "three dropped bids leave the logits bit for bit as they were"


def _adopt(member: Member, prompt: Prompt) -> str:
    _begin(member, prompt)
    member.branch(_WRITTEN)
    written = _write(member, _WRITTEN)
    member.adopt()
    adopted = _look(member)
    _begin(member, prompt)
    for token in written:
        _look(member, 1)  # decode one by one, as the bid did: the shape of a batch moves the logits
        member.accept(token)
    direct = _look(member)
    if adopted == direct:
        return "an adopted bid gives bit for bit the logits of the same words written directly"
    if [token for token, _ in adopted] != [token for token, _ in direct] or _gap(adopted, direct) > _CLOSE:
        raise EngineError(
            f"an adopted bid is not the same words written directly, {_distance(adopted, direct)}"
        )
    return f"an adopted bid is as the same words written directly, within {_gap(adopted, direct):.1e} nats"


def _speed(member: Member, prompt: Prompt) -> str:
    _begin(member, prompt)
    _look(member, 1)
    started = time.perf_counter()
    tokens = len(_write(member, min(_TIMED, member.room - 2)))
    _look(member, 1)
    return f"{tokens / (time.perf_counter() - started):.1f} tokens/s"


def _begin(member: Member, prompt: Prompt) -> int:
    cells = member.prepare(prompt).cells
    member.begin(prompt, Sampling(temperature=1.0), lambda: False)
    return cells


def _look(member: Member, draws: int = _LOOKS) -> Look:
    looks = []
    for i in range(draws):
        token = member.propose(lambda at=(i + 0.5) / draws: at)  # type: ignore[misc]
        looks.append((token.id, token.logprob))
    return tuple(looks)


def _write(member: Member, count: int) -> list[Token]:
    """Write tokens that do not end the answer, as long as one of several draws gives such a token."""
    written: list[Token] = []
    while len(written) < count:
        proposed = (member.propose(lambda at=at: at) for at in (0.5, 0.1, 0.3, 0.7, 0.9))  # type: ignore[misc]
        token = next((token for token in proposed if not token.is_end), None)
        if token is None:
            break
        member.accept(token)
        written.append(token)
    return written


def _gap(one: Look, other: Look) -> float:
    return max(abs(a - b) for (_, a), (_, b) in zip(one, other, strict=True))


def _distance(one: Look, other: Look) -> str:
    return f"by up to {_gap(one, other):.2g} nats"
