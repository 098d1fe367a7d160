"""Ask scripted members, and look at what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from scripted import Script, ScriptedMember, calibrated, says

from macr_local.prompt import Prompt
from macr_local.relay.answer import Answer, collect
from macr_local.relay.controller import Controller
from macr_local.relay.events import Event
from macr_local.settings import RelaySettings

E = TypeVar("E")

PROMPT = Prompt("how many red shapes are there?")


def controller(
    *members: ScriptedMember,
    cancelled: Callable[[], bool] = lambda: False,
    clock: Any = lambda: 0.0,
    **chosen: Any,
) -> Controller:
    """A controller; every mean of -0.5 is a z of 0, and 0.5 nats are one sigma."""
    settings = RelaySettings(**{"window": 2, "max_tokens": 12, **chosen})
    return Controller(members, calibrated(*members, window=settings.judged), settings, cancelled, clock=clock)


def ask(*members: ScriptedMember, **chosen: Any) -> list[Event]:
    """All events of one question."""
    try:
        return list(controller(*members, **chosen).run(PROMPT))
    finally:
        for member in members:
            member.close()


def answer(events: Iterable[Event]) -> Answer:
    return collect(events, RelaySettings())


def only(events: Iterable[Event], kind: type[E]) -> list[E]:
    return [event for event in events if isinstance(event, kind)]


def one(events: Iterable[Event], kind: type[E]) -> E:
    (found,) = only(events, kind)
    return found


def always(text: str, logprob: float) -> Script:
    """Writes the same token for ever."""
    return says(lambda _: (text, logprob))


def member(name: str, script: Script, **more: Any) -> ScriptedMember:
    return ScriptedMember(name, script, **more)
