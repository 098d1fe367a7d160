"""Events as JSON lines, and back: a relay that can be looked at again without any model.

The first line says what was asked and how; each further line is one event. Bytes that are valid UTF-8 stand
as a string, others as ``{"base64": ...}``; a number that is not finite, which JSON does not know, stands as
``{"float": "inf"}``. Floats come back bit for bit. Only `Started` and `Finished` hold
times, so two runs of the same question differ in nothing else.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from os import PathLike
from pathlib import Path
from types import TracebackType, UnionType
from typing import Any, BinaryIO, NoReturn, Union, get_args, get_origin, get_type_hints

from macr_local.errors import DataError, MacrError
from macr_local.relay import events
from macr_local.relay.confidence import Calibration
from macr_local.relay.events import Event
from macr_local.settings import RelaySettings

VERSION = 1

_TYPES: dict[str, type[Any]] = {kind.__name__: kind for kind in get_args(Event)}

_DAMAGE = (MacrError, KeyError, TypeError, ValueError, AttributeError)
"""What comes of values that are not what they should be."""


@dataclass(frozen=True, slots=True)
class TraceHeader:
    """What was asked of whom, and how."""

    settings: RelaySettings
    members: tuple[str, ...]
    """Names, in pool order."""
    question: str
    calibrations: dict[str, Calibration] = field(default_factory=dict)
    images: tuple[str, ...] = ()
    """sha256 of each image's upright pixels, in hex."""
    system: str | None = None
    think: bool | None = None
    versions: dict[str, str] = field(default_factory=dict)
    """Of this package and of what it ran on, by name."""


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace that was read; iterates over its events."""

    header: TraceHeader
    events: tuple[Event, ...]

    @property
    def complete(self) -> bool:
        """Whether the answer was finished; otherwise the run was cut short."""
        return bool(self.events) and isinstance(self.events[-1], events.Finished)

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)


class TraceWriter:
    """Writes one question's trace, line by line; a crash loses at most the line being written.

    Args:
        target: A path, which is created or overwritten and closed at the end; or an open binary file.
        header: The first line.
    """

    def __init__(self, target: str | PathLike[str] | BinaryIO, header: TraceHeader) -> None:
        self._file: BinaryIO
        self._owns = False
        if isinstance(target, (str, PathLike)):
            # Without a buffer, what a full disk has refused does not come again when the file is closed.
            self._file, self._owns = open(target, "wb", buffering=0), True  # noqa: SIM115
        else:
            self._file = target
        self._line({"macr_trace": VERSION, **_plain_fields(header)})

    def write(self, event: Event) -> None:
        """Append one event and hand it to the operating system."""
        self._line(encode(event))

    def close(self) -> None:
        """Close the file, if it was opened here."""
        if self._owns:
            self._file.close()

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _line(self, record: dict[str, Any]) -> None:
        text = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        # A file name or a question from the command line may hold lone surrogates.
        rest = memoryview(text.encode("utf-8", "surrogatepass") + b"\n")
        while rest:  # an unbuffered file may take a part
            rest = rest[self._file.write(rest) :]
        self._file.flush()


def read_trace(path: str | PathLike[str]) -> Trace:
    """Read a trace. A last line that was torn by a crash is left out.

    Raises:
        DataError: The file cannot be read, is no trace, is of a later version, or has a damaged line.
    """
    name = str(path)
    try:
        *lines, last = Path(path).read_bytes().split(b"\n")
    except OSError as error:
        raise DataError(f"{name}: {error.strerror or error}") from error
    if last and (lines == [] or _parse(last) is not None):
        lines.append(last)  # whole, but for its newline
    header = _parse(lines[0]) if lines else None
    if not isinstance(header, dict) or "macr_trace" not in header:
        raise DataError(f"{name} is not a trace of macr-local", "Give a file written with --trace")
    if (version := header.pop("macr_trace")) != VERSION:
        raise DataError(
            f"{name} is a trace of version {version!r}, and this macr-local reads version {VERSION}",
            "Read it with the macr-local that wrote it, or with a newer one",
        )
    try:
        head = _restore(header, TraceHeader)
    except _DAMAGE as error:
        raise DataError(f"{name}, line 1 is damaged ({error})") from error
    happened = []
    for number, line in enumerate(lines[1:], start=2):
        try:
            happened.append(decode(_loads(line)))
        except _DAMAGE as error:
            raise DataError(f"{name}, line {number} is damaged ({error})") from error
    return Trace(head, tuple(happened))


def encode(event: Event) -> dict[str, Any]:
    """An event as plain values, its type under ``"type"``."""
    return {"type": type(event).__name__, **_plain_fields(event)}


def decode(record: dict[str, Any]) -> Event:
    """An event from `encode`'s values, equal to the original.

    Raises:
        DataError: The type is not known.
    """
    if record.get("type") not in _TYPES:
        raise DataError(f"There is no event of type {record.get('type')!r}")
    kind = _TYPES[record["type"]]
    event: Event = _restore({key: value for key, value in record.items() if key != "type"}, kind)
    return event


def _loads(line: bytes) -> Any:
    return json.loads(line.decode("utf-8", "surrogatepass"), parse_constant=_refuse)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _parse(line: bytes) -> Any:
    try:
        return _loads(line)
    except ValueError:
        return None


def _plain_fields(record: Any) -> dict[str, Any]:
    return {f.name: _plain(getattr(record, f.name)) for f in fields(record)}


def _plain(value: Any) -> Any:
    """A value as JSON knows it."""
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if is_dataclass(value) and not isinstance(value, type):
        return _plain_fields(value)
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    return get_type_hints(kind)


def _restore(value: Any, hint: Any) -> Any:
    """A value from JSON, as the type that its field is declared with."""
    if hint is bytes:
        return base64.b64decode(value["base64"]) if isinstance(value, dict) else value.encode("utf-8")
    if hint is float and isinstance(value, dict):
        return float(value["float"])
    if isinstance(hint, type) and is_dataclass(hint):
        hints = _hints(hint)
        return hint(**{key: _restore(item, hints[key]) for key, item in value.items()})
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is tuple:
        return tuple(_restore(item, arguments[0]) for item in value)
    if origin is dict:
        return {key: _restore(item, arguments[1]) for key, item in value.items()}
    if origin in (Union, UnionType) and value is not None:
        return _restore(value, next(kind for kind in arguments if kind is not type(None)))
    return value
