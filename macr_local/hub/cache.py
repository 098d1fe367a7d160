"""Files of the Hugging Face hub that are already on this machine. Nothing here uses the network."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from macr_local.errors import ConfigError
from macr_local.hub import ledger

_PATTERN = frozenset("*?[")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def find(repo: str, pattern: str, revision: str | None = None) -> Path | None:
    """The one file of a repository in the local cache that has this name or fits this pattern.

    Args:
        repo: For instance ``Qwen/Qwen3-VL-8B-Instruct-GGUF``.
        pattern: A path in the repository, or a pattern in the manner of a shell.
        revision: A branch, tag or commit; None takes the main branch as it was last downloaded and, where the
            file is not in it, any other downloaded snapshot.

    Returns:
        Its path, or None where it is not downloaded.

    Raises:
        ConfigError: Several files fit.
    """
    for snapshot in _snapshots(repo, revision):
        if not is_pattern(pattern):
            if (snapshot / pattern).is_file():
                return snapshot / pattern
            continue
        names = (path.relative_to(snapshot).as_posix() for path in snapshot.rglob("*") if path.is_file())
        fits = sorted(name for name in names if fnmatchcase(name, pattern))
        if len(fits) > 1:
            raise ConfigError(
                f'"{pattern}" fits {len(fits)} downloaded files of {repo}: {", ".join(fits)}',
                "Name one of them in models.toml",
            )
        if fits:
            return snapshot / fits[0]
    return None


def is_pattern(name: str) -> bool:
    """Whether a name stands for any file that fits it."""
    return not _PATTERN.isdisjoint(name)


def published_sha256(path: Path) -> str | None:
    """The sha256 under which the hub published a cached file; None where the cache does not say.

    The cache keeps a large file as ``blobs/SHA256`` with a link to it in the snapshot. Where there are no
    links (on Windows, without the right to make them), the ledger of ``macr-local download`` knows.
    """
    name = path.resolve().name
    if path.is_symlink() and _SHA256.fullmatch(name):
        return name
    return ledger.sha256_of(path)


def folder(repo: str) -> Path:
    """Where the cache keeps a repository."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE) / f"models--{repo.replace('/', '--')}"


def _snapshots(repo: str, revision: str | None) -> Iterator[Path]:
    snapshots = folder(repo) / "snapshots"
    first = snapshots / (revision or "")
    with contextlib.suppress(OSError, ValueError):
        first = snapshots / (folder(repo) / "refs" / (revision or "main")).read_text("ascii").strip()
    if first.is_dir() and first != snapshots:
        yield first
    if revision is None and snapshots.is_dir():
        others = [path for path in snapshots.iterdir() if path.is_dir() and path != first]
        yield from sorted(others, key=lambda path: path.stat().st_mtime, reverse=True)
