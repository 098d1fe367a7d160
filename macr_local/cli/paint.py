"""Painters: what a stream of relay events looks like, as text, as one JSON object, or as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, Protocol

from macr_local.cli.console import has_colours, paint, say, visible
from macr_local.relay.events import (
    Answered,
    Bid,
    BidOpened,
    Chosen,
    Event,
    Finished,
    MemberFailed,
    Relayed,
    Started,
    Text,
)

if TYPE_CHECKING:
    from macr_local.relay.answer import Answer

COLOURS = ("36", "33", "35", "32", "34", "31")
"""SGR codes of the members, in pool order."""
DIM = "2"


class Painter(Protocol):
    """Shows events as they come; `close` is called once, also after an error or an interrupt."""

    def status(self, text: str) -> None:
        """Say what is being done before the first event."""
        ...

    def warn(self, text: str) -> None:
        """Say on stderr what is not about the answer itself."""
        ...

    def event(self, event: Event) -> None:
        """Show one event."""
        ...

    def close(self) -> None:
        """Show what belongs after the last event."""
        ...


class TextPainter:
    """The answer as running text on ``out``, one colour per member; everything else on ``err``."""

    def __init__(
        self,
        out: IO[str],
        err: IO[str],
        members: Sequence[str],
        *,
        plain: bool = False,
        thoughts: bool = False,
        verbose: bool = False,
    ) -> None:
        self._out, self._err = out, err
        self._thoughts, self._verbose = thoughts, verbose
        codes = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(members)}
        self._on_out: Mapping[str, str] = codes if has_colours(out, plain=plain) else {}
        self._on_err: Mapping[str, str] = codes if has_colours(err, plain=plain) else {}
        self._status_line = err.isatty() and not plain
        self._status_shown = False
        self._legend_due = bool(self._on_out and self._on_err)
        self._one_terminal = out.isatty() and err.isatty()
        self._out_mid = self._err_mid = self._cursor_mid = False
        self._relays = self._handovers = 0
        self._finished: Finished | None = None

    def status(self, text: str) -> None:
        """Show what the program is doing before the first word, on a terminal only."""
        if self._status_line:
            self._err.write(f"\r\x1b[K{visible(text)}")
            self._err.flush()
            self._status_shown = True

    def warn(self, text: str) -> None:
        """Show a line on ``err``."""
        self._line(text)

    def event(self, event: Event) -> None:
        """Show one event."""
        match event:
            case Started():
                self._legend(event.members)
                self._notes(event.notes)
            case Text():
                self._text(event)
            case Relayed() if event.round > 0:
                self._relays += 1
                self._handovers += event.winner != event.leader
            case Answered():
                self.status(
                    f"{event.member} has {'answered' if not event.step else f'said: {event.step}'} ..."
                )
            case Chosen():
                self._line(f"macr-local: {reason(event)}")
            case MemberFailed():
                self._line(f"macr-local: warning: {event.member} dropped out: {event.error}")
            case Finished():
                self._finished = event
                self._notes(event.notes)
        if self._verbose and (line := describe(event)):
            self._line(f"macr-local: {line}", DIM)

    def close(self) -> None:
        """End the answer's line and say what it took."""
        self._clear_status()
        if self._err_mid:
            self._break_line()
        if self._out_mid:
            self._out.write("\n")
            self._out.flush()
            self._out_mid = self._cursor_mid = False
        if self._finished is not None:
            self._line(closing(self._finished, self._relays, self._handovers), DIM)

    def _notes(self, notes: Sequence[str]) -> None:
        for note in notes:
            self._line(f"macr-local: {note}")

    def _legend(self, members: Sequence[str]) -> None:
        if self._legend_due:
            legend = (paint(f"■ {visible(name)}", self._on_err.get(name, "0")) for name in members)
            self._write_line("  ".join(legend))

    def _text(self, event: Text) -> None:
        if event.thought and not self._thoughts:
            return
        text = visible(event.text)
        if not text:
            return
        self._clear_status()
        if event.thought:
            if not self._err_mid:
                self._break_line()
            code = f"{DIM};{self._on_err[event.member]}" if event.member in self._on_err else ""
            self._err.write(paint(text, code) if code else text)
            self._err.flush()
            self._cursor_mid = self._err_mid = not text.endswith("\n")
        else:
            if self._err_mid:
                self._break_line()
            code = self._on_out.get(event.member, "")
            self._out.write(paint(text, code) if code else text)
            self._out.flush()
            self._cursor_mid = self._out_mid = not text.endswith("\n")

    def _line(self, text: str, code: str = "") -> None:
        text = visible(text)
        self._write_line(paint(text, code) if code and self._on_err else text)

    def _write_line(self, text: str) -> None:
        self._clear_status()
        self._break_line()
        self._err.write(text + "\n")
        self._err.flush()

    def _break_line(self) -> None:
        """Begin a new line on ``err``: never through ``out``, which holds the answer and nothing else."""
        if self._err_mid or (self._one_terminal and self._cursor_mid):
            self._err.write("\n")
            self._err.flush()
            self._err_mid = self._cursor_mid = False

    def _clear_status(self) -> None:
        if self._status_shown:
            self._err.write("\r\x1b[K")
            self._err.flush()
            self._status_shown = False


class JsonPainter:
    """The whole answer as one JSON object, at the end."""

    def __init__(self, out: IO[str], collect: Callable[[Sequence[Event]], Answer]) -> None:
        self._out, self._collect = out, collect
        self._events: list[Event] = []

    def status(self, text: str) -> None:
        """Programs read this; there is nobody to tell."""

    def warn(self, text: str) -> None:
        """Say it on stderr; stdout is for programs."""
        say(visible(text), err=True)

    def event(self, event: Event) -> None:
        """Keep one event."""
        self._events.append(event)

    def close(self) -> None:
        """Write the object, unless the question failed before it was finished."""
        if self._events and isinstance(self._events[-1], Finished):
            json.dump(self._collect(self._events).to_dict(), self._out)
            self._out.write("\n")
            self._out.flush()


class LinesPainter:
    """Every event as one line of JSON, as it comes."""

    def __init__(self, out: IO[str], encode: Callable[[Event], Mapping[str, Any]]) -> None:
        self._out, self._encode = out, encode

    def status(self, text: str) -> None:
        """Programs read this; there is nobody to tell."""

    def warn(self, text: str) -> None:
        """Say it on stderr; stdout is for programs."""
        say(visible(text), err=True)

    def event(self, event: Event) -> None:
        """Write one event."""
        self._out.write(json.dumps(self._encode(event)) + "\n")
        self._out.flush()

    def close(self) -> None:
        """Nothing is left to write."""


def closing(finished: Finished, relays: int, handovers: int) -> str:
    """The line below an answer: what it took, and why it ended where it did not end on its own."""
    parts = [_count(finished.index, "token"), _count(relays, "relay"), _count(handovers, "handover")]
    ended = "" if finished.reason in ("end", "stop") else f" ({finished.reason})"
    return f"{', '.join(parts)}, {finished.seconds:.1f} s{ended}"


def reason(chosen: Chosen) -> str:
    """Why one of several answers is taken, in a line."""
    among = _count(chosen.among, "answer")
    why = f"the surest of {among}" if chosen.votes is None else f"{chosen.votes} of {among} agree"
    return f"{chosen.member} is chosen: {why}{', a tie that pool order decides' if chosen.tied else ''}"


def describe(event: Event) -> str:
    """One line about an event that changes who leads, for ``--verbose``; empty for the others."""
    match event:
        case Started():
            cells = (f"{m} {event.prompt_text[m]}+{event.prompt_image[m]}" for m in event.members)
            return f"prefilled (text + image cells): {', '.join(cells)}, {event.seconds:.2f} s"
        case BidOpened():
            z = "" if event.z is None else f", z {event.z:.2f}"
            return f"round {event.round} at token {event.index}: {event.reason}{z}"
        case Bid():
            text = event.text.decode("utf-8", "replace")
            if event.z is not None:
                return f"  {event.member} bids z {event.z:.2f}: {text!r}"
            why = event.note or (f"pruned at z <= {event.bound:.2f}" if event.bound is not None else "no bid")
            return f"  {event.member}: {why}"
        case Answered():
            z = "" if event.z is None else f" (z {event.z:.2f})"
            if event.step and event.final is None:
                return f"{event.member}, {event.step}: {event.text.strip()!r}"
            step = f" ({event.step})" if event.step else ""
            return f"{event.member} answers{step}{z}: {event.final or 'nothing'}"
        case Relayed():
            return f"round {event.round}: {event.winner} leads"
        case _:
            return ""


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
