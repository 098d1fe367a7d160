"""``macr-local report``: the paper's tables, of kept answers."""

from __future__ import annotations

from pathlib import Path

import click

from macr_local.cli.console import say, verbose_option
from macr_local.cli.options import scorer_option
from macr_local.errors import DataError

HELP = """Make the paper's tables of runs: accuracy, tokens and benefit per cost, ablations, single members.

RUN is a folder OUT/DATA/METHOD that macr-local eval has made, or one above several. The tables are printed,
and written as report.md, report.csv and report.json into --out.

\b
macr-local report runs --out runs
"""


@click.command(help=HELP)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@scorer_option
@click.option(
    "--ibc-average",
    type=click.Choice(["paper", "mean", "pooled"]),
    default="paper",
    show_default=True,
    help="How a method of several members is measured against each of them.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Write the three files here. Default: the first RUN.",
)
@verbose_option
def report(runs: tuple[Path, ...], scorer: str, ibc_average: str, *, as_json: bool, out: Path | None) -> None:
    """Report runs; see `HELP`."""
    from macr_local.evaluation.report import as_csv, as_json_text, markdown
    from macr_local.evaluation.run import folders
    from macr_local.evaluation.table import Scored, rows

    found = rows([Scored.load(folder) for folder in folders(runs)], scorer, ibc_average)  # type: ignore[arg-type]
    if not found:
        raise DataError(f"{runs[0]} holds no answer that {scorer} judges", "Run macr-local eval first")
    texts = {
        "report.md": markdown(found, scorer),
        "report.csv": as_csv(found),
        "report.json": as_json_text(found, scorer),
    }
    say(texts["report.json" if as_json else "report.md"].rstrip("\n"))
    folder = out if out is not None else runs[0]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text, "utf-8")
    except OSError as error:
        raise DataError(
            f"{error.filename or folder} cannot be written ({error.strerror})",
            "Give another folder with --out",
        ) from None
