"""What a pool or a member needs from the hub: looked up, sized, and then downloaded as one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from macr_local.errors import ConfigError
from macr_local.hub.download import Download, point
from macr_local.hub.listing import Listing
from macr_local.hub.receive import Count
from macr_local.hub.wanted import Wanted, check_room, snapshot_path, wanted

_QUANTIZATION = re.compile(
    r"(?<![A-Za-z0-9])(I?Q\d_[A-Za-z0-9_]+|BF16|F16|F32)(?![A-Za-z0-9])", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Need:
    """Files of a repository that a member is made of.

    Attributes:
        member: Its name.
        repo: The repository.
        model: The model's name or pattern in it.
        projector: The projector's; None without one.
        revision: A branch, tag or commit; None is the main branch.
    """

    member: str
    repo: str
    model: str
    projector: str | None = None
    revision: str | None = None

    def quantized(self, name: str) -> Need:
        """The same in another quantization, as the model's name says it.

        Raises:
            ConfigError: The name says none.
        """
        if not _QUANTIZATION.search(self.model):
            raise ConfigError(
                f'The model of {self.member}, "{self.model}", names no quantization',
                "Name the file you want in models.toml",
            )
        model = _QUANTIZATION.sub(name, self.model)
        return Need(self.member, self.repo, model, self.projector, self.revision)


@dataclass(frozen=True, slots=True)
class Part:
    """A member's files.

    Attributes:
        need: Whose they are.
        listing: The repository as it is now.
        files: The files.
    """

    need: Need
    listing: Listing
    files: tuple[Wanted, ...]

    @property
    def paths(self) -> tuple[Path, ...]:
        """Where they are once they are downloaded."""
        return tuple(snapshot_path(one.file) for one in self.files)


@dataclass(frozen=True, slots=True)
class Plan:
    """All that is to be downloaded."""

    parts: tuple[Part, ...]

    @classmethod
    def of(cls, needs: Iterable[Need]) -> Plan:
        """Ask the hub what it has, and look what is here.

        Raises:
            DownloadError: The hub cannot be asked.
            ConfigError: A name fits no file, or several.
        """
        parts = []
        for need in needs:
            names = [name for name in (need.model, need.projector) if name is not None]
            parts.append(Part(need, *wanted(need.repo, names, need.revision)))
        return cls(tuple(parts))

    @property
    def files(self) -> tuple[Wanted, ...]:
        """Every file once."""
        return tuple({one.file: one for part in self.parts for one in part.files}.values())

    @property
    def left(self) -> int:
        """Bytes still to come."""
        return sum(one.left for one in self.files)

    def run(self, count: Count = lambda _file, _bytes: None) -> None:
        """Download and verify what is missing.

        Args:
            count: Told of progress, from several threads.

        Raises:
            DownloadError: There is no room, or a file cannot be downloaded.
            Cancelled: The user interrupted.
        """
        check_room(self.files)
        Download(self.files, count).run()
        for part in self.parts:
            point(part.need.repo, part.need.revision, part.listing.commit)
