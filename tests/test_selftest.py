"""The self-test passes where all is well, and each check fails for its own fault."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import pytest

from macr_local import EngineError, Pool, Prompt
from macr_local.engine.member import LlamaMember
from macr_local.protocol import Draw, Token
from macr_local.selftest import check_member, golden_images
from macr_local.settings import Sampling


class Faulty:
    """A sound member with one fault."""

    def __init__(self, member: LlamaMember) -> None:
        self._member = member

    def __getattr__(self, name: str) -> Any:
        return getattr(self._member, name)


class KeepsLostBids(Faulty):
    def drop(self) -> None:
        self._member.adopt()


class LosesKeptBids(Faulty):
    def adopt(self) -> None:
        self._member.drop()


class Blind(Faulty):
    def begin(self, prompt: Prompt, sampling: Sampling, cancelled: Callable[[], bool]) -> None:
        self._member.begin(Prompt(prompt.question, golden_images()[:1]), sampling, cancelled)


class Forgetful(Faulty):
    """Sees something else each time, as with a cache that is keyed wrongly."""

    seen = 0

    def begin(self, prompt: Prompt, sampling: Sampling, cancelled: Callable[[], bool]) -> None:
        self.seen += 1
        self._member.begin(Prompt(prompt.question + "!" * self.seen, prompt.images), sampling, cancelled)


class Damaged(Faulty):
    def propose(self, draw: Draw, forbid: Collection[bytes] = (), sampling: Sampling | None = None) -> Token:
        raise EngineError("the logits are not finite")


def failed(member: Any, *, sees_images: bool = True) -> dict[str, str]:
    return {
        check.name: check.detail for check in check_member(member, sees_images=sees_images) if not check.ok
    }


def test_every_embedded_member_passes(tiny: Pool) -> None:
    for member in tiny.members:
        checks = list(check_member(member, sees_images=True))
        assert [check.name for check in checks] == ["prefill", "images", "drop", "adopt", "speed"]
        assert [check for check in checks if not check.ok] == []
        assert "bit for bit" in checks[2].detail
        assert {check.member for check in checks} == {member.name}


def test_a_text_model_passes_without_images(gemma: LlamaMember) -> None:
    checks = list(check_member(gemma, sees_images=False))
    assert [check.name for check in checks] == ["prefill", "drop", "adopt", "speed"]
    assert [check for check in checks if not check.ok] == []


@pytest.mark.parametrize(
    ("fault", "checks", "says"),
    [
        (KeepsLostBids, {"drop"}, "a dropped bid leaves a trace"),
        (LosesKeptBids, {"adopt"}, "not the same words written directly"),
        (Blind, {"images"}, "does not see them"),
        (Forgetful, {"images", "adopt"}, "other logits the second time"),
        (Damaged, {"prefill", "images", "drop", "adopt", "speed"}, "not finite"),
    ],
)
def test_a_fault_is_found_by_its_check(tiny: Pool, fault: type[Faulty], checks: set[str], says: str) -> None:
    found = failed(fault(tiny.members[0]))
    assert set(found) == checks
    assert any(says in detail for detail in found.values())
