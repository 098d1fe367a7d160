"""Relay: what an embedder asks questions with."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from macr_local import strategies
from macr_local.engine.library import build
from macr_local.errors import CalibrationError
from macr_local.origin import conditions_of
from macr_local.pool import Pool, Turn
from macr_local.prompt import Prompt
from macr_local.protocol import Member
from macr_local.relay.answer import Answer, collect
from macr_local.relay.confidence import Calibration
from macr_local.relay.events import Event, Started
from macr_local.settings import RelaySettings
from macr_local.strategies.prompts import Prompts, builtin

if TYPE_CHECKING:
    from types import TracebackType


class Relay:
    """Asks one pool, with one set of settings, any number of questions.

    Safe to share between threads; questions of one pool queue, whichever `Relay` asks them.

    Args:
        pool: An open pool.
        settings: How to relay; None takes the pool file's settings.
        strategy: "relay"; "single" and the like, one member alone (`strategies.ALONE`); "vote" and the like,
            a choice among all members' answers.
        leader: The member that answers alone; None is the pool's first.
        prompts: The words in which methods of several calls ask; None takes the package's own.

    Raises:
        ConfigError: No such strategy or member.

    Attributes:
        pool: The pool that is asked.
        settings: The settings in use.
    """

    def __init__(
        self,
        pool: Pool,
        settings: RelaySettings | None = None,
        *,
        strategy: str = "relay",
        leader: str | None = None,
        prompts: Prompts | None = None,
    ) -> None:
        self.pool = pool
        self.settings = _with_stops(settings if settings is not None else pool.spec.settings, pool)
        self.strategy = strategy
        self.leader = leader
        self.prompts = prompts or builtin()
        for name in (leader, None if self.settings.initiation == "best" else self.settings.initiation):
            if name is not None:
                pool.member(name)
        self._run = strategies.strategy(strategy)
        self._open: weakref.WeakSet[Stream] = weakref.WeakSet()
        self._lock = threading.Lock()

    def stream(self, prompt: Prompt | str) -> Stream:
        """Ask, and read the answer as it is written.

        Nothing happens before the first event is read; the pool is then held until the stream ends or is
        closed, so use it as a context manager where reading may stop early.
        """
        stream = Stream(self, prompt if isinstance(prompt, Prompt) else Prompt(prompt))
        with self._lock:
            self._open.add(stream)
        return stream

    def ask(self, prompt: Prompt | str) -> Answer:
        """Ask, and wait for the whole answer.

        Raises:
            CapacityError: The prompt does not fit into a member's context; nothing was computed.
            CalibrationError: A member has no calibration that fits it.
            EngineError: Every member failed.
            Cancelled: `cancel` was called while the question waited for the pool. Later than that, the answer
                so far is returned with ``finish_reason`` "cancelled".
        """
        with self.stream(prompt) as stream:
            return collect(stream, self.settings)

    def cancel(self) -> None:
        """From any thread: stop every question of this `Relay` that is open, within a second."""
        with self._lock:
            streams = tuple(self._open)
        for stream in streams:
            stream.cancel()

    def _calibration(self, member: Member) -> Calibration:
        return self.pool.calibration(member.name).at(self.settings.judged)

    def _calibration_notes(self, members: tuple[str, ...], prompt: Prompt) -> Iterator[str]:
        for name in members:
            with suppress(CalibrationError):  # where one is required, its lack was an error before
                conditions = conditions_of(self.pool.member(name).spec, prompt)
                yield from self.pool.calibration(name).notes(self.settings.sampling, build(), conditions)


def _with_stops(settings: RelaySettings, pool: Pool) -> RelaySettings:
    """The settings, with the stop strings that the members' own specifications add."""
    stop = dict.fromkeys((*settings.stop, *(text for member in pool.members for text in member.spec.stop)))
    return replace(settings, stop=tuple(stop))


class Stream(Iterator[Event]):
    """One question's events, in order. An iterator and a context manager.

    A stream that nobody holds any more gives its pool back.
    """

    def __init__(self, relay: Relay, prompt: Prompt) -> None:
        self._pool = relay.pool
        self._turn = Turn(threading.Event(), self)
        # The generator must not hold the stream, or an abandoned stream would never be collected.
        self._events = _answer(relay, prompt, self._turn)

    def __next__(self) -> Event:
        return next(self._events)

    def cancel(self) -> None:
        """From any thread: stop. The events end with `Finished`, reason "cancelled"."""
        self._turn.cancelled.set()
        self._pool.interrupt(self._turn)

    def close(self) -> None:
        """Give the pool back; events that were not read are lost. Safe to call twice.

        While another thread is reading, the question is cancelled and that thread reads its end.
        """
        try:
            self._events.close()
        except ValueError:  # the generator is running, on another thread
            self.cancel()

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _answer(relay: Relay, prompt: Prompt, turn: Turn) -> Generator[Event]:
    turn.thread = threading.get_ident()  # who reads the first event holds the pool
    with relay.pool.turn(turn):
        case = strategies.Case(
            members=relay.pool.members,
            calibration=relay._calibration,
            settings=relay.settings,
            leader=relay.leader,
            prompt=prompt,
            cancelled=turn.cancelled.is_set,
            prompts=relay.prompts,
        )
        for event in relay._run(case):
            if isinstance(event, Started):
                event = replace(event, notes=(*event.notes, *relay._calibration_notes(event.members, prompt)))
            yield event
