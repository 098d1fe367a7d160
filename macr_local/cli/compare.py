"""``macr-local compare``: what one method gains over others on the same questions."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from macr_local.cli.console import say, verbose_option
from macr_local.cli.options import scorer_option
from macr_local.errors import DataError

if TYPE_CHECKING:
    from macr_local.evaluation.statistics.paired import Comparison

HELP = """Compare a run with others, question by question.

A is a run; each B is one too, or a folder above several. With --of METHOD all folders may be above several,
and that method is compared with all others on each data set. Differences come with a 95 % interval over
images, p of sign flips (Holm: adjusted for all comparisons that are shown), McNemar's exact p of each seed,
and the ratio of tokens.

\b
macr-local compare runs/scenes/macr runs/scenes/vote
macr-local compare runs --of macr
"""


@click.command(help=HELP)
@click.argument("runs", nargs=-1, required=True, metavar="A B...", type=click.Path(path_type=Path))
@click.option("--of", "method", metavar="METHOD", help="Compare this method with all others.")
@scorer_option
@click.option("--json", "as_json", is_flag=True, help="Print everything as one JSON object.")
@verbose_option
def compare(runs: tuple[Path, ...], method: str | None, scorer: str, *, as_json: bool) -> None:
    """Compare runs; see `HELP`."""
    from macr_local.evaluation.result import Result
    from macr_local.evaluation.run import folders
    from macr_local.evaluation.statistics.paired import compare as paired
    from macr_local.evaluation.statistics.paired import holm

    loaded = [Result.load(folder, scorer) for folder in folders(runs)]  # type: ignore[arg-type]
    if method is None:
        first = folders(runs[:1])
        if len(first) > 1:
            raise click.UsageError(f"{runs[0]} holds {len(first)} runs; give one of them, or --of METHOD")
        ours = loaded[:1]
    else:
        ours = [result for result in loaded if result.method == method]
        if not ours:
            raise DataError(
                f'No run is of the method "{method}"',
                f"Use one of {', '.join(dict.fromkeys(result.method for result in loaded))}",
            )
    found = [
        paired(one, other)
        for one in ours
        for other in loaded
        if other is not one and other.dataset == one.dataset and (method is None or other.method != method)
    ]
    if not found:
        raise DataError("There is nothing to compare with", "Give a second run of the same data set")
    adjusted = holm([one.p for one in found])
    if as_json:
        plain = [{**asdict(one), "p_holm": p} for one, p in zip(found, adjusted, strict=True)]
        say(json.dumps(plain))
    else:
        _show(found, adjusted)


def _show(found: list[Comparison], adjusted: list[float]) -> None:
    names = [f"{one.dataset}: {one.first} - {one.second}" for one in found]
    width = max(map(len, names))
    say(f"{'':{width}}  {'items':>6} {'points':>7} {'95 %':>15} {'p':>7} {'Holm':>7}  tokens, by the other's")
    for name, one, holm in zip(names, found, adjusted, strict=True):
        low, high = 100 * one.difference.low, 100 * one.difference.high
        points = f"{100 * one.difference.value:+7.2f} {f'[{low:+.1f}, {high:+.1f}]':>15}"
        say(f"{name:{width}}  {one.items:6,} {points} {one.p:7.4f} {holm:7.4f}  {one.tokens}")
        for seed, test in one.mcnemar.items():
            say(f"{'':{width}}  seed {seed}: {test.first} to {test.second}, McNemar p = {test.p:.4g}")
        if one.left_out:
            say(f"{'':{width}}  {one.left_out} answers have no counterpart and are left out")
