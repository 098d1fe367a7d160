"""What a pool consists of, read from the headers of its files: nothing is loaded, and absence is no error."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from macr_local.config import MemberEntry, MemberSpec, PoolEntry
from macr_local.errors import CalibrationError, MacrError
from macr_local.protocol import Fingerprint

if TYPE_CHECKING:
    from macr_local.engine.files import Header


@dataclass(frozen=True, slots=True)
class CalibrationState:
    """A member's calibration as it lies on the disk.

    Attributes:
        questions: Reference questions it was made from; None where there is none.
        date: When it was made (ISO 8601).
        problem: Why it cannot be used; empty where it can.
    """

    questions: int | None = None
    date: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class MemberState:
    """One member's files as they lie on the disk.

    Attributes:
        name: The member's name.
        model: The model's path, or its name in the hub repository where it is not downloaded.
        projector: The same for the projector; None without one.
        repo: The hub repository that holds them; None for local files.
        bytes: Size of both files; None where one is absent.
        architecture: What the model's header says; empty where there is no header.
        projector_type: What the projector's header says.
        quantization: For instance ``Q4_K_M``.
        n_vocab: Tokens of the vocabulary.
        n_ctx: Cells of the context that the pool asks for.
        calibration: Its calibration.
        problem: Why the member cannot be loaded; empty where its headers are in order.
        missing: Files that are not downloaded, as the pool file names them.
    """

    name: str
    model: str
    projector: str | None
    repo: str | None
    bytes: int | None
    architecture: str
    projector_type: str
    quantization: str
    n_vocab: int | None
    n_ctx: int
    calibration: CalibrationState
    problem: str = ""
    missing: tuple[str, ...] = ()


def inspect(pool: PoolEntry) -> tuple[MemberState, ...]:
    """Look at every member's files.

    Args:
        pool: The pool as its file describes it.

    Returns:
        The members' states in pool order.

    Raises:
        ConfigError: A pattern fits several downloaded files.
    """
    return tuple(_inspect(entry, pool.calibration) for entry in pool.members)


def _inspect(entry: MemberEntry, calibrations: Path) -> MemberState:
    spec, missing = entry.locate()
    state: dict[str, Any] = {
        "name": spec.name,
        "model": str(spec.model),
        "projector": str(spec.projector) if spec.projector else None,
        "repo": entry.repo,
        "n_ctx": spec.n_ctx,
        "bytes": None, "architecture": "", "projector_type": "", "quantization": "", "n_vocab": None,
        "problem": "not downloaded" if missing else "",
        "missing": missing,
        "calibration": CalibrationState(problem="the model is not here"),
    }  # fmt: skip
    if not missing:
        try:
            model, facts = _headers(spec)
        except MacrError as error:
            state["problem"] = error.found
        else:
            state |= facts | {"calibration": _calibration(spec, model, calibrations)}
    return MemberState(**state)


def _headers(spec: MemberSpec) -> tuple[Header, dict[str, Any]]:
    """The model's header, and what a member's headers say.

    Raises:
        ModelFileError: A file is missing, damaged or not what the specification says.
    """
    from macr_local.engine.files import check_model, check_projector, quantization

    model = check_model(spec)
    projector = check_projector(spec, model)
    return model, {
        "bytes": model.size + (projector.size if projector else 0),
        "architecture": str(model.metadata.get("general.architecture", "")),
        "projector_type": _projector_type(projector) if projector else "",
        "quantization": quantization(model),
        "n_vocab": len(model.metadata.get("tokenizer.ggml.tokens", ())) or None,
    }


def _projector_type(projector: Header) -> str:
    names = ("clip.projector_type", "clip.vision.projector_type")
    return next((str(projector.metadata[name]) for name in names if name in projector.metadata), "")


def _calibration(spec: MemberSpec, model: Header, folder: Path) -> CalibrationState:
    from macr_local.calibration import MemberCalibration

    if not (folder / f"{spec.name}.json").exists():
        return CalibrationState(problem="none (macr-local calibrate makes one)")
    try:
        calibration = MemberCalibration.load(folder, spec.name)
    except CalibrationError as error:
        return CalibrationState(problem=error.found)
    made = calibration.origin
    problem = ""
    try:
        calibration.check(_fingerprint(spec, model, made.fingerprint.template))
    except CalibrationError as error:
        problem = error.found
    return CalibrationState(made.questions, made.date, problem)


def _fingerprint(spec: MemberSpec, model: Header, stand_in: str) -> Fingerprint:
    """The fingerprint of files that are not loaded; ``stand_in`` is the template's where they have none."""
    from macr_local.engine.files import quantization
    from macr_local.engine.hashes import model_sha256, sha256_of

    template = spec.chat_template or model.metadata.get("tokenizer.chat_template")
    return Fingerprint(
        model=model_sha256(model),
        projector=sha256_of(spec.projector) if spec.projector else None,
        quantization=quantization(model),
        template=hashlib.sha256(template.encode("utf-8", "surrogatepass")).hexdigest()
        if template
        else stand_in,
    )
