"""``macr-local export``: kept answers as files of other harnesses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from macr_local.cli.console import say, verbose_option
from macr_local.errors import DataError

if TYPE_CHECKING:
    from macr_local.evaluation.record import Record

HELP = """Write a run's answers as a file of another harness, for its own scoring.

\b
macr-local export runs/MMStar/macr --to vlmevalkit-xlsx --out macr_MMStar.xlsx
macr-local export runs/scenes/macr --to lmms-eval --out samples.jsonl
"""


@click.command(help=HELP)
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--to",
    "form",
    type=click.Choice(["vlmevalkit-tsv", "vlmevalkit-json", "vlmevalkit-xlsx", "lmms-eval"]),
    required=True,
    help="Whose prediction or sample file.",
)
@click.option("--seed", type=int, metavar="N", help="Answers with this seed. Default: the first of the run.")
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), required=True, metavar="FILE", help="The file."
)
@verbose_option
def export(run: Path, form: str, seed: int | None, out: Path) -> None:
    """Export a run; see `HELP`."""
    from macr_local.evaluation.export import as_tsv, as_xlsx, lmms_eval, vlmevalkit
    from macr_local.evaluation.manifest import Manifest
    from macr_local.evaluation.run import read

    Manifest.load(run)  # says that there is no run
    kept: dict[tuple[str, int], Record] = {}
    for record in read(run):
        if record.key not in kept or not record.error:
            kept[record.key] = record
    records = list(kept.values())
    seeds = sorted({record.seed for record in records})
    if not seeds or (seed is not None and seed not in seeds):
        which = f" with seed {seed}" if seed is not None else ""
        raise DataError(
            f"{run} has no answer{which}", f"It has seeds: {', '.join(map(str, seeds)) or 'none'}"
        )
    chosen = [record for record in records if record.seed == (seeds[0] if seed is None else seed)]
    answered = [record for record in chosen if not record.error]
    match form:
        case "vlmevalkit-tsv":
            content = as_tsv(vlmevalkit(answered)).encode()
        case "vlmevalkit-json":
            content = json.dumps(vlmevalkit(answered), ensure_ascii=False, indent=1).encode()
        case "vlmevalkit-xlsx":
            content = as_xlsx(vlmevalkit(answered))
        case _:
            content = lmms_eval(answered, "strict").encode()
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_bytes(content)
    except OSError as error:
        raise DataError(
            f"{out} cannot be written ({error.strerror})", "Give another file with --out"
        ) from None
    say(f"{len(answered):,} answers in {out}")
    if len(answered) < len(chosen):
        say(f"Left out, without an answer: {len(chosen) - len(answered)} of {len(chosen)} items", err=True)
