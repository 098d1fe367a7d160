"""Files of the Hugging Face hub that are already on this machine. Nothing here uses the network."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from macr_local.errors import ConfigError

_PATTERN = frozenset("*?[")


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


def download_commands(repo: str, names: Sequence[str], revision: str | None = None) -> tuple[str, ...]:
    """The commands that bring these files of a repository into the local cache."""
    head = ["hf", "download", repo]
    tail = ["--revision", revision] if revision else []
    plain = [name for name in names if not is_pattern(name)]
    # hf ignores --include beside file names, so patterns need a command of their own.
    commands = [[*head, *plain, *tail]] if plain else []
    commands += [[*head, "--include", name, *tail] for name in names if is_pattern(name)]
    return tuple(" ".join(map(_quoted, command)) for command in commands)


def _quoted(word: str) -> str:
    # Double quotes are understood by POSIX shells, cmd.exe and PowerShell alike.
    return word if re.fullmatch(r"[\w./-]+", word) else f'"{word}"'


def _snapshots(repo: str, revision: str | None) -> Iterator[Path]:
    from huggingface_hub import constants

    folder = Path(constants.HF_HUB_CACHE) / f"models--{repo.replace('/', '--')}"
    first = folder / "snapshots" / (revision or "")
    with contextlib.suppress(OSError, ValueError):
        first = folder / "snapshots" / (folder / "refs" / (revision or "main")).read_text("ascii").strip()
    if first.is_dir() and first.name != "snapshots":
        yield first
    if revision is None and (folder / "snapshots").is_dir():
        others = [path for path in (folder / "snapshots").iterdir() if path.is_dir() and path != first]
        yield from sorted(others, key=lambda path: path.stat().st_mtime, reverse=True)
