"""Which items of a data set are asked."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from macr_local.errors import DataError


@dataclass(frozen=True, slots=True)
class Selection:
    """Which items are asked.

    Attributes:
        limit: At most so many, drawn at random; a larger limit takes in those of a smaller one. None is all.
        seed: Of the draw.
        ids: Only these; None is all.
        shard: (i, n): only the i-th of n parts, from 1.
    """

    limit: int | None = None
    seed: int = 0
    ids: Collection[str] | None = None
    shard: tuple[int, int] = (1, 1)

    @property
    def part(self) -> str:
        """The shard's name; empty where there is one part only."""
        place, parts = self.shard
        return f"{place}of{parts}" if parts > 1 else ""

    def of(self, ids: Iterable[str], name: str) -> frozenset[str]:
        """The ids that are asked, out of those of a data set of this name.

        Raises:
            DataError: There is none, one that was asked for is not there, or the data set has one twice.
        """
        known = list(ids)
        if not known:
            raise DataError(f"{name} holds no question", "Give data with at least one question")
        if len(set(known)) < len(known):
            twice = next(one for number, one in enumerate(known) if one in known[:number])
            raise DataError(f'Two items of {name} have the id "{twice}"', "Give each row an id of its own")
        if self.ids is not None:
            missing = sorted(set(self.ids) - set(known))
            if missing:
                raise DataError(
                    f"{len(missing)} of {len(self.ids)} ids are not in {name}, such as {missing[0]}",
                    "Leave them out",
                )
            known = [one for one in known if one in self.ids]
        if self.limit is not None:
            chosen = frozenset(sorted(known, key=self._lot)[: self.limit])
            known = [one for one in known if one in chosen]
        place, parts = self.shard
        return frozenset(known[place - 1 :: parts])

    def _lot(self, item: str) -> str:
        return hashlib.sha256(f"{self.seed} {item}".encode("utf-8", "replace")).hexdigest()
