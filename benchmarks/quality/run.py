"""A run of the experiment: which pool was asked what, and every outcome; kept in a file."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.quality.trial import Outcome


@dataclass(frozen=True, slots=True)
class Header:
    """What was asked of whom.

    Attributes:
        pool: The pool's name.
        variant: The world it was trained in.
        training_seed: What tells pools of one recipe apart.
        sampling_seed: Of the draws; means nothing at temperature 0.
        temperature: Of the sampling.
        tasks: "scenes" or "easy-vqa".
        split: "test" or "tuning".
    """

    pool: str
    variant: str
    training_seed: int
    sampling_seed: int
    temperature: float
    tasks: str
    split: str


@dataclass(frozen=True, slots=True)
class Run:
    """A header and its outcomes.

    Attributes:
        header: What was asked of whom.
        outcomes: What came of it.
        held_out: The shift between the members on held-out reference questions, as plain values.
    """

    header: Header
    outcomes: Sequence[Outcome]
    held_out: dict[str, Any] | None = None


def save(path: Path, runs: Iterable[Run]) -> None:
    """Write runs as compressed lines of JSON; a header begins each."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # No time stamp, so that the same runs are the same bytes.
    with gzip.GzipFile(path, "wb", mtime=0) as file:
        for run in runs:
            file.write(_line({"header": asdict(run.header), "held_out": run.held_out}))
            for outcome in run.outcomes:
                file.write(_line(outcome.to_dict()))


def load(path: Path) -> list[Run]:
    """Read what `save` wrote."""
    runs: list[tuple[Header, list[Outcome], dict[str, Any] | None]] = []
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            values = json.loads(line)
            if "header" in values:
                runs.append((Header(**values["header"]), [], values["held_out"]))
            else:
                runs[-1][1].append(Outcome.of(values))
    return [Run(*parts) for parts in runs]


def _line(values: dict[str, object]) -> bytes:
    return json.dumps(values, separators=(",", ":")).encode() + b"\n"
