"""Calibrating: every member answers the reference questions alone, and its log-probabilities are kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from macr_local.calibration import MemberCalibration
from macr_local.engine.library import build
from macr_local.errors import CalibrationError, Cancelled, DataError, MacrError
from macr_local.journal import Journal
from macr_local.lock import alone_in
from macr_local.origin import Origin, conditions_of
from macr_local.pool import Pool
from macr_local.prompt import Prompt
from macr_local.references import Reference, ReferenceSet
from macr_local.relay.events import Finished, MemberFailed, Token
from macr_local.session import Relay
from macr_local.settings import RelaySettings

Progress = Callable[[str, int, int], None]
"""Called with a member's name, how many questions it has done, and how many there are."""
MOST_PROBLEMS = 20
"""A run stops when more questions than this, and more than half of those tried, could not be used."""


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
    order nor resumption changes a number. Every answer is on the disk before the next is asked, and stays
    there until the last member is done: run the same again after an interruption, and nothing that was
    answered is asked twice.

    Args:
        pool: An open pool.
        references: The reference questions; those with a problem are passed over and reported.
        folder: Where ``NAME.json`` and ``NAME.npz`` go, and the journals while it runs.
        settings: `sampling`, `max_tokens`, `stop` and `seed` are used.
        restart: Drop what an interrupted run has left.
        progress: Told after every question.

    Raises:
        CalibrationError: An interrupted run with other settings lies there or another run is going on, or the
            folder cannot be written.
        DataError: No question could be answered, or most could not.
        Cancelled: The pool was interrupted.
    """
    with alone_in(folder, doing="calibrating", error=CalibrationError):
        return _calibrate_all(pool, references, folder, settings, restart=restart, progress=progress)


def _calibrate_all(
    pool: Pool,
    references: ReferenceSet,
    folder: Path,
    settings: RelaySettings,
    *,
    restart: bool,
    progress: Progress,
) -> tuple[Outcome, ...]:
    keyed = [_keyed(reference) for reference in references.items]
    usable = "\n".join(key for reference, key in keyed if not reference.problem)
    # What a relay would decide is not asked here, and no answer may be cut by the clock.
    settings = replace(settings, initiation="best", deadline=None)
    outcomes, journals = [], []
    for member in pool.members:
        origin = Origin(
            member=member.name,
            fingerprint=member.fingerprint,
            sampling=settings.sampling,
            conditions=conditions_of(member.spec),
            max_tokens=settings.max_tokens,
            seed=settings.seed,
            reference=references.name,
            reference_sha256=hashlib.sha256(usable.encode()).hexdigest(),
            reference_questions=len(keyed),
            questions=0,
            llama_cpp=build(),
            date="",
        )
        run = json.dumps([asdict(origin), Relay(pool, settings).settings.stop])
        digest = hashlib.sha256(run.encode()).hexdigest()
        with Journal.open(folder / f"{member.name}.partial.jsonl", digest, restart=restart) as journal:
            outcomes.append(_calibrate(pool, origin, keyed, folder, settings, journal, progress))
        journals.append(journal)
    for journal in journals:
        journal.remove()
    return tuple(outcomes)


def _keyed(reference: Reference) -> tuple[Reference, str]:
    """A reference with its key; one whose image cannot be read becomes a problem."""
    if not reference.problem:
        try:
            return reference, reference.key()
        except OSError as error:
            reference = replace(reference, problem=f"{error.filename} cannot be read ({error.strerror})")
    return reference, ""


def _calibrate(
    pool: Pool,
    origin: Origin,
    keyed: Sequence[tuple[Reference, str]],
    folder: Path,
    settings: RelaySettings,
    journal: Journal,
    progress: Progress,
) -> Outcome:
    resumed = len(journal.answers)
    problems: list[tuple[str, str]] = []
    for done, (reference, key) in enumerate(keyed, 1):
        if key not in journal.answers:
            answer = _answer(pool, origin.member, reference, key, settings)
            if isinstance(answer, str):
                problems.append((reference.where, answer))
                _stop_if_most_fail(origin.member, problems, done)
            else:
                journal.write(key, answer)
        progress(origin.member, done, len(keyed))
    order = tuple(dict.fromkeys(key for _, key in keyed if key in journal.answers))
    if not order:
        where, why = problems[0] if problems else ("", "there is none")
        raise DataError(
            f"{origin.member} could answer none of the {len(keyed)} reference questions ({where}: {why})",
            "Mend the reference set, or use another",
        )
    date = datetime.now(UTC).isoformat(timespec="seconds")
    answers = [np.array(journal.answers[key]) for key in order]
    calibration = MemberCalibration(replace(origin, questions=len(order), date=date), order, answers)
    calibration.save(folder)
    return Outcome(calibration, tuple(problems), resumed)


def _stop_if_most_fail(member: str, problems: Sequence[tuple[str, str]], done: int) -> None:
    if len(problems) > MOST_PROBLEMS and 2 * len(problems) > done:
        where, why = problems[-1]
        raise DataError(
            f"{member} could not use {len(problems)} of the first {done} reference questions, such as "
            f"{where}: {why}",
            "Mend the reference set, or use another",
        )


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
