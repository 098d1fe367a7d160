"""A member's own history of confidence: the log-probabilities it wrote, and mu and sigma for any window.

One pair of files per member: ``NAME.npz`` holds every reference answer's log-probabilities, so that mu and
sigma follow for any w without new inference; ``NAME.json`` says what they were made with, and mu and sigma
for the usual windows, for people to read.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from macr_local.errors import CalibrationError, ConfigError
from macr_local.origin import Origin
from macr_local.protocol import Fingerprint
from macr_local.relay.confidence import Calibration
from macr_local.settings import Sampling

FORMAT = 1
WINDOWS = (1, 2, 3, 4, 8, 16, 32, 64)
"""Windows whose mu and sigma the JSON file lists; any other is computed when it is asked for."""
FEWEST_WINDOWS = 30
"""Fewer windows than this give no sigma worth dividing by."""

_MEND = "macr-local calibrate REFERENCE"


@dataclass(frozen=True, slots=True)
class Statistics:
    """mu and sigma of one member for one window (Section 2.1), and what they rest on.

    Attributes:
        mu: Mean over all overlapping windows of all questions, in nats; long answers weigh more.
        sigma: Their standard deviation (ddof = 1).
        windows: How many windows there are.
        questions: How many answers are at least w tokens long.
        mu_by_question: Mean over questions of each one's mean window: every question weighs the same.
        sigma_by_question: Standard deviation of those (ddof = 1); None for a single question.
    """

    mu: float
    sigma: float
    windows: int
    questions: int
    mu_by_question: float
    sigma_by_question: float | None


class MemberCalibration:
    """The log-probabilities of one member's reference answers.

    Attributes:
        origin: What they were made with.
        keys: One key per question.
        logprobs: One array per question, float64, (tokens,), natural log, the end token included.
        mend: The command that makes the calibration anew.
    """

    def __init__(
        self,
        origin: Origin,
        keys: Sequence[str],
        logprobs: Sequence[NDArray[np.float64]],
        *,
        mend: str = _MEND,
    ) -> None:
        self.origin = origin
        self.keys = tuple(keys)
        self.logprobs = tuple(logprobs)
        self.mend = mend

    # Statistics.

    def windows(self, window: int) -> list[NDArray[np.float64]]:
        """Means of every run of w log-probabilities, (tokens - w + 1,) per question that is long enough."""
        long_enough = (answer for answer in self.logprobs if len(answer) >= window)
        return [sliding_window_view(answer, window).mean(axis=1) for answer in long_enough]

    def statistics(self, window: int) -> Statistics | None:
        """Mu and sigma for windows of ``window`` tokens; None without two windows."""
        by_question = self.windows(window)
        pooled = np.concatenate(by_question) if by_question else np.empty(0)
        if len(pooled) < 2:
            return None
        means = np.array([means.mean() for means in by_question])
        return Statistics(
            mu=float(pooled.mean()),
            sigma=float(pooled.std(ddof=1)),
            windows=len(pooled),
            questions=len(by_question),
            mu_by_question=float(means.mean()),
            sigma_by_question=float(means.std(ddof=1)) if len(means) > 1 else None,
        )

    def at(self, window: int) -> Calibration:
        """Mu and sigma for windows of ``window`` tokens, as the relay uses them.

        Raises:
            CalibrationError: Too few windows of that length, or all alike.
        """
        found = self.statistics(window)
        if found is None or not self._has_sigma(found):
            count, answers = (found.windows, found.questions) if found is not None else (0, 0)
            smaller = window > 1 and self._has_sigma(self.statistics(1))
            raise CalibrationError(
                f"The calibration of {self.origin.member} has {count} windows of {window} tokens, from "
                f"{answers} of {len(self.logprobs)} answers, which gives no sigma",
                ("Use a smaller --window, or calibrate" if smaller else "Calibrate")
                + f" on more questions: {self.mend}",
            )
        return Calibration(found.mu, found.sigma, window)

    # Agreement with what is loaded.

    def check(self, loaded: Fingerprint) -> None:
        """Refuse a calibration that was made with other files.

        Raises:
            CalibrationError: Names what differs.
        """
        stored = asdict(self.origin.fingerprint)
        differs = [part for part, value in asdict(loaded).items() if stored[part] != value]
        if differs:
            raise CalibrationError(
                f"The calibration of {self.origin.member} was made with another {' and '.join(differs)}",
                f"Calibrate again: {self.mend}",
            )

    def notes(
        self, sampling: Sampling, build: str, conditions: Mapping[str, Any] | None = None
    ) -> tuple[str, ...]:
        """What differs without making it useless: sampling, conditions, the build of llama.cpp.

        Args:
            sampling: How tokens are drawn now.
            build: What computes now (`engine.library.build`).
            conditions: As `conditions_of` gives them; None does not compare them.
        """
        name, found = self.origin.member, []
        if changed := self.origin.changes(sampling, conditions):
            found.append(f"{name} was calibrated with {', '.join(changed)}: its z may be shifted")
        if build != self.origin.llama_cpp:
            found.append(f"{name} was calibrated with {self.origin.llama_cpp}, this is {build}")
        return tuple(found)

    @staticmethod
    def _has_sigma(found: Statistics | None) -> bool:
        enough = found is not None and found.windows >= FEWEST_WINDOWS and found.questions > 1
        return found is not None and enough and found.sigma > 0

    # Files.

    @classmethod
    def load(cls, folder: Path, member: str, *, mend: str = _MEND) -> MemberCalibration:
        """Read a member's pair of files.

        Raises:
            CalibrationError: A file is missing, damaged or of another pair.
        """
        where = folder / f"{member}.json"
        try:
            text, packed = where.read_bytes(), (folder / f"{member}.npz").read_bytes()
        except FileNotFoundError as error:
            raise CalibrationError(
                f"{member} has no calibration ({error.filename} is not there)", f"Calibrate: {mend}"
            ) from None
        except OSError as error:
            found = f"{where} cannot be read ({error.strerror})"
            raise CalibrationError(found, "Check its permissions") from None
        try:
            record = json.loads(text)
            if record["macr_calibration"] != FORMAT:
                raise CalibrationError(
                    f"{where} has format {record['macr_calibration']}, this version reads {FORMAT}",
                    f"Calibrate again: {mend}",
                )
            if record["arrays_sha256"] != hashlib.sha256(packed).hexdigest():
                raise CalibrationError(
                    f"{member}.npz in {folder} is not the file that {member}.json belongs to",
                    f"Restore both together, or calibrate again: {mend}",
                )
            origin = record["origin"]
            origin["fingerprint"] = Fingerprint(**origin["fingerprint"])
            origin["sampling"] = Sampling(**origin["sampling"])
            origin["conditions"] = dict(origin["conditions"])
            keys, logprobs = _unpack(packed)
            return cls(Origin(**origin), keys, logprobs, mend=mend)
        except (ValueError, KeyError, TypeError, ConfigError, zipfile.BadZipFile) as error:
            raise CalibrationError(
                f"{where} is damaged ({type(error).__name__}: {str(error).rstrip('.')})",
                f"Calibrate again: {mend}",
            ) from None

    def save(self, folder: Path) -> None:
        """Write the pair of files; a reader never sees half of one.

        Raises:
            CalibrationError: The folder cannot be written.
        """
        packed = _pack(self.keys, self.logprobs)
        statistics = {window: self.statistics(window) for window in WINDOWS}
        record: Mapping[str, Any] = {
            "macr_calibration": FORMAT,
            "origin": asdict(self.origin),
            "windows": {str(w): asdict(found) for w, found in statistics.items() if found is not None},
            "arrays_sha256": hashlib.sha256(packed).hexdigest(),
        }
        text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
        name = self.origin.member
        try:
            folder.mkdir(parents=True, exist_ok=True)
            replace_file(folder / f"{name}.npz", packed)
            replace_file(folder / f"{name}.json", text.encode())
        except OSError as error:
            raise CalibrationError(
                f"The calibration of {name} cannot be written to {folder} ({error.strerror})",
                "Give another folder with --out",
            ) from None


def replace_file(path: Path, data: bytes) -> None:
    """Put a whole file in place of another in one step.

    Raises:
        OSError: It cannot be written; the old file is as it was.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    try:
        with draft.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def _pack(keys: Sequence[str], logprobs: Sequence[NDArray[np.float64]]) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        keys=np.array(keys, dtype=np.str_),
        lengths=np.array([len(answer) for answer in logprobs], dtype=np.int32),
        logprobs=np.concatenate(logprobs) if logprobs else np.empty(0),
    )
    return buffer.getvalue()


def _unpack(packed: bytes) -> tuple[list[str], list[NDArray[np.float64]]]:
    with np.load(io.BytesIO(packed), allow_pickle=False) as arrays:
        keys, lengths, values = arrays["keys"], arrays["lengths"], arrays["logprobs"]
    if len(keys) != len(lengths) or int(lengths.sum()) != len(values) or (lengths < 1).any():
        raise ValueError("its arrays do not belong together")
    if not (np.isfinite(values).all() and (values <= 0).all()):
        raise ValueError("a log-probability is not one")
    ends = np.cumsum(lengths)
    return [str(key) for key in keys], [
        values[end - length : end].astype(np.float64) for end, length in zip(ends, lengths, strict=True)
    ]
