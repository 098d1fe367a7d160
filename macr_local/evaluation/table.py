"""Rows of a results table: one method on one data set, with all that belongs beside its accuracy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev

import numpy as np

from macr_local.evaluation.manifest import Manifest
from macr_local.evaluation.result import Result
from macr_local.evaluation.run import read
from macr_local.evaluation.score import SCORERS, Scorer
from macr_local.evaluation.statistics.estimate import Estimate, Floats, Sums
from macr_local.evaluation.statistics.ibc import Average, Point, ibc, ibc_of_pool, standing

BASE = "single"


@dataclass(frozen=True, slots=True)
class Row:
    """One method on one data set, under one scorer.

    Attributes:
        dataset: The data set.
        method: The method, with its member where it has one: "cot:qwen".
        items: Different items that were answered.
        seeds: With how many seeds.
        accuracy: Share of right answers, the mean over seeds.
        deviation: Sample standard deviation over seeds (n - 1), as the paper prints it; None of one seed. It
            says how much sampling moves the number, and nothing about other questions.
        interval: 95 %, from a bootstrap over clusters of items: how much other questions would move it.
        other: Accuracy under the other scorers that judge these answers.
        unparsed: Share of answers in which nothing was found.
        unscored: Answers that the scorer says nothing about.
        failed: Items that could not be answered; not among the others.
        tokens: The paper's "Tokens": each prompt once for each member it went to, and all that was written.
        written: Tokens written.
        ibc: Incremental benefit per cost over the plain answers of the same member, or of all members.
        ibc_interval: Its 95 %, items resampled jointly.
        standing: "dominates" or "dominated" where all of those it is measured by are worse, or better.
        ratings: HallusionBench's accuracies by name, the mean over seeds; empty for other data sets.
    """

    dataset: str
    method: str
    items: int
    seeds: int
    accuracy: float
    deviation: float | None
    interval: Estimate
    other: Mapping[str, float]
    unparsed: float
    unscored: int
    failed: int
    tokens: float
    written: float
    ibc: float | None
    ibc_interval: Estimate | None
    standing: str
    ratings: Mapping[str, float]

    @property
    def strategy(self) -> str:
        """The method without its member."""
        return self.method.partition(":")[0]

    @property
    def member(self) -> str:
        """The member; empty where all take part."""
        return self.method.partition(":")[2]


@dataclass(frozen=True, slots=True)
class Scored:
    """A run under every scorer."""

    dataset: str
    method: str
    by: Mapping[Scorer, Result]

    @classmethod
    def load(cls, folder: Path) -> Scored:
        """Score the run in a folder.

        Raises:
            DataError: There is none, or it is damaged.
        """
        manifest, records = Manifest.load(folder), list(read(folder))
        name, method = manifest.dataset, manifest.method
        return cls(name, method, {scorer: Result.of(name, method, records, scorer) for scorer in SCORERS})


def rows(runs: Iterable[Scored], scorer: Scorer = "strict", average: Average = "paper") -> list[Row]:
    """A row for each run with answers, in the order given.

    Args:
        runs: Runs, of any data sets and methods.
        scorer: Whose judgement the accuracy is.
        average: How a method of several members is measured against all of them.
    """
    given = list(runs)
    bases = {(run.dataset, run.method): run.by[scorer] for run in given if _is_base(run.method)}
    return [
        _row(run, scorer, _bases(run, bases), average) for run in given if run.by[scorer].accuracy is not None
    ]


def _is_base(method: str) -> bool:
    return method.partition(":")[0] == BASE


def _bases(run: Scored, bases: Mapping[tuple[str, str], Result]) -> list[Result]:
    if _is_base(run.method):
        return []
    strategy, _, member = run.method.partition(":")
    own = bases.get((run.dataset, f"{BASE}:{member}"))
    if member and not strategy.startswith("macr"):
        return [own] if own is not None and own.accuracy is not None else []
    of_data = (base for (dataset, _), base in bases.items() if dataset == run.dataset)
    return [base for base in of_data if base.accuracy is not None]


def _row(run: Scored, scorer: Scorer, bases: Sequence[Result], average: Average) -> Row:
    result = run.by[scorer]
    each = list(result.accuracies.values())
    other: dict[str, float] = {
        name: found.accuracy
        for name, found in run.by.items()
        if name != scorer and found.accuracy is not None and len(found.judged) == len(result.judged)
    }
    point, by = _point(result), [_point(base) for base in bases]
    value = ibc_of_pool(point, by, average) if len(by) != 1 else ibc(point, by[0])
    return Row(
        dataset=run.dataset,
        method=run.method,
        items=result.items,
        seeds=len(result.seeds),
        accuracy=fmean(each),
        deviation=stdev(each) if len(each) > 1 else None,
        interval=result.interval,
        other=other,
        unparsed=result.unparsed or 0.0,
        unscored=result.unscored,
        failed=len(result.failed),
        tokens=result.tokens or 0.0,
        written=result.written or 0.0,
        ibc=value,
        ibc_interval=None if value is None else _ibc_interval(result, bases),
        standing=standing(point, by),
        ratings=_ratings(result),
    )


def _point(result: Result) -> Point:
    return Point(100 * fmean(result.accuracies.values()), result.tokens or 0.0)


def _ratings(result: Result) -> dict[str, float]:
    rated = list(result.ratings.values())
    if not rated:
        return {}
    return {
        "aAcc": fmean(one.all for one in rated),
        "fAcc": fmean(one.figures for one in rated),
        "qAcc": fmean(one.questions for one in rated),
    }


def _ibc_interval(result: Result, bases: Sequence[Result]) -> Estimate:
    """The unrounded mean over bases, on the answers that all of them have in common."""
    found = [{one.record.key: one for one in each.judged} for each in (result, *bases)]
    common = [key for key in found[0] if all(key in each for each in found)]
    if not common:
        return Estimate(math.nan, math.nan, math.nan)
    columns = [
        [x for each in found for x in (float(each[key].score.right), each[key].record.total.tokens)] + [1.0]
        for key in common
    ]

    def statistic(totals: Floats) -> Floats:
        means = totals[..., :-1] / totals[..., -1:]
        gains, costs = means[..., :1] - means[..., 2::2], means[..., 1:2] - means[..., 3::2]
        slopes = np.where(costs > 0, gains / np.where(costs > 0, costs, 1), np.nan)
        return np.asarray(slopes.mean(-1) * 1e6)

    return Sums([found[0][key].record.item.cluster_or_id for key in common], columns).estimate(statistic)
