"""Files of the hub that are on this machine: what they must be, what they are, and taking them away."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from macr_local.hub import cache, ledger

State = Literal["verified", "not verified", "damaged"]


@dataclass(frozen=True, slots=True)
class Held:
    """A downloaded file.

    Attributes:
        member: The member it is of.
        repo: The repository.
        name: Its name in the repository.
        path: Where it is.
        size: Bytes on the disk.
        published: The sha256 that it must have; None where nobody said.
    """

    member: str
    repo: str
    name: str
    path: Path
    size: int
    published: str | None

    @classmethod
    def at(cls, member: str, repo: str, path: Path) -> Held:
        """Look at a file in the cache.

        Raises:
            OSError: It cannot be looked at.
        """
        snapshot = next(parent for parent in path.parents if parent.parent.name == "snapshots")
        name = path.relative_to(snapshot).as_posix()
        return cls(member, repo, name, path, path.stat().st_size, cache.published_sha256(path))

    @property
    def date(self) -> str:
        """When it was verified at its download (ISO 8601); empty where it was not by us."""
        entry = ledger.entries().get(str(self.path.absolute()))
        return entry.date if entry else ""

    def state(self) -> State:
        """What is known of it without reading it: size and time of change are looked at."""
        from macr_local.engine.hashes import known

        entry = ledger.entries().get(str(self.path.absolute()))
        if entry is not None and entry.size != self.size:
            return "damaged"
        found = known(self.path)
        if found is None or self.published is None:
            return "not verified"
        return "verified" if found == self.published else "damaged"

    def read(self) -> str:
        """Its sha256, read now.

        Raises:
            OSError: It cannot be read.
        """
        from macr_local.engine.hashes import computed, know

        found = computed(self.path, self.size)
        know(self.path, found)
        return found

    def remove(self) -> int:
        """Take it away, with all names that other commits have for it.

        Returns:
            Bytes that are free now.

        Raises:
            OSError: It cannot be removed.
        """
        content = self.path.resolve()
        snapshots = cache.folder(self.repo) / "snapshots"
        names = [path for path in snapshots.rglob("*") if path.is_symlink() and path.resolve() == content]
        for path in (*names, self.path, content):
            path.unlink(missing_ok=True)
            ledger.forget(path)
        return self.size
