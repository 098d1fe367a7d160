"""Going through a whole data set once: what is in it, and what is wrong with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from macr_local.errors import ImageError
from macr_local.evaluation.datasets.benchmarks import PUBLISHED
from macr_local.evaluation.datasets.dataset import DataSet, FileDataSet
from macr_local.evaluation.item import Item
from macr_local.images import load


@dataclass(slots=True)
class Survey:
    """What a data set holds.

    Attributes:
        name: Its name.
        path: Its file; empty for one that has none.
        identity: What its answers are tied to (hashes, a seed).
        published: VLMEvalKit's file that this is to the byte; empty for none.
        items: Items, those with problems included.
        images: Images of all items together.
        labelled: Items whose right answer is known.
        clusters: Independent groups of items.
        kinds: Items by the kind of their answer.
        groups: Items by value, for each group; an item may have several values.
        left_out: Rows that are no questions, by reason.
        problems: Items that cannot be asked, and why.
        repeated: Ids that more than one item has.
        first: The first item that can be asked.
    """

    name: str
    path: str
    identity: dict[str, Any]
    published: str
    items: int = 0
    images: int = 0
    labelled: int = 0
    clusters: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    groups: dict[str, Counter[str]] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    problems: list[tuple[str, str]] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)
    first: Item | None = None

    @property
    def sound(self) -> bool:
        """Whether every item can be asked."""
        return self.items > 0 and not self.problems and not self.repeated


def survey(data: DataSet, *, decode: bool, progress: Callable[[int], None] = lambda _: None) -> Survey:
    """Go through a data set.

    Args:
        data: The data set.
        decode: Whether every image is decoded, as asking would.
        progress: Called with the number of items so far.

    Raises:
        DataError: The file cannot be read at all.
    """
    path, published = "", ""
    if isinstance(data, FileDataSet):
        path, published = str(data.path), PUBLISHED.get(data.digests[1], "")
    found = Survey(data.name, path, dict(data.identity()), published)
    ids: set[str] = set()
    clusters: set[str] = set()
    for item in data.items():
        found.items += 1
        progress(found.items)
        if item.id in ids:
            found.repeated.append(item.id)
        ids.add(item.id)
        problem = item.problem or (_undecodable(item) if decode else "")
        if problem:
            found.problems.append((item.where, problem))
            continue
        found.first = found.first or item
        found.images += len(item.images)
        found.labelled += bool(item.answer)
        found.kinds[item.answer_type] += 1
        clusters.add(item.cluster_or_id)
        for group, values in item.groups.items():
            found.groups.setdefault(group, Counter()).update(values)
    found.clusters = len(clusters)
    found.left_out = data.left_out
    return found


def _undecodable(item: Item) -> str:
    try:
        for image in item.images:
            load(image)
    except ImageError as error:
        return str(error)
    return ""
