"""Settings that were chosen by measurement: kept beside a pool's calibration, with their evidence."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from macr_local.errors import CalibrationError
from macr_local.settings import RelaySettings

NAME = "tuning.json"
_VERSION = 1
_log = logging.getLogger("macr_local")


@dataclass(frozen=True, slots=True)
class Tuning:
    """What `macr-local tune` has chosen for a pool.

    Attributes:
        window: w.
        threshold: tau.
        cooldown: Tokens before the next trigger counts.
        data: The data set's name.
        items: How many of its items were asked.
        date: When, as YYYY-MM-DD.
        images: sha256 of their images' upright pixels, in hex; an evaluation must not ask about these.
        calibrations: sha256 of each member's calibration it was chosen with; another one makes it void.
        evidence: Every setting that was tried and what came of it, for people to read.
    """

    window: int
    threshold: float
    cooldown: int
    data: str
    items: int
    date: str
    images: tuple[str, ...]
    calibrations: Mapping[str, str]
    evidence: Mapping[str, Any]

    @classmethod
    def load(cls, folder: Path | None) -> Tuning | None:
        """The one in a calibration folder; None where there is none.

        Raises:
            CalibrationError: It is damaged.
        """
        if folder is None:
            return None
        path = folder / NAME
        try:
            read = json.loads(path.read_text("utf-8"))
            if read.pop("macr_tuning") != _VERSION:
                raise ValueError("it is of another version of macr-local")
            found = cls(**{**read, "images": tuple(read["images"])})
            found.applied(RelaySettings())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise CalibrationError(
                f"{path} cannot be read ({error.strerror})", "Check its permissions"
            ) from None
        except Exception as error:
            raise CalibrationError(f"{path} is damaged ({error})", "Remove it, or tune again") from None
        return found

    def applied(self, settings: RelaySettings) -> RelaySettings:
        """A pool's settings with what was chosen in their place."""
        return replace(settings, window=self.window, threshold=self.threshold, cooldown=self.cooldown)

    def holds(self, folder: Path, members: Iterable[str]) -> bool:
        """Whether the members' calibrations are the ones it was chosen with; says so in the log if not."""
        if all(self.calibrations.get(name) == digest for name, digest in digests(folder, members).items()):
            return True
        _log.warning(
            "%s was made with other calibrations or members and is not used; tune again", folder / NAME
        )
        return False

    def save(self, folder: Path) -> Path:
        """Write it into a calibration folder, whole or not at all; returns the file.

        Raises:
            CalibrationError: It cannot be written.
        """
        path, draft = folder / NAME, folder / f".{NAME}.{os.getpid()}"
        try:
            draft.write_text(json.dumps({"macr_tuning": _VERSION, **asdict(self)}, indent=1) + "\n", "utf-8")
            draft.replace(path)
        except OSError as error:
            raise CalibrationError(
                f"{path} cannot be written ({error.strerror})", "Make the folder writable"
            ) from None
        return path


def digests(folder: Path, members: Iterable[str]) -> dict[str, str]:
    """sha256 of each member's calibration; empty for one that has none."""
    found = {}
    for name in members:
        try:
            found[name] = hashlib.sha256((folder / f"{name}.json").read_bytes()).hexdigest()
        except OSError:
            found[name] = ""
    return found
