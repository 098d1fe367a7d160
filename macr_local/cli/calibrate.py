"""``macr-local calibrate``: every member answers reference questions alone, and mu and sigma follow."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from macr_local.cli.console import report, say, verbose_option
from macr_local.cli.interrupt import Interrupts
from macr_local.cli.options import sampling_of, sampling_options
from macr_local.errors import Cancelled, DataError

if TYPE_CHECKING:
    from macr_local.calibrating import Outcome, Progress
    from macr_local.settings import RelaySettings

HELP = """Measure each member's own confidence (mu and sigma) on reference questions.

REFERENCE is a folder, a .jsonl or .tsv file with images and questions, or easy-vqa. An interrupted run goes
on where it stopped when the same command is given again.

\b
macr-local calibrate easy-vqa --pool tiny --limit 400 --out calibration/tiny
macr-local calibrate my-questions.jsonl --pool models.toml#mine
"""


@click.command(help=HELP)
@click.argument("reference")
@click.option("--pool", metavar="NAME|FILE", help='A pool\'s name, or FILE.toml#NAME. Default: "default".')
@click.option("--members", metavar="A,B", help="Only these members.")
@click.option("--limit", type=click.IntRange(min=2), metavar="N", help="A seeded sample of the questions.")
@click.option("--seed", type=int, default=0, show_default=True, help="For the sample and for every draw.")
@click.option("--max-tokens", type=int, metavar="N", help="At most this many tokens of answer.")
@sampling_options
@click.option("--window", type=click.IntRange(min=1), metavar="W", help="The w shown. Default: the pool's.")
@click.option(
    "--out", type=click.Path(file_okay=False), metavar="FOLDER", help="Default: the pool's own folder."
)
@click.option("--restart", is_flag=True, help="Drop what an interrupted run has left.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
@verbose_option
def calibrate(reference: str, **options: Any) -> None:
    """Calibrate a pool; see `HELP`."""
    from macr_local.calibrating import calibrate as run
    from macr_local.config import load_pool
    from macr_local.pool import Pool
    from macr_local.references import read

    members = options["members"]
    names = [name.strip() for name in members.split(",") if name.strip()] if members else None
    spec = load_pool(options["pool"], names)
    settings = _settings(spec.settings, options)
    folder = Path(options["out"]) if options["out"] else spec.calibration
    if folder is None:
        raise click.UsageError("The pool names no calibration folder; give one with --out")
    references = read(reference, options["limit"], options["seed"])
    with Interrupts() as interrupts, ExitStack() as stack:
        interrupts.give_up = _give_up
        progress = stack.enter_context(_Bar()) if sys.stderr.isatty() else _Lines()
        try:
            with Pool.open(spec) as pool:
                outcomes = run(
                    pool, references, folder, settings, restart=options["restart"], progress=progress
                )
        except KeyboardInterrupt:
            raise _interrupted() from None
    _show(outcomes, settings.window, folder, as_json=options["as_json"])
    problems = {where: why for outcome in outcomes for where, why in outcome.problems}
    if problems:
        where, why = next(iter(problems.items()))
        raise DataError(
            f"{len(problems)} of {len(references.items)} questions could not be used, such as {where}: {why}",
            "The others are calibrated; mend the rows and calibrate again to include them",
        )


def _interrupted() -> Cancelled:
    return Cancelled("Calibrating was interrupted", "Run the same command again to go on where it stopped")


def _give_up() -> None:
    """The last words where llama.cpp does not come back in time; the bar had hidden the cursor."""
    if sys.stderr.isatty():
        say("\x1b[?25h", err=True)
    report(_interrupted())


def _settings(pool: RelaySettings, options: dict[str, Any]) -> RelaySettings:
    return replace(
        pool,
        sampling=sampling_of(pool.sampling, options),
        seed=options["seed"],
        window=options["window"] or pool.window,
        max_tokens=options["max_tokens"] or pool.max_tokens,
    )


def _show(outcomes: Sequence[Outcome], window: int, folder: Path, *, as_json: bool) -> None:
    from dataclasses import asdict

    from macr_local.shift import shift

    found = {o.calibration.origin.member: o.calibration for o in outcomes}
    moved = shift(found, window)
    if as_json:
        import json

        members = {
            name: {
                "statistics": asdict(statistics) if (statistics := calibration.statistics(window)) else None,
                "questions": calibration.origin.questions,
            }
            for name, calibration in found.items()
        }
        result = {"folder": str(folder), "window": window, "members": members}
        say(json.dumps({**result, "shift": asdict(moved) if moved else None}))
        return
    width = max(map(len, found))
    head = f"{'member':{width}}  {'mu':>8} {'sigma':>8} {'windows':>8} {'questions':>9}"
    say(f"{head}   (w = {window}, in nats)")
    for outcome in outcomes:
        name, statistics = outcome.calibration.origin.member, outcome.calibration.statistics(window)
        if statistics is None:
            say(f"{name:{width}}  no answer is {window} tokens long")
            continue
        resumed = f"   ({outcome.resumed} from the run before)" if outcome.resumed else ""
        say(
            f"{name:{width}}  {statistics.mu:8.4f} {statistics.sigma:8.4f} {statistics.windows:8,} "
            f"{statistics.questions:9,}{resumed}"
        )
    if moved is not None:
        say(f"shift between members, one window of each of {moved.questions} questions, in SD [95 %]:")
        for gap in moved.gaps:
            say(
                f"  {gap.first} - {gap.second}: raw {_interval(gap.raw, gap.raw_interval)}, "
                f"standardised (held out) {_interval(gap.standardised, gap.standardised_interval)}"
            )
        say(f"  F = {moved.f_one_window:.2f} (over all overlapping windows: {moved.f_all_windows:.1f})")
    say(f"saved in {folder}")


def _interval(value: float, interval: tuple[float, float]) -> str:
    return f"{value:+.2f} [{interval[0]:+.2f}, {interval[1]:+.2f}]"


class _Bar:
    """A progress bar on the terminal, one per member."""

    def __init__(self) -> None:
        self._member = ""
        self._stack = ExitStack()
        self._bar: Any = None

    def __enter__(self) -> Progress:
        return self._told

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _told(self, member: str, done: int, total: int) -> None:
        if member != self._member:
            self._stack.close()
            bar = click.progressbar(length=total, label=member, file=sys.stderr, show_pos=True)
            self._bar, self._member = self._stack.enter_context(bar), member
        self._bar.update(done - self._bar.pos)


class _Lines:
    """Without a terminal: a line now and then, so that a log shows that it lives."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, member: str, done: int, total: int) -> None:
        if done == total or time.monotonic() - self._last > 10:
            self._last = time.monotonic()
            say(f"{member}: {done} of {total}", err=True)
