"""What of the hub's files is wanted, how much of it is here, and whether the rest has room."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from macr_local.errors import DownloadError
from macr_local.hub import cache
from macr_local.hub.listing import Listing, RemoteFile, shown_size


@dataclass(frozen=True, slots=True)
class Wanted:
    """A file to have.

    Attributes:
        file: The file.
        held: Bytes of it that are already on this machine.
    """

    file: RemoteFile
    held: int

    @classmethod
    def of(cls, file: RemoteFile) -> Wanted:
        """Look how much of a file is here; a whole one whose sha256 is another counts as nothing."""
        if is_here(file) or has_content(file):
            return cls(file, file.size)
        with suppress(OSError):
            partial = partial_path(file).stat().st_size
            return cls(file, partial if partial <= file.size else 0)
        return cls(file, 0)

    @property
    def left(self) -> int:
        """Bytes still to come."""
        return self.file.size - self.held


def snapshot_path(file: RemoteFile) -> Path:
    """Where a file is found once it is downloaded."""
    return cache.folder(file.repo) / "snapshots" / file.commit / file.name


def is_here(file: RemoteFile) -> bool:
    """Whether a file is in the cache, whole and as published."""
    return _is(file, snapshot_path(file))


def check_room(wanted: Sequence[Wanted]) -> None:
    """Refuse a download for which the disk has no room.

    Raises:
        DownloadError: Says how much is needed and free, and where.
    """
    from huggingface_hub import constants

    place = Path(constants.HF_HUB_CACHE)
    there = next(path for path in (place, *place.absolute().parents) if path.exists())
    need, free = sum(one.left for one in wanted), shutil.disk_usage(there).free
    if need > free:
        raise DownloadError(
            f"{shown_size(need)} are to be downloaded, and {shown_size(free)} are free in {place}",
            "Make room, or set HF_HOME to a folder on another disk",
        )


def wanted(
    repo: str, names: Sequence[str], revision: str | None = None
) -> tuple[Listing, tuple[Wanted, ...]]:
    """Look on the hub which files are meant, and in the cache what is here of them.

    Args:
        repo: The repository.
        names: Names or patterns in the repository.
        revision: A branch, tag or commit; None is the main branch.

    Raises:
        DownloadError: The hub cannot be asked.
        ConfigError: A name fits no file, or several.
    """
    listing = Listing.fetch(repo, revision)
    files = dict.fromkeys(file for name in names for file in listing.pick(name))
    return listing, tuple(map(Wanted.of, files))


def blob_path(file: RemoteFile) -> Path:
    """Where the cache keeps a file's content."""
    return cache.folder(file.repo) / "blobs" / (file.sha256 or f"{file.commit}-{file.name.replace('/', '-')}")


def has_content(file: RemoteFile) -> bool:
    """Whether the content is here, from another commit perhaps, and only its name is missing."""
    return _is(file, blob_path(file))


def _is(file: RemoteFile, path: Path) -> bool:
    try:
        if path.stat().st_size != file.size:
            return False
    except OSError:
        return False
    if file.sha256 is None:
        return True
    from macr_local.engine.hashes import sha256_of

    return sha256_of(path) == file.sha256


def partial_path(file: RemoteFile) -> Path:
    """Where a file is while it is being downloaded."""
    blob = blob_path(file)
    return blob.with_name(f"{blob.name}.incomplete")
