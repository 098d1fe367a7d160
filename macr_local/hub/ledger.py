"""What was downloaded and verified: a file of the user's own that says which sha256 each file must have."""

from __future__ import annotations

import json
import os
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

_LOCK = threading.Lock()


@dataclass(frozen=True, slots=True)
class Entry:
    """A downloaded file.

    Attributes:
        repo: The repository it is of.
        commit: The commit.
        name: Its path in the repository.
        size: Bytes.
        sha256: What the hub says its content is, and what it was found to be.
        date: When it was verified (ISO 8601).
    """

    repo: str
    commit: str
    name: str
    size: int
    sha256: str
    date: str


def path() -> Path:
    """Where it lies."""
    from platformdirs import user_data_path

    return user_data_path("macr-local", appauthor=False) / "downloads.lock.json"


def entries() -> dict[str, Entry]:
    """Every file that was downloaded, by its path; what cannot be read counts as nothing."""
    with suppress(OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {name: Entry(**one) for name, one in json.loads(path().read_bytes())["files"].items()}
    return {}


def sha256_of(file: Path) -> str | None:
    """What a file must be; None where it was not downloaded by macr-local."""
    found = entries().get(str(file.absolute()))
    return found.sha256 if found else None


def record(file: Path, entry: Entry) -> None:
    """Remember a file.

    Raises:
        OSError: It cannot be written.
    """
    with _LOCK:
        _write({**entries(), str(file.absolute()): entry})


def forget(file: Path) -> None:
    """Remember a file no longer.

    Raises:
        OSError: It cannot be written.
    """
    with _LOCK:
        _write({name: entry for name, entry in entries().items() if name != str(file.absolute())})


def _write(files: dict[str, Entry]) -> None:
    target = path()
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    kept = {name: asdict(one) for name, one in files.items()}
    text = json.dumps({"macr_downloads": 1, "files": kept}, indent=1)
    draft.write_text(text + "\n", "utf-8")
    os.replace(draft, target)
