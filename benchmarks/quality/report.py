"""Runs as tables for people and as plain values for programs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from benchmarks.quality.claims import auroc
from benchmarks.quality.run import Run
from benchmarks.quality.summary import Causes, Line, ahead, causes, cost, lines
from macr_local.evaluation.statistics.estimate import Estimate

RELAY = "relay"


def by_tasks(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Runs of each set of questions."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(run.header.tasks, []).append(run)
    return found


def as_dict(runs: Sequence[Run]) -> dict[str, Any]:
    """Everything that is known, as plain values; intervals are 95 %, and None where the data say nothing."""
    found: dict[str, Any] = _without_nan(_as_dict(runs))
    return found


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _as_dict(runs: Sequence[Run]) -> dict[str, Any]:
    return {
        tasks: {
            "runs": [asdict(run.header) for run in some],
            "methods": [_plain(line, some) for line in lines(some)],
            "relay": _values(causes(some)) if tasks == "scenes" else None,
            "surer_when_right": {
                name: {what: asdict(found) for what, found in each.items()}
                for name, each in surer(some).items()
            },
            "between_members": [run.held_out for run in some],
        }
        for tasks, some in by_tasks(runs).items()
    }


def _plain(line: Line, runs: Sequence[Run]) -> dict[str, Any]:
    values = _values(line)
    if line.method != RELAY and any(o.method == RELAY for o in runs[0].outcomes):
        values["relay_ahead"] = asdict(ahead(runs, RELAY, line.method))
        values["relay_tokens_per_token"] = asdict(cost(runs, RELAY, line.method))
    return values


def _values(record: Line | Causes) -> dict[str, Any]:
    return asdict(record)


def surer(runs: Sequence[Run]) -> dict[str, dict[str, Estimate]]:
    """AUROC of each member's mean log-probability, for right answers and for right chains."""
    found = {}
    for name in members(runs):
        own = [(number, o) for number, run in enumerate(runs) for o in run.outcomes if o.method == name]
        clusters = [(number, o.cluster) for number, o in own]
        scores = [o.mean if o.mean is not None else float("-inf") for _, o in own]
        found[name] = {"answer": auroc(scores, [o.right for _, o in own], clusters)}
        if all(o.chain is not None for _, o in own):
            found[name]["chain"] = auroc(scores, [bool(o.chain) for _, o in own], clusters)
    return found


def members(runs: Sequence[Run]) -> list[str]:
    """Those that answered alone, who come before all ways to choose among them."""
    names = list(dict.fromkeys(o.method for o in runs[0].outcomes))
    return names[: names.index("vote")]


def show(runs: Sequence[Run]) -> None:
    """Print tables in Markdown."""
    for tasks, some in by_tasks(runs).items():
        seeds = sorted({run.header.training_seed for run in some})
        draws = sorted({run.header.sampling_seed for run in some})
        first = some[0].header
        questions = len({outcome.key for outcome in some[0].outcomes})
        print(
            f"\n## {tasks}: {first.variant}, {first.split} split, {questions} questions in each of "
            f"{len(some)} runs (training seeds {seeds}, sampling seeds {draws}, T = {first.temperature})\n"
        )
        _show_lines(some)
        if tasks == "scenes":
            _show_causes(causes(some))
        _show_claims(some)


def _show_lines(runs: Sequence[Run]) -> None:
    heads = (
        "",
        "right",
        "each run",
        "whole chain",
        "relay ahead by",
        "written",
        "relay's share",
        "prompt",
        "read",
    )
    print("| " + " | ".join([*heads, "relays", "seconds"]) + " |")
    print("|---" * (len(heads) + 2) + "|")
    has_relay = any(o.method == RELAY for o in runs[0].outcomes)
    for line in lines(runs):
        other = has_relay and line.method != RELAY
        cells = [
            line.method,
            str(line.right),
            " ".join(f"{share:.3f}" for share in line.by_run),
            "" if line.chain is None else str(line.chain),
            str(ahead(runs, RELAY, line.method)) if other else "",
            f"{line.generated.value:.1f}",
            f"{cost(runs, RELAY, line.method).value:.2f}" if other else "",
            f"{line.prompt:.0f}",
            f"{line.ingested:.0f}",
            f"{line.relays:.2f}",
            f"{line.seconds:.3f}",
        ]
        print("| " + " | ".join(cells) + " |")
    print("\n| right | " + " | ".join(families := list(lines(runs)[0].families)) + " |")
    print("|---|" + "---|" * len(families))
    for line in lines(runs):
        print(f"| {line.method} | " + " | ".join(f"{line.families[f]:.2f}" for f in families) + " |")


def _show_causes(found: Causes) -> None:
    print(
        f"\nTriggers on a word the leader cannot know: {found.precision}, by chance {found.chance}: "
        f"{found.lift} times.\nSuch words that triggered: {found.recall}.\nBids then won by a member that "
        f"knows: {found.knower}, by lot {found.lot}: {found.knower_lift} times.\n"
        f"Values in the answer whose writer cannot know them: {found.unknown}."
    )


def _show_claims(runs: Sequence[Run]) -> None:
    print("\nHow likely a right answer is surer than a wrong one (AUROC of the mean log-probability):\n")
    for name, each in surer(runs).items():
        print(f"* {name}: " + ", ".join(f"{what} {found}" for what, found in each.items()))
    print("\nBetween the members, on held-out reference questions, one window from each:\n")
    for run in runs:
        if run.held_out is None:
            continue
        for what in ("raw", "standardised"):
            found = run.held_out[what]
            eta2 = Estimate(**found["eta2"])
            print(
                f"* training seed {run.header.training_seed}, {what}: F = {found['f']:.2f} "
                f"(95 % of exchanged ones are below {found['null']:.2f}), eta squared {eta2}"
            )
