"""What runs say: shares with intervals, differences on the same questions, causes."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from benchmarks.quality.mechanism import Mechanism
from benchmarks.quality.run import Run
from benchmarks.quality.trial import Outcome
from macr_local.evaluation.statistics.estimate import Estimate, Sums, ratio, share

Key = tuple[int, int, str]
"""Training seed, sampling seed, question."""


@dataclass(frozen=True, slots=True)
class Line:
    """One method over all runs.

    Attributes:
        method: Its name.
        questions: Answers there are.
        right: Share of right answers; intervals resample images.
        by_run: The share in each run, whose pools were trained or drew with other seeds.
        spread: Standard deviation of those (ddof = 1); None of one.
        chain: Share of answers all of whose values are right; None where nobody knows them.
        families: Share of right answers in each family of questions.
        generated: Tokens written for an answer, whether they joined it or not.
        prompt: Cells of the prompt, in all members that were given it.
        ingested: Tokens of others' words that members read.
        relays: After initiation.
        handovers: Those to another member.
        seconds: Median.
    """

    method: str
    questions: int
    right: Estimate
    by_run: tuple[float, ...]
    spread: float | None
    chain: Estimate | None
    families: dict[str, float]
    generated: Estimate
    prompt: float
    ingested: float
    relays: float
    handovers: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Causes:
    """Whether the relay's decisions fell where they should.

    Attributes:
        precision: Share of triggers on a token that the leader cannot know.
        chance: Share of such tokens among all that were judged.
        lift: The first by the second.
        recall: Share of such tokens that triggered.
        knower: Share of bids after such triggers that a member won who knows.
        lot: The share that a draw among the members would give.
        knower_lift: The first by the second.
        unknown: Share of stated values whose writer cannot know them.
    """

    precision: Estimate
    chance: Estimate
    lift: Estimate
    recall: Estimate
    knower: Estimate
    lot: Estimate
    knower_lift: Estimate
    unknown: Estimate


def lines(runs: Sequence[Run]) -> list[Line]:
    """Every method, in the order of the first run."""
    names = dict.fromkeys(outcome.method for run in runs for outcome in run.outcomes)
    return [_line(name, runs) for name in names]


def _line(name: str, runs: Sequence[Run]) -> Line:
    own = [[o for o in run.outcomes if o.method == name] for run in runs]
    everything = [(number, o) for number, outcomes in enumerate(own) for o in outcomes]
    clusters = [(number, o.cluster) for number, o in everything]
    outcomes = [o for _, o in everything]
    by_run = tuple(statistics.fmean(o.right for o in some) for some in own if some)
    known = all(o.chain is not None for o in outcomes)
    families = dict.fromkeys(o.family for o in outcomes)
    return Line(
        method=name,
        questions=len(outcomes),
        right=share(clusters, [o.right for o in outcomes]),
        by_run=by_run,
        spread=statistics.stdev(by_run) if len(by_run) > 1 else None,
        chain=share(clusters, [bool(o.chain) for o in outcomes]) if known else None,
        families={f: statistics.fmean(o.right for o in outcomes if o.family == f) for f in families},
        generated=Sums(clusters, [(o.generated, 1) for o in outcomes]).estimate(ratio()),
        prompt=statistics.fmean(o.prompt for o in outcomes),
        ingested=statistics.fmean(o.ingested for o in outcomes),
        relays=statistics.fmean(o.relays for o in outcomes),
        handovers=statistics.fmean(o.handovers for o in outcomes),
        seconds=statistics.median(o.seconds for o in outcomes),
    )


def causes(runs: Sequence[Run], method: str = "relay") -> Causes:
    """Why the answer changed hands, over all runs."""
    rows = [(number, o) for number, run in enumerate(runs) for o in run.outcomes if o.method == method]
    clusters = [(number, o.cluster) for number, o in rows]
    names = list(asdict(Mechanism()))
    sums = Sums(clusters, [list(asdict(o.mechanism).values()) for _, o in rows])

    def share(above: str, below: str) -> Estimate:
        return sums.estimate(ratio(names.index(above), names.index(below)))

    def lift(a: str, b: str, c: str, d: str) -> Estimate:
        i, j, k, m = (names.index(name) for name in (a, b, c, d))
        return sums.estimate(lambda t: (t[..., i] / t[..., j]) / (t[..., k] / t[..., m]))

    return Causes(
        precision=share("hits", "triggers"),
        chance=share("watched_weak", "watched"),
        lift=lift("hits", "triggers", "watched_weak", "watched"),
        recall=share("hits", "watched_weak"),
        knower=share("won_by_knower", "contests"),
        lot=share("knowers", "contests"),
        knower_lift=share("won_by_knower", "knowers"),
        unknown=share("values_unknown", "values"),
    )


def answers(runs: Sequence[Run], method: str) -> dict[Key, Outcome]:
    """A method's outcomes by question."""
    return {
        (run.header.training_seed, run.header.sampling_seed, o.key): o
        for run in runs
        for o in run.outcomes
        if o.method == method
    }


def ahead(runs: Sequence[Run], first: str, second: str) -> Estimate:
    """By how much one method is right more often than another on the same questions."""
    a, b = answers(runs, first), answers(runs, second)
    if a.keys() != b.keys():
        raise ValueError(f"{first} and {second} were not asked the same questions")
    clusters = [(*key[:2], o.cluster) for key, o in a.items()]
    rows = [(int(o.right) - int(b[key].right), 1) for key, o in a.items()]
    return Sums(clusters, rows).estimate(ratio())


def cost(runs: Sequence[Run], first: str, second: str) -> Estimate:
    """How many tokens one method writes for each of another."""
    a, b = answers(runs, first), answers(runs, second)
    clusters = [(*key[:2], o.cluster) for key, o in a.items()]
    return Sums(clusters, [(o.generated, b[key].generated) for key, o in a.items()]).estimate(ratio())


ANY = "any right"
"""Who always picked a member that is right, if there is one."""


def with_any(run: Run, members: Sequence[str]) -> Run:
    """The run, and what choosing among its members' answers could reach at best."""
    each = [{o.key: o for o in run.outcomes if o.method == name} for name in members]
    best = []
    for key in each[0]:
        given = [found[key] for found in each]
        best.append(
            replace(
                given[0],
                method=ANY,
                right=any(o.right for o in given),
                chain=None if given[0].chain is None else any(bool(o.chain) for o in given),
                committed=max(o.committed for o in given),
                discarded=sum(o.generated for o in given) - max(o.committed for o in given),
                prompt=sum(o.prompt for o in given),
                seconds=sum(o.seconds for o in given),
                mechanism=Mechanism(),
            )
        )
    return replace(run, outcomes=[*run.outcomes, *best])
