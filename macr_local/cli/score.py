"""``macr-local score``: what kept answers come to, read by both scorers; nothing is asked."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from macr_local.cli.console import say, verbose_option

if TYPE_CHECKING:
    from macr_local.evaluation.result import Result

HELP = """Score the answers of runs again, without any model.

RUN is a folder OUT/DATA/METHOD that macr-local eval has made, or one above several. Two readings stand side
by side: "strict", and "compat:vlmevalkit", which reads as that harness does without a judge.

\b
macr-local score runs/scenes/macr --by family
"""


@click.command(help=HELP)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@click.option("--by", "group", metavar="GROUP", help="Break down by a group of the items, such as category.")
@click.option("--rules", is_flag=True, help="How often each rule was the one that read an answer.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as one JSON object.")
@verbose_option
def score(runs: tuple[Path, ...], group: str | None, *, rules: bool, as_json: bool) -> None:
    """Score runs; see `HELP`."""
    from macr_local.evaluation.result import unanswered
    from macr_local.evaluation.run import folders
    from macr_local.evaluation.table import Scored

    every = [result for folder in folders(runs) for result in Scored.load(folder).by.values()]
    found = [result for result in every if result.applies]
    if as_json:
        say(json.dumps([_plain(result) for result in found]))
    else:
        _show(found, group, rules=rules)
    failed = {record.key: record for result in found for record in result.failed}
    if failed:
        raise unanswered(failed.values(), "It is not counted as wrong; run macr-local eval again to ask it")


def _show(results: list[Result], group: str | None, *, rules: bool) -> None:
    width = max(len(_name(result)) for result in results)
    say(f"{'':{width}}  {'answers':>8} {'right':>7} {'unread':>7} {'unscored':>9}   each seed")
    for result in results:
        if result.accuracy is None:
            say(f"{_name(result):{width}}  {_nothing(result)}")
            continue
        seeds = " ".join(f"{share:.3f}" for share in result.accuracies.values())
        shares = f"{result.accuracy:7.3f} {result.unparsed:7.3f}"
        say(f"{_name(result):{width}}  {len(result.judged):8,} {shares} {result.unscored:9,}   {seeds}")
        _ratings(result, width)
        if group is not None:
            for value, (number, share) in result.by_group(group).items():
                say(f"{'  ' + value:{width}}  {number:8,} {share:7.3f}")
        if rules:
            for rule, number in result.rules.items():
                say(f"{'  ' + rule:{width}}  {number:8,}")


def _ratings(result: Result, width: int) -> None:
    for seed, rated in result.ratings.items():
        name = f"  aAcc, fAcc, qAcc (seed {seed})"
        say(f"{name:{width}}  {rated.all:.3f}, {rated.figures:.3f}, {rated.questions:.3f}")


def _nothing(result: Result) -> str:
    if result.unscored:
        why = ", ".join(f"{count:,} {reason}" for reason, count in result.passed_over.items())
        return f"says nothing about these answers ({why})"
    return "no answer"


def _name(result: Result) -> str:
    return f"{result.dataset} {result.method} {result.scorer}"


def _plain(result: Result) -> dict[str, Any]:
    groups = sorted({group for one in result.judged for group in one.record.item.groups})
    return {
        "dataset": result.dataset,
        "method": result.method,
        "scorer": result.scorer,
        "items": result.items,
        "answers": len(result.judged),
        "accuracy": result.accuracy,
        "accuracies": {str(seed): share for seed, share in result.accuracies.items()},
        "unparsed": result.unparsed,
        "unscored": result.unscored,
        "passed_over": dict(result.passed_over),
        "failed": len(result.failed),
        "tokens": result.tokens,
        "written": result.written,
        "rules": dict(result.rules),
        "ratings": {str(seed): asdict(rated) for seed, rated in result.ratings.items()},
        "groups": {
            group: {value: {"answers": n, "accuracy": share} for value, (n, share) in of.items()}
            for group in groups
            if (of := result.by_group(group))
        },
    }
