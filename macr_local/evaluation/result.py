"""What a run comes to under one scorer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from macr_local.errors import DataError
from macr_local.evaluation.item import Item
from macr_local.evaluation.manifest import Manifest
from macr_local.evaluation.record import Record
from macr_local.evaluation.run import read
from macr_local.evaluation.score import NOT_ITS, UNSCORED, Score, Scorer
from macr_local.evaluation.scoring import score
from macr_local.evaluation.scoring.hallusionbench import Ratings, ratings
from macr_local.evaluation.statistics.estimate import Estimate, share

Judge = Callable[[Item, str, Scorer], Score]


@dataclass(frozen=True, slots=True)
class Judged:
    """A record and what a scorer says about it."""

    record: Record
    score: Score


@dataclass(frozen=True)
class Result:
    """A run, scored. Nothing is asked for it: answers can be scored again at any time.

    Attributes:
        dataset: The data set.
        method: The method.
        scorer: Who judged.
        judged: Answers, in the order in which they were written, each item and seed once.
        passed_over: Answers beside them that this scorer says nothing about: how many, by the reason.
        failed: Items that could not be answered; they are not wrong, and not among ``judged``.
    """

    dataset: str
    method: str
    scorer: Scorer
    judged: tuple[Judged, ...]
    passed_over: Mapping[str, int]
    failed: tuple[Record, ...]

    @classmethod
    def load(cls, folder: Path, scorer: Scorer, ids: Collection[str] | None = None) -> Result:
        """Score the run in a folder, or some of its items.

        Raises:
            DataError: There is none, or it is damaged.
        """
        manifest = Manifest.load(folder)
        records = (record for record in read(folder) if ids is None or record.item.id in ids)
        return cls.of(manifest.dataset, manifest.method, records, scorer)

    @classmethod
    def of(cls, dataset: str, method: str, records: Iterable[Record], scorer: Scorer) -> Result:
        """Score records; an answer counts whatever failures stand beside it."""
        answered: dict[tuple[str, int], Record] = {}
        failed: dict[tuple[str, int], Record] = {}
        for record in records:
            (failed if record.error else answered)[record.key] = record
        scored = [Judged(record, score(record.item, record.text, scorer)) for record in answered.values()]
        judged = [one for one in scored if one.score.rule not in UNSCORED]
        passed_over = Counter(one.score.rule for one in scored if one.score.rule in UNSCORED)
        lost = (record for key, record in failed.items() if key not in answered)
        return cls(dataset, method, scorer, tuple(judged), passed_over, tuple(lost))

    @property
    def unscored(self) -> int:
        """How many answers this scorer says nothing about."""
        return sum(self.passed_over.values())

    @property
    def applies(self) -> bool:
        """Whether the scorer is made for this data."""
        return bool(self.judged) or NOT_ITS not in self.passed_over

    @cached_property
    def seeds(self) -> tuple[int, ...]:
        """Seeds that were asked with, in order."""
        return tuple(sorted({one.record.seed for one in self.judged}))

    @property
    def items(self) -> int:
        """Different items that were answered."""
        return len({one.record.item.id for one in self.judged})

    @property
    def accuracy(self) -> float | None:
        """Share of right answers, over all seeds; None where there is no answer."""
        return self._mean(lambda one: one.score.right)

    @property
    def interval(self) -> Estimate:
        """The same with its 95 % interval, from a bootstrap over clusters; there is an answer."""
        clusters = [one.record.item.cluster_or_id for one in self.judged]
        return share(clusters, [one.score.right for one in self.judged])

    @property
    def accuracies(self) -> Mapping[int, float]:
        """Share of right answers with each seed."""
        right: dict[int, list[bool]] = {}
        for one in self.judged:
            right.setdefault(one.record.seed, []).append(one.score.right)
        return {seed: sum(right[seed]) / len(right[seed]) for seed in self.seeds}

    @property
    def ratings(self) -> Mapping[int, Ratings]:
        """HallusionBench's accuracies with each seed; empty for other data sets."""
        each = {
            seed: ratings(
                (one.record.item.groups, one.score.right) for one in self.judged if one.record.seed == seed
            )
            for seed in self.seeds
        }
        return {seed: rated for seed, rated in each.items() if rated is not None}

    @property
    def unparsed(self) -> float | None:
        """Share of answers in which nothing was found."""
        return self._mean(lambda one: one.score.found is None)

    @property
    def rules(self) -> Mapping[str, int]:
        """How often each rule was the one that read an answer, the most frequent first."""
        return dict(Counter(one.score.rule for one in self.judged).most_common())

    @property
    def tokens(self) -> float | None:
        """The paper's "Tokens" of an answer: each prompt once for each member it went to, and all written."""
        return self._mean(lambda one: one.record.total.tokens)

    @property
    def written(self) -> float | None:
        """Tokens written for an answer, lost bids and answers that were not taken among them."""
        return self._mean(lambda one: one.record.total.written)

    def by_group(self, group: str) -> Mapping[str, tuple[int, float]]:
        """Answers and share of right ones for each value of a group; an item may be in several."""
        right: dict[str, list[bool]] = {}
        for one in self.judged:
            for value in one.record.item.groups.get(group, ()):
                right.setdefault(value, []).append(one.score.right)
        return {value: (len(found), sum(found) / len(found)) for value, found in sorted(right.items())}

    def _mean(self, value: Callable[[Judged], float]) -> float | None:
        return sum(map(value, self.judged)) / len(self.judged) if self.judged else None


def unanswered(failed: Collection[Record], fix: str) -> DataError:
    """What to say where items could not be answered, by whatever method and with whatever seed."""
    first = next(iter(failed))
    count = len({record.item.where for record in failed})
    what = "One item" if count == 1 else f"{count} items"
    such = "" if count == 1 else "such as "
    return DataError(f"{what} could not be answered, {such}{first.item.where}: {first.error}", fix)
