"""One run at a time in a folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from macr_local.errors import MacrError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_FAR = 1 << 30
"""The byte that is locked on Windows, where locked bytes cannot be read: far behind the process id."""


@contextmanager
def alone_in(folder: Path, *, doing: str, error: type[MacrError], part: str = "") -> Iterator[None]:
    """Keep other runs out of a folder, which is made if need be.

    The operating system holds the lock, and frees it however the process ends: no lock can be stale.

    Args:
        folder: The folder.
        doing: What runs there, in one word ("calibrating"); names the lock file.
        error: What is raised.
        part: What runs of different parts of the work are told apart by; each has a lock of its own.

    Raises:
        MacrError: Of the kind that was asked for: another run is there, or the folder cannot be written.
    """
    path = folder / f".{doing}{part}.lock"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor, holder = _acquire(path)
    except OSError as problem:
        raise error(
            f"{problem.filename or path} cannot be written ({problem.strerror})",
            "Give another folder with --out",
        ) from None
    if descriptor is None:
        raise error(
            f"Another run{f' (pid {holder})' if holder else ''} is {doing} into {folder}",
            "Wait until it is done, end it, or give another folder with --out",
        )
    try:
        yield
    finally:
        _release(path, descriptor)


def _acquire(path: Path) -> tuple[int | None, str]:
    """The locked file, or None and the process that has it."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if not _lock(descriptor):
                holder = os.read(descriptor, 32).decode("ascii", "replace").strip()
                os.close(descriptor)
                return None, holder
            # The run that had it may have removed the file between these two steps; then nobody else sees it.
            if _is_at(path, descriptor):
                os.ftruncate(descriptor, 0)
                os.write(descriptor, f"{os.getpid()}\n".encode())
                return descriptor, ""
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _release(path: Path, descriptor: int) -> None:
    if sys.platform != "win32":
        # While it is still locked, so that no other run has it open and locked when it goes.
        with suppress(OSError):
            path.unlink()
    os.close(descriptor)
    if sys.platform == "win32":  # which removes no file that is open
        with suppress(OSError):
            path.unlink()


def _lock(descriptor: int) -> bool:
    """Lock an open file; False where another has it."""
    try:
        if sys.platform == "win32":
            os.lseek(descriptor, _FAR, os.SEEK_SET)
            try:
                msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            finally:
                os.lseek(descriptor, 0, os.SEEK_SET)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        # Some network file systems have no locks. To run there without one is better than not at all.
        return True
    return True


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False
