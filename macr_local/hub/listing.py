"""What a repository of the hub holds: files with their sizes and sha256, and which of them are meant."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from macr_local.errors import ConfigError
from macr_local.hub.faults import explained

_SPLIT = re.compile(r"^(?P<stem>.+)-\d{5}-of-(?P<count>\d{5})\.gguf$")
_SHOWN = 12


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file as the hub holds it.

    Attributes:
        repo: The repository.
        commit: The commit it is of.
        name: Its path in the repository.
        size: Bytes.
        sha256: Of its content; None for a small file that is kept in git itself.
    """

    repo: str
    commit: str
    name: str
    size: int
    sha256: str | None


@dataclass(frozen=True, slots=True)
class Listing:
    """A repository at one commit.

    Attributes:
        repo: For instance ``Qwen/Qwen3-VL-8B-Instruct-GGUF``.
        commit: The commit that its branch points at now.
        files: Its files.
    """

    repo: str
    commit: str
    files: tuple[RemoteFile, ...]

    @classmethod
    def fetch(cls, repo: str, revision: str | None = None) -> Listing:
        """Ask the hub.

        Args:
            repo: The repository.
            revision: A branch, tag or commit; None is the main branch.

        Raises:
            DownloadError: It cannot be reached, or there is no such repository, or not for this user.
        """
        from huggingface_hub import HfApi, constants

        try:
            api = HfApi(endpoint=constants.ENDPOINT, library_name="macr-local")
            info = api.model_info(repo, revision=revision, files_metadata=True, timeout=30)
        except Exception as error:
            raise explained(error, repo, revision) from error
        commit = info.sha or ""
        files = (
            RemoteFile(repo, commit, one.rfilename, one.size or 0, one.lfs.sha256 if one.lfs else None)
            for one in info.siblings or ()
        )
        return cls(repo, commit, tuple(files))

    def pick(self, pattern: str) -> tuple[RemoteFile, ...]:
        """The file that has this name or fits this pattern; all parts of one that is split.

        Raises:
            ConfigError: None fits, or several; the message lists what is there.
        """
        fits = [one for one in self.files if one.name == pattern] or [
            one for one in self.files if fnmatchcase(one.name, pattern)
        ]
        parts = {(match["stem"], match["count"]) for one in fits if (match := _SPLIT.match(one.name))}
        if len(parts) == 1 and all(_SPLIT.match(one.name) for one in fits):
            ((stem, count),) = parts
            return tuple(self._part(stem, number, int(count)) for number in range(1, int(count) + 1))
        if not fits:
            models = [one for one in self.files if one.name.endswith(".gguf")]
            raise ConfigError(
                f'No file of {self.repo} fits "{pattern}"; it has {_listed(models) or "no .gguf file"}',
                "Name one of them in models.toml",
            )
        if len(fits) > 1:
            raise ConfigError(
                f'{len(fits)} files of {self.repo} fit "{pattern}": {_listed(fits)}',
                "Name one of them in models.toml",
            )
        return tuple(fits)

    def _part(self, stem: str, number: int, count: int) -> RemoteFile:
        name = f"{stem}-{number:05}-of-{count:05}.gguf"
        for one in self.files:
            if one.name == name:
                return one
        raise ConfigError(f"{self.repo} lacks {name}", "Choose another file, or tell its owner")


def shown_size(count: int) -> str:
    """Bytes as the hub shows them: ``5.03 GB``."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} bytes"


def _listed(files: Sequence[RemoteFile]) -> str:
    names = [f"{one.name} ({shown_size(one.size)})" for one in files[:_SHOWN]]
    more = f" and {len(files) - _SHOWN} more" if len(files) > _SHOWN else ""
    return ", ".join(names) + more
