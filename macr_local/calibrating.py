"""Calibrating: every member answers the reference questions alone, and its log-probabilities are kept."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import numpy as np

from macr_local.calibration import MemberCalibration, Origin
from macr_local.engine.library import build
from macr_local.errors import CalibrationError, Cancelled, DataError, MacrError
from macr_local.pool import Pool
from macr_local.prompt import Prompt
from macr_local.references import Reference, ReferenceSet
from macr_local.relay.events import Finished, MemberFailed, Token
from macr_local.session import Relay
from macr_local.settings import RelaySettings

Progress = Callable[[str, int, int], None]
"""Called with a member's name, how many questions it has done, and how many there are."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What calibrating one member gave.

    Attributes:
        calibration: As saved.
        problems: Rows that could not be used: where, and why.
        resumed: Questions that an earlier run had answered already.
    """

    calibration: MemberCalibration
    problems: tuple[tuple[str, str], ...]
    resumed: int


def calibrate(
    pool: Pool,
    references: ReferenceSet,
    folder: Path,
    settings: RelaySettings,
    *,
    restart: bool = False,
    progress: Progress = lambda member, done, total: None,
) -> tuple[Outcome, ...]:
    """Calibrate every member of a pool.

    Each member answers alone, by the strategy "single": the same prompt, sampler and one token a decode as
    at run time. Each question draws from its own seed, derived from (settings.seed, its key), so neither
    order nor resumption changes a number. Every answer is on the disk before the next is asked; run the same
    again after an interruption, and nothing is asked twice.

    Args:
        pool: An open pool.
        references: The reference questions; those with a problem are passed over and reported.
        folder: Where ``NAME.json`` and ``NAME.npz`` go, and the journal while it runs.
        settings: `sampling`, `max_tokens`, `stop` and `seed` are used.
        restart: Drop what an interrupted run has left.
        progress: Told after every question.

    Raises:
        CalibrationError: An interrupted run with other settings lies there, or the folder cannot be written.
        DataError: No question could be answered.
        Cancelled: The pool was interrupted.
    """
    keyed = [(reference, _key(reference)) for reference in references.items]
    digest = hashlib.sha256("\n".join(key for _, key in keyed).encode()).hexdigest()
    outcomes = []
    for member in pool.members:
        origin = Origin(
            member=member.name,
            fingerprint=member.fingerprint,
            sampling=settings.sampling,
            max_tokens=settings.max_tokens,
            seed=settings.seed,
            reference=references.name,
            reference_sha256=digest,
            questions=0,
            llama_cpp=build(),
            date="",
        )
        outcomes.append(_calibrate(pool, origin, keyed, folder, settings, restart, progress))
    return tuple(outcomes)


def _key(reference: Reference) -> str:
    return reference.key() if not reference.problem else f"problem {reference.where}"


def _calibrate(
    pool: Pool,
    origin: Origin,
    keyed: Sequence[tuple[Reference, str]],
    folder: Path,
    settings: RelaySettings,
    restart: bool,
    progress: Progress,
) -> Outcome:
    with _journal(folder, origin, settings, restart) as journal:
        resumed = len(journal.answers)
        for done, (reference, key) in enumerate(keyed, 1):
            if key not in journal.answers and key not in journal.problems:
                journal.write(key, reference.where, _answer(pool, origin.member, reference, key, settings))
            progress(origin.member, done, len(keyed))
        order = dict.fromkeys(key for _, key in keyed if key in journal.answers)
        if not order:
            where, why = next(iter(journal.problems.values()), ("", "there is none"))
            raise DataError(
                f"{origin.member} could answer none of the {len(keyed)} reference questions ({where}: {why})",
                "Mend the reference set, or use another",
            )
        date = datetime.now(UTC).isoformat(timespec="seconds")
        answers = [np.array(journal.answers[key]) for key in order]
        finished = replace(origin, questions=len(order), date=date)
        calibration = MemberCalibration(finished, list(order), answers)
        calibration.save(folder)
        problems = tuple(journal.problems.values())
        journal.finish()
    return Outcome(calibration, problems, resumed)


def _answer(
    pool: Pool, member: str, reference: Reference, key: str, settings: RelaySettings
) -> list[float] | str:
    """The log-probabilities of a member's whole answer, the end token's included; or why there are none."""
    if reference.problem:
        return reference.problem
    seed = int.from_bytes(hashlib.sha256(f"{settings.seed} {key}".encode()).digest()[:8], "big")
    relay = Relay(pool, replace(settings, seed=seed), strategy="single", leader=member)
    logprobs: list[float] = []
    try:
        with relay.stream(Prompt.of(reference.question, list(reference.images))) as stream:
            for event in stream:
                if isinstance(event, Token):
                    logprobs.append(event.logprob)
                elif isinstance(event, MemberFailed):
                    return event.error
                elif isinstance(event, Finished) and event.reason == "cancelled":
                    raise Cancelled("Calibrating was interrupted; run the same command again to go on")
    except Cancelled:
        raise
    except MacrError as error:
        return error.found
    return logprobs or "the answer is empty"


class _Journal:
    """What one member has answered so far, one JSON line per question, synced to the disk line by line."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self.answers: dict[str, list[float]] = {}
        self.problems: dict[str, tuple[str, str]] = {}
        self._path, self._file = path, file

    def take(self, line: bytes) -> None:
        """Read back one line.

        Raises:
            ValueError: It is not whole.
        """
        row = json.loads(line)
        if "problem" in row:
            self.problems[row["key"]] = (row["where"], row["problem"])
        else:
            self.answers[row["key"]] = [float(value) for value in row["logprobs"]]

    def write(self, key: str, where: str, answer: list[float] | str) -> None:
        """Add one question."""
        if isinstance(answer, str):
            self.problems[key] = (where, answer)
            row = {"key": key, "where": where, "problem": answer}
        else:
            self.answers[key] = answer
            row = {"key": key, "logprobs": answer}  # type: ignore[dict-item]
        self._file.write(json.dumps(row).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def finish(self) -> None:
        """The calibration is saved, so the journal has done its work."""
        self._path.unlink(missing_ok=True)


@contextmanager
def _journal(folder: Path, origin: Origin, settings: RelaySettings, restart: bool) -> Iterator[_Journal]:
    path = folder / f"{origin.member}.partial.jsonl"
    run = {**asdict(origin), "stop": settings.stop}
    head = json.dumps({"macr_calibrating": hashlib.sha256(json.dumps(run).encode()).hexdigest()}).encode()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if restart:
            path.unlink(missing_ok=True)
        with path.open("ab+") as file:
            file.seek(0)
            lines = file.read().split(b"\n")
            # A kill can tear the last line; it is cut off, and its question is asked again.
            torn = lines.pop()
            if torn:
                file.truncate(file.tell() - len(torn))
            journal = _Journal(path, file)
            if not lines:
                file.write(head + b"\n")
            elif lines[0] != head:
                raise CalibrationError(
                    f"{path} is an interrupted run with other questions, settings or model files",
                    "Run that command again to finish it, or add --restart to drop it",
                )
            try:
                for line in lines[1:]:
                    journal.take(line)
            except (ValueError, KeyError, TypeError):
                raise CalibrationError(f"{path} is damaged", "Add --restart to begin anew") from None
            yield journal
    except OSError as error:
        raise CalibrationError(
            f"{error.filename or path} cannot be written ({error.strerror})", "Give another folder with --out"
        ) from None
