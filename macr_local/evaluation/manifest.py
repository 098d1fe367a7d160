"""What a run was made with, so that it goes on only as it began."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from macr_local import __version__
from macr_local.engine.library import build
from macr_local.errors import CalibrationError, DataError
from macr_local.evaluation.method import Method
from macr_local.origin import conditions_of
from macr_local.pool import Pool
from macr_local.settings import RelaySettings

NAME = "manifest.json"
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a run was made with.

    Attributes:
        dataset: The data set's name.
        method: The method's name.
        compared: What must agree for answers to belong together.
        noted: What is only worth knowing: versions of this package and of the platform.
    """

    dataset: str
    method: str
    compared: Mapping[str, Any]
    noted: Mapping[str, Any]

    @classmethod
    def of(
        cls,
        pool: Pool,
        method: Method,
        settings: RelaySettings,
        dataset: str,
        data: Mapping[str, Any],
        asked: Mapping[str, Any],
    ) -> Manifest:
        """What a run on an open pool is made with.

        Args:
            pool: The pool; its files are hashed once.
            method: The method.
            settings: The method's own settings; their seed does not count, as answers say theirs.
            dataset: The data set's name.
            data: What identifies the data set's content.
            asked: How items are asked: form of the question, ending, prompts.
        """
        members = [member for member in pool.members if method.leader in (None, member.name)]
        compared = {
            "data": dict(data),
            "asked": dict(asked),
            "strategy": method.strategy,
            "settings": asdict(replace(settings, seed=0)),
            "members": {
                one.name: {**asdict(one.fingerprint), **conditions_of(one.spec), "n_ctx": one.n_ctx}
                for one in members
            },
            "calibration": {one.name: _calibration(pool, one.name, settings.judged) for one in members},
            "llama.cpp": build(),
        }
        noted = {
            "macr-local": __version__,
            "python": platform.python_version(),
            "platform": platform.platform(),
        }
        return cls(dataset, method.name, _plain(compared), noted)

    def differences(self, other: Manifest) -> list[str]:
        """What is not the same in another manifest, in words: what it is there, and what here."""
        mine, theirs = dict(_leaves("", self.compared)), dict(_leaves("", other.compared))
        keys = [key for key in {**theirs, **mine} if mine.get(key) != theirs.get(key)]
        return [f"{key} {_short(theirs.get(key))}, not {_short(mine.get(key))}" for key in keys]

    def save(self, folder: Path) -> None:
        """Write it into a run's folder, whole or not at all.

        Raises:
            OSError: It cannot be written.
        """
        text = json.dumps({"macr_run": _VERSION, **asdict(self)}, indent=1)
        draft = folder / f".{NAME}.{os.getpid()}"
        draft.write_text(text + "\n", "utf-8")
        draft.replace(folder / NAME)

    @classmethod
    def load(cls, folder: Path) -> Manifest:
        """Read a run's manifest.

        Raises:
            DataError: There is none, or it is damaged.
        """
        path = folder / NAME
        try:
            read = json.loads(path.read_text("utf-8"))
            if read.pop("macr_run") != _VERSION:
                raise DataError(f"{path} is of another version of macr-local", "Use that version to read it")
            return cls(**read)
        except FileNotFoundError:
            raise DataError(f"{folder} holds no run", "Give a folder that macr-local eval has made") from None
        except OSError as error:
            raise DataError(f"{path} cannot be read ({error.strerror})", "Check its permissions") from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise DataError(f"{path} is damaged ({error})", "Restore it from a copy") from None


def _calibration(pool: Pool, name: str, window: int) -> Any:
    try:
        return asdict(pool.calibration(name).at(window))
    except CalibrationError:
        return None  # a method that needs one says so by itself


def _plain(value: Mapping[str, Any]) -> Any:
    """As it comes back from JSON, so that what is compared is alike."""
    return json.loads(json.dumps(value))


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, Mapping):
        yield name, value
        return
    for key, each in value.items():
        yield from _leaves(f"{name}.{key}" if name else key, each)


def _short(value: Any) -> str:
    text = "unset" if value is None else json.dumps(value)
    return text if len(text) <= 40 else f"{text[:18]}...{hashlib.sha256(text.encode()).hexdigest()[:8]}"
