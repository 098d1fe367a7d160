"""The sha256 of files of many gigabytes, computed once and remembered while the file stays as it is."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from platformdirs import user_cache_path

from macr_local.engine.gguf import unreadable
from macr_local.engine.header import Header

_BLOCK = 4 << 20
_REMEMBERED = 64 << 20
"""Files from this size on are remembered on the disk too: 18 GB take half a minute to hash."""
_LOCK = threading.Lock()


def sha256_of(path: str | os.PathLike[str]) -> str:
    """A file's sha256 in hex; computed again only when its size or time of change is another.

    Raises:
        ModelFileError: The file cannot be read.
    """
    path = Path(path)
    try:
        stat = path.stat()
        return _sha256(path, stat.st_size, stat.st_mtime_ns)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None


def model_sha256(header: Header) -> str:
    """The sha256 of a model's file; of a split model, that of its parts' sha256, in order.

    Raises:
        ModelFileError: A file cannot be read.
    """
    parts = [sha256_of(part.path) for part in (header, *header.siblings)]
    return parts[0] if len(parts) == 1 else hashlib.sha256("\n".join(parts).encode()).hexdigest()


def computed(path: Path, size: int) -> str:
    """A file's sha256, read now whatever is remembered.

    Raises:
        OSError: It cannot be read.
    """
    digest = hashlib.sha256()
    block = memoryview(bytearray(min(_BLOCK, size) or 1))
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(block):
            digest.update(block[:count])
    return digest.hexdigest()


def known(path: Path) -> str | None:
    """The sha256 of a file if it is remembered, or quickly computed; None where gigabytes had to be read.

    Raises:
        OSError: The file cannot be looked at.
    """
    stat = path.stat()
    if stat.st_size < _REMEMBERED:
        return computed(path, stat.st_size)
    return _recall(_memory()).get(_key(path, stat.st_size, stat.st_mtime_ns))


def know(path: Path, sha256: str) -> None:
    """Remember the sha256 of a file that was just computed, for as long as the file stays as it is."""
    stat = path.stat()
    if stat.st_size >= _REMEMBERED:
        _learn(_key(path, stat.st_size, stat.st_mtime_ns), sha256)


@lru_cache(maxsize=256)
def _sha256(path: Path, size: int, mtime_ns: int) -> str:
    if size < _REMEMBERED:
        return computed(path, size)
    key = _key(path, size, mtime_ns)
    found = _recall(_memory()).get(key)
    if found is None:
        found = computed(path, size)
        _learn(key, found)
    return found


def _key(path: Path, size: int, mtime_ns: int) -> str:
    return f"{path.resolve()} {size} {mtime_ns}"  # a snapshot of the hub's cache is a link to the file itself


def _memory() -> Path:
    return user_cache_path("macr-local", appauthor=False) / "sha256.json"


def _learn(key: str, sha256: str) -> None:
    with _LOCK:
        _remember(_memory(), {**_recall(_memory()), key: sha256})


def _recall(memory: Path) -> dict[str, str]:
    """What is remembered; nothing, where that cannot be read."""
    with suppress(OSError, ValueError, RecursionError):
        found = json.loads(memory.read_bytes())
        if isinstance(found, dict) and all(isinstance(value, str) for value in found.values()):
            return found
    return {}


def _remember(memory: Path, hashes: dict[str, str]) -> None:
    # It only saves time, so a folder that cannot be written is no error.
    with suppress(OSError):
        memory.parent.mkdir(parents=True, exist_ok=True)
        draft = memory.with_name(f".{memory.name}.{os.getpid()}.draft")
        draft.write_text(json.dumps(hashes, indent=1), "utf-8")
        os.replace(draft, memory)
