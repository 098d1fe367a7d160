"""``macr-local eval``: data sets, asked by one method or several, into a folder to go on with."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from macr_local.cli.console import say, verbose_option
from macr_local.cli.options import names_of, prompts_of, prompts_option, relay_options, settings_of
from macr_local.cli.progress import run_all
from macr_local.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from macr_local.evaluation.result import Result
    from macr_local.evaluation.runner import Plan
    from macr_local.pool import Pool
    from macr_local.settings import RelaySettings

HELP = """Ask whole data sets, with one method or several, and keep every answer.

DATA is a file, a folder or a name (macr-local data list). Each method's answers go to OUT/DATA/METHOD, one
line each, as they come. The same command again goes on where it stopped, and asks again what has failed.

\b
macr-local eval scenes --pool tiny --strategy macr --strategy vote --out runs
macr-local eval MMStar.tsv --strategy macr --seeds 3 --temperature 0.7 --limit 500 --out runs
macr-local score runs/scenes/macr
"""


@click.command(name="eval", help=HELP)
@click.argument("data", nargs=-1, required=True)
@click.option("--pool", metavar="NAME|FILE", help='A pool\'s name, or FILE.toml#NAME. Default: "default".')
@click.option("--members", metavar="A,B", help="Only these members, in this order.")
@click.option(
    "--strategy",
    "names",
    multiple=True,
    default=("macr",),
    metavar="METHOD",
    help="macr, single:MEMBER, vote, ...; may be repeated. Default: macr.",
)
@click.option(
    "--seeds", type=click.IntRange(min=1), default=1, metavar="N", help="Ask N times, from --seed on."
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="A random part of N items.")
@click.option("--limit-seed", type=int, default=0, show_default=True, metavar="N", help="Which part.")
@click.option(
    "--ids", type=click.Path(dir_okay=False), metavar="FILE", help="Only the ids in this file's lines."
)
@click.option("--shard", metavar="I/N", help="Only the I-th of N parts, for several processes.")
@click.option(
    "--asking",
    type=click.Choice(["plain", "vlmevalkit"]),
    default="plain",
    show_default=True,
    help="The words around question and options.",
)
@click.option(
    "--ending", metavar="TEXT", help='How answers are to end; "" says nothing. Default: by their kind.'
)
@prompts_option
@click.option("--no-traces", is_flag=True, help="Keep answers and counters only.")
@click.option(
    "--out", type=click.Path(file_okay=False), required=True, metavar="FOLDER", help="For all runs."
)
@relay_options
@verbose_option
def eval(data: tuple[str, ...], **options: Any) -> None:
    """Ask data sets; see `HELP`."""
    from macr_local.config import load_pool
    from macr_local.evaluation.datasets import open_dataset
    from macr_local.evaluation.method import methods
    from macr_local.evaluation.runner import Evaluation

    spec = load_pool(options["pool"], names_of(options["members"]))
    settings = settings_of(spec.settings, options)
    chosen = methods(options["names"], [member.name for member in spec.members])
    plan = _plan(settings, options)
    opened = [open_dataset(one) for one in dict.fromkeys(data)]
    name, times = Counter(one.name for one in opened).most_common(1)[0]
    if times > 1:
        raise click.UsageError(f'{times} data sets have the name "{name}"; evaluate each into its own --out')

    def evaluations(pool: Pool) -> Iterator[tuple[str, Evaluation]]:
        for one in opened:
            yield one.name, Evaluation(pool, one, chosen, settings, plan, Path(options["out"]))

    run_all(spec, evaluations, "The evaluation was interrupted")
    results = [_results(Path(options["out"]), one.name, [method.name for method in chosen]) for one in opened]
    _finish([result for each in results for result in each])


def _plan(settings: RelaySettings, options: dict[str, Any]) -> Plan:
    from macr_local.evaluation.runner import Plan
    from macr_local.evaluation.selection import Selection

    seeds = range(settings.seed, settings.seed + options["seeds"])
    if len(seeds) > 1 and settings.sampling.temperature == 0:
        raise click.UsageError(
            "with --temperature 0 every seed gives the same answers; give a temperature, or --seeds 1"
        )
    selection = Selection(
        options["limit"], options["limit_seed"], _ids(options["ids"]), _shard(options["shard"])
    )
    return Plan(
        tuple(seeds),
        selection,
        options["asking"],
        options["ending"],
        not options["no_traces"],
        prompts_of(options),
    )


def _ids(path: str | None) -> frozenset[str] | None:
    if path is None:
        return None
    try:
        lines = Path(path).read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"{path} cannot be read ({error})", "Give a text file with an id in each line"
        ) from None
    return frozenset(line.strip() for line in lines if line.strip())


def _shard(text: str | None) -> tuple[int, int]:
    if text is None:
        return 1, 1
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise click.UsageError(f'--shard is "{text}"; give the part and how many there are, such as 1/4')
    return int(match[1]), int(match[2])


def _results(out: Path, dataset: str, methods: list[str]) -> list[Result]:
    from macr_local.evaluation.result import Result
    from macr_local.evaluation.runner import safe

    return [Result.load(out / safe(dataset) / safe(method), "strict") for method in methods]


def _finish(results: list[Result]) -> None:
    width = max(len(f"{result.dataset} {result.method}") for result in results)
    say(f"{'':{width}}  {'answers':>8} {'right':>7} {'unread':>7} {'tokens':>8} {'written':>8}")
    for result in results:
        name = f"{result.dataset} {result.method}"
        if result.accuracy is None or result.tokens is None or result.written is None:
            say(f"{name:{width}}  no answer")
            continue
        say(
            f"{name:{width}}  {len(result.judged):8,} {result.accuracy:7.3f} {result.unparsed:7.3f} "
            f"{result.tokens:8.1f} {result.written:8.1f}"
        )
    from macr_local.evaluation.result import unanswered

    failed = [record for result in results for record in result.failed]
    if failed:
        raise unanswered(
            failed,
            "It is not counted as wrong. The same command asks again; a mended data file needs another --out",
        )
