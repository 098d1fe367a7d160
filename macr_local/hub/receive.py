"""One file of the hub: its bytes received and verified, and only then named in the cache.

The hub's own client gives up what it has of a file when it is interrupted, which costs hours at 5 GB a file.
So its cache, its metadata, its requests and its links are used, and the unfinished file is kept by us.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from typing import Any

from macr_local.errors import DownloadError
from macr_local.hub import cache, ledger
from macr_local.hub.faults import explained, is_fault
from macr_local.hub.listing import RemoteFile
from macr_local.hub.wanted import blob_path, has_content, is_here, partial_path, snapshot_path

_LOCK_WAIT = 2.0

Count = Callable[[RemoteFile, int], None]
"""Told how many more bytes of a file are here; a negative number takes some back."""


def fetch(file: RemoteFile, count: Count, stop: threading.Event) -> Path:
    """Download one file into the cache, and verify it.

    Returns:
        Its path in the snapshot.

    Raises:
        DownloadError: It cannot be downloaded, or is not what the hub says.
    """
    from filelock import FileLock, Timeout
    from huggingface_hub import constants

    path, partial = snapshot_path(file), partial_path(file)
    locks = Path(constants.HF_HUB_CACHE) / ".locks" / cache.folder(file.repo).name
    lock = locks / f"{blob_path(file).name}.lock"
    try:
        for one in (lock, partial):
            one.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(lock, timeout=_LOCK_WAIT):  # which the hub's client takes too
            if not is_here(file):
                path.unlink(missing_ok=True)
                if file.sha256 is not None and not has_content(file):
                    blob_path(file).unlink(missing_ok=True)
                    _receive(file, file.sha256, partial, count, stop)
                    partial.replace(blob_path(file))
        _link(file)  # which takes the lock itself
        if file.sha256 is not None:
            _vouch(file, file.sha256, path)
    except Timeout:
        raise DownloadError(
            f"{file.name} is being downloaded by another process", "Wait until it is done"
        ) from None
    except DiskError as error:
        raise DownloadError(
            f"{partial} cannot be written ({error.cause.strerror})",
            "Make room, or set HF_HOME to another disk; the same command goes on where it stopped",
        ) from error
    except PermissionError as error:
        raise DownloadError(
            f"{error.filename or path} cannot be written ({error.strerror})",
            "Set HF_HOME to a folder that is yours",
        ) from None
    except Exception as error:
        if is_fault(error):
            raise explained(error, file.repo, file.commit) from error
        raise
    return path


class Stopped(Exception):
    """The user has interrupted."""


class DiskError(Exception):
    """A write failed, as told apart from the network's own OSErrors."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(str(cause))
        self.cause = cause


class _Sink:
    """A file being downloaded: what is written is counted, and an interrupt ends it."""

    def __init__(self, file: FileIO, count: Callable[[int], None], stop: threading.Event) -> None:
        self._file, self._count, self._stop = file, count, stop

    def write(self, data: bytes) -> int:
        rest = memoryview(data)
        while rest:
            if self._stop.is_set():
                raise Stopped
            try:
                written = self._file.write(rest)
            except OSError as error:
                raise DiskError(error) from error
            rest = rest[written:]
            self._count(written)
        return len(data)

    def tell(self) -> int:
        return self._file.tell()

    def seek(self, place: int, whence: int = 0) -> int:
        return self._file.seek(place, whence)

    def truncate(self, size: int | None = None) -> int:
        """Called where a server will not go on in the middle; what is given up is counted back."""
        before = self._file.seek(0, 2)
        after = self._file.truncate(size if size is not None else 0)
        self._file.seek(after)
        self._count(after - before)
        return after

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _receive(file: RemoteFile, sha256: str, partial: Path, count: Count, stop: threading.Event) -> None:
    """Bring a file's bytes into ``partial``, and verify them.

    What an earlier run has left may be damaged, so a wrong sha256 is given a second chance from the start.
    """
    from macr_local.engine.hashes import computed

    for last in (False, True):
        held = partial.stat().st_size if partial.exists() else 0
        if held > file.size:
            partial.unlink()
            held = 0
        _request(file, partial, held, lambda more: count(file, more), stop)
        if computed(partial, file.size) == sha256:
            return
        partial.unlink()
        count(file, -file.size)
        if last or not held:
            raise DownloadError(
                f"What came as {file.name} of {file.repo} has another sha256 than published; it was deleted",
                "Try again; if it stays so, a proxy changes it or the file on the hub is damaged",
            )


def _request(
    file: RemoteFile, partial: Path, held: int, count: Callable[[int], None], stop: threading.Event
) -> None:
    from huggingface_hub import constants, get_hf_file_metadata, hf_hub_url
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import (  # type: ignore[attr-defined]
        build_hf_headers,
        disable_progress_bars,
    )

    disable_progress_bars("huggingface_hub.http_get")
    url = hf_hub_url(file.repo, file.name, revision=file.commit, endpoint=constants.ENDPOINT)
    headers = build_hf_headers(library_name="macr-local")
    found = get_hf_file_metadata(url, headers=headers, endpoint=constants.ENDPOINT)
    if found.location != url and not found.location.startswith(constants.ENDPOINT):
        headers.pop("authorization", None)  # the token is the hub's, not that of where it keeps its files
    headers["Accept-Encoding"] = "identity"
    with partial.open("ab", buffering=0) as raw:
        sink: Any = _Sink(raw, count, stop)
        http_get(found.location, sink, resume_size=held, headers=headers, expected_size=file.size)


def _link(file: RemoteFile) -> None:
    """Let the hub's client make the snapshot's link, or its copy where there are no links.

    A small file that is kept in git itself is downloaded with it.
    """
    from huggingface_hub import constants, hf_hub_download

    path = snapshot_path(file)
    if not path.exists():
        place, endpoint = constants.HF_HUB_CACHE, constants.ENDPOINT
        hf_hub_download(file.repo, file.name, revision=file.commit, cache_dir=place, endpoint=endpoint)


def _vouch(file: RemoteFile, sha256: str, path: Path) -> None:
    """Write down what was verified. A ledger that cannot be written costs time later, not the download."""
    from macr_local.engine.hashes import know

    date = datetime.now(UTC).isoformat(timespec="seconds")
    with suppress(OSError):
        know(path, sha256)
        ledger.record(path, ledger.Entry(file.repo, file.commit, file.name, file.size, sha256, date))
