"""A method by name: which strategy answers, who leads, and what is set otherwise than in the pool file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from macr_local.errors import ConfigError
from macr_local.settings import RelaySettings
from macr_local.strategies import ALONE, STRATEGIES

Change = Callable[[RelaySettings, str | None], RelaySettings]


@dataclass(frozen=True, slots=True)
class Method:
    """One row of a table.

    Attributes:
        name: As users write it, with its member: "macr", "cot:tiny-qwen3vl".
        strategy: A name in `macr_local.strategies`.
        member: Who answers, or leads first; None where nobody is named.
        change: What the method sets otherwise.
    """

    name: str
    strategy: str
    member: str | None
    change: Change

    @property
    def leader(self) -> str | None:
        """The member of a strategy that one member carries out."""
        return self.member if self.strategy in ALONE else None

    def settings(self, settings: RelaySettings) -> RelaySettings:
        """A pool's settings as this method needs them."""
        return self.change(settings, self.member)


def _as_it_is(settings: RelaySettings, member: str | None) -> RelaySettings:
    return settings


def _first(settings: RelaySettings, member: str | None) -> RelaySettings:
    return replace(settings, initiation=member or settings.initiation)


_RELAYS: Mapping[str, tuple[Change, bool]] = {
    "macr": (_as_it_is, False),
    "macr-fi": (_first, True),
    "macr-fs": (lambda settings, _: replace(settings, selection="order"), False),
    "macr-ft": (lambda settings, _: replace(settings, trigger="sentence"), False),
}
"""The relay and the paper's ablations of it (Section 3.3), and whether a member must be named."""


ALIASES = {"io": "single", "relay": "macr", "mv": "vote-paper", "rph": "roleplay", "h-dmad": "hdmad"}
"""The paper's names for methods that are called otherwise here."""


def methods(names: Iterable[str], members: Sequence[str]) -> tuple[Method, ...]:
    """Methods by name, in order, each once.

    A method of one member is followed by a colon and the member's name, or by nothing for each member of the
    pool in turn.

    Raises:
        ConfigError: There is no such method or member.
    """
    found: dict[str, Method] = {}
    for written in names:
        name, _, member = written.partition(":")
        name = ALIASES.get(name, name)
        if name not in known():
            raise ConfigError(f'There is no method "{name}"', f"Use one of {', '.join(known())}")
        if member and member not in members:
            raise ConfigError(f'The pool has no member "{member}"', f"It has: {', '.join(members)}")
        for one in _each(name, member, members):
            found.setdefault(one.name, one)
    return tuple(found.values())


def known() -> tuple[str, ...]:
    """The names of all methods."""
    return (*(name for name in STRATEGIES if name != "relay"), *_RELAYS)


def _each(name: str, member: str, members: Sequence[str]) -> Iterable[Method]:
    change, needs_member = _RELAYS.get(name, (_as_it_is, name in ALONE))
    strategy = "relay" if name in _RELAYS else name
    if not needs_member:
        if member:
            raise ConfigError(f'"{name}:{member}" names a member', f'Write "{name}": all members take part')
        return (Method(name, strategy, None, change),)
    return (Method(f"{name}:{one}", strategy, one, change) for one in ([member] if member else members))
