"""``macr-local tune``: choose the relay's settings on data that is not evaluated on."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from macr_local.cli.console import say, verbose_option
from macr_local.cli.options import names_of, relay_options, settings_of
from macr_local.cli.progress import run_all

if TYPE_CHECKING:
    from collections.abc import Iterator

    from macr_local.evaluation.tuning import Choice, Setting
    from macr_local.pool import Pool

HELP = """Choose w, tau and cooldown for a pool, by asking DATA with every combination.

The choice is kept beside the pool's calibration, with all that was tried, and is what the pool relays with
from then on; options of other commands take its place. Name the data that you will evaluate on with
--apart-from: an image in both is refused, now and later by macr-local eval. Ended early, the same command
goes on.

\b
macr-local tune scenes:tuning --pool tiny --limit 200 --apart-from scenes --out runs/tuning
"""


def _numbers(kind: type[int] | type[float]) -> Any:
    def read(context: click.Context, parameter: click.Parameter, text: str) -> list[float]:
        try:
            return [kind(one) for one in text.split(",")]
        except ValueError:
            raise click.BadParameter(f'"{text}" is no list such as {parameter.default}') from None

    return read


@click.command(help=HELP)
@click.argument("source", metavar="DATA")
@click.option("--pool", metavar="NAME|FILE", help='A pool\'s name, or FILE.toml#NAME. Default: "default".')
@click.option("--members", metavar="A,B", help="Only these members, in this order.")
@click.option(
    "--apart-from", "others", multiple=True, metavar="DATA", help="What will be evaluated; may be repeated."
)
@click.option(
    "--windows", default="2,4,8,16,32", show_default=True, callback=_numbers(int), metavar="W,...", help="w."
)
@click.option(
    "--thresholds",
    default="-2,-1,-0.6,-0.3,0",
    show_default=True,
    callback=_numbers(float),
    metavar="T,...",
    help="tau.",
)
@click.option(
    "--cooldowns", default="0", show_default=True, callback=_numbers(int), metavar="N,...", help="Cooldowns."
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="A random part of N items.")
@click.option("--limit-seed", type=int, default=0, show_default=True, metavar="N", help="Which part.")
@click.option(
    "--ending", metavar="TEXT", help='How answers are to end; "" says nothing. Default: by their kind.'
)
@click.option("--dry-run", is_flag=True, help="Keep nothing but the answers.")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as one JSON object.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    metavar="FOLDER",
    help="For answers.",
)
@relay_options
@verbose_option
def tune(source: str, **options: Any) -> None:
    """Tune a pool; see `HELP`."""
    from macr_local.config import load_pool
    from macr_local.evaluation.datasets import open_dataset
    from macr_local.evaluation.result import Result, unanswered
    from macr_local.evaluation.runner import Evaluation, Plan, safe
    from macr_local.evaluation.selection import Selection
    from macr_local.evaluation.tuning import Setting, apart, choose, grid, pixels
    from macr_local.tuning import Tuning, digests

    spec = load_pool(options["pool"], names_of(options["members"] or None))
    if spec.calibration is None:
        raise click.UsageError("The pool names no calibration folder, where the choice would be kept")
    settings = settings_of(spec.settings, options)
    before = Setting.of(settings)
    settings_tried = grid(options["windows"], options["thresholds"], options["cooldowns"], before)
    for one in settings_tried:
        one.method.settings(settings)  # a value that is out of range shows before anything is asked
    data = open_dataset(source)
    plan = Plan(
        (settings.seed,),
        Selection(options["limit"], options["limit_seed"]),
        ending=options["ending"],
        traces=False,
    )
    wanted = plan.selection.of(data.ids(), data.name)
    images = dict.fromkeys(digest for _, digest in pixels(data, wanted))
    for other in options["others"]:
        apart(images, open_dataset(other))
    methods = [one.method for one in settings_tried]

    def evaluations(pool: Pool) -> Iterator[tuple[str, Evaluation]]:
        yield f"tuning on {data.name}", Evaluation(pool, data, methods, settings, plan, options["out"])

    # What was tuned on before may be tuned on again.
    run_all(replace(spec, tuning=None), evaluations, "Tuning was interrupted")
    folder = options["out"] / safe(data.name)
    judged = [(one, Result.load(folder / safe(str(one)), "strict", wanted)) for one in settings_tried]
    choice = choose(judged, before)
    best = choice.best.setting
    kept = None
    if not options["dry_run"]:
        tuning = Tuning(
            window=best.window,
            threshold=best.threshold,
            cooldown=best.cooldown,
            data=data.name,
            items=len(wanted),
            date=datetime.now(UTC).date().isoformat(),
            images=tuple(images),
            calibrations=digests(spec.calibration, [member.name for member in spec.members]),
            evidence={"data": dict(data.identity()), "apart_from": options["others"], **_evidence(choice)},
        )
        kept = tuning.save(spec.calibration)
    if options["as_json"]:
        say(json.dumps({**_evidence(choice), "kept": None if kept is None else str(kept)}))
    else:
        _show(choice, kept)
    failed = {record.key: record for _, result in judged for record in result.failed}
    if failed:
        raise unanswered(failed.values(), "They are left out; mend them and run the same command again")


def _evidence(choice: Choice) -> dict[str, Any]:
    return {
        "chosen": asdict(choice.best.setting),
        "before": asdict(choice.before),
        "gain": None if choice.gain is None else {**asdict(choice.gain.difference), "p": choice.gain.p},
        "tried": [
            {**asdict(trial.setting), **asdict(trial.accuracy), "written": trial.written}
            for trial in choice.trials
        ],
    }


def _show(choice: Choice, kept: Path | None) -> None:
    width = max(len(str(trial.setting)) for trial in choice.trials)
    say(f"{'':{width}}  {'right [95 %]':>23} {'written':>8}")
    for trial in choice.trials:
        note = _note(trial.setting, choice)
        say(f"{trial.setting!s:{width}}  {trial.accuracy!s:>23} {trial.written:8.1f}{note}")
    if choice.gain is not None:
        say(f"against {choice.before}: {choice.gain.difference} (p = {choice.gain.p:.4f})")
    say("The best of many looks better than it is: measure it on other data.")
    if kept is not None:
        say(f"kept in {kept}")


def _note(setting: Setting, choice: Choice) -> str:
    if setting == choice.best.setting:
        return "  chosen"
    return "  before" if setting == choice.before else ""
