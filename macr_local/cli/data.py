"""``macr-local data``: which data sets there are, what one holds, and whether all of it can be asked."""

from __future__ import annotations

import json
import sys
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from macr_local.cli.console import say, verbose_option, visible
from macr_local.errors import DataError

if TYPE_CHECKING:
    from macr_local.evaluation.datasets.survey import Survey

CHECK_HELP = """Go through a data set as eval does, decode each image, and name each row that fails.

DATA is a file (.tsv, .jsonl, .json, .parquet), a folder or a name (macr-local data list). Exit code 9 where
something is wrong.
"""
_MOST = 20
"""Values of a group, and problems, that are shown; --json has all."""


@click.group(help="List data sets, show what one holds, or check all of it.")
def data() -> None:
    """The group of data commands."""


@data.command("list", help="List the data sets that have a name, and VLMEvalKit's tables on this machine.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@verbose_option
def list_(as_json: bool) -> None:
    """List every data set that can be named."""
    from macr_local.evaluation.datasets import NAMED, tables

    named = {name: about for name, (_, about) in NAMED.items()}
    found = {name: str(path) for name, path in tables().items()}
    if as_json:
        say(json.dumps({"named": named, "tables": found}))
        return
    width = max(map(len, [*named, *found]))
    for name, about in {**named, **found}.items():
        say(visible(f"{name:{width}}  {about}"))


@data.command(help="Show what a data set holds, and its first question as models are asked it.")
@click.argument("source", metavar="DATA")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@verbose_option
def show(source: str, as_json: bool) -> None:
    """Show a data set."""
    found = _survey(source, decode=False)
    _print(found, as_json=as_json)
    if not as_json and found.first is not None:
        from macr_local.evaluation.asking import ending, question

        first = found.first
        say(visible(f"the first question ({first.id}, {len(first.images)} images):"))
        for line in f"{question(first)}\n{ending(first)}".splitlines():
            say(visible(f"  {line}"))
        say(visible(f"the right answer: {first.answer or 'not published'}"))


@data.command(help=CHECK_HELP)
@click.argument("source", metavar="DATA")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@verbose_option
def check(source: str, as_json: bool) -> None:
    """Check a data set; see `CHECK_HELP`."""
    found = _survey(source, decode=True)
    _print(found, as_json=as_json)
    if not found.items:
        raise DataError(f"{source} holds no question", "Give a file with at least one row")
    if found.repeated:
        more = f" (and {len(found.repeated) - 1} more)" if len(found.repeated) > 1 else ""
        raise DataError(
            f'The id "{found.repeated[0]}" is there twice{more}',
            "Give each row an id of its own",
        )
    if found.problems:
        where, problem = found.problems[0]
        raise DataError(
            f"{len(found.problems)} of {found.items} items cannot be asked, such as {where}: {problem}",
            "Mend or remove these rows; macr-local eval keeps them as failed, not as wrong",
        )


def _survey(source: str, *, decode: bool) -> Survey:
    from macr_local.evaluation.datasets import open_dataset
    from macr_local.evaluation.datasets.survey import survey

    def progress(count: int) -> None:
        if count % 500 == 0 and sys.stderr.isatty():
            click.echo(f"\r{count:,} items ...", err=True, nl=False)

    try:
        return survey(open_dataset(source), decode=decode, progress=progress)
    finally:
        if sys.stderr.isatty():
            click.echo("\r" + " " * 30 + "\r", err=True, nl=False)


def _plain(found: Survey) -> dict[str, Any]:
    plain = {one.name: getattr(found, one.name) for one in fields(found)}
    return {**plain, "first": found.first.id if found.first is not None else None, "sound": found.sound}


def _print(found: Survey, *, as_json: bool) -> None:
    if as_json:
        say(json.dumps(_plain(found)))
        return
    say(visible(f"{found.name}  {found.path}".rstrip()))
    for name, value in found.identity.items():
        say(visible(f"  {name}: {value}"))
    if found.published:
        say(f"  the published VLMEvalKit file {found.published}")
    say(
        f"  {found.items:,} items ({found.labelled:,} with a right answer), {found.images:,} images, "
        f"{found.clusters:,} independent groups"
    )
    for reason, count in found.left_out.items():
        say(visible(f"  rows that are no questions: {count:,} ({reason})"))
    say(f"  answers: {', '.join(f'{kind} {count:,}' for kind, count in found.kinds.most_common())}")
    for group, values in found.groups.items():
        shown = ", ".join(f"{value} {count:,}" for value, count in values.most_common(_MOST))
        more = f", and {len(values) - _MOST:,} more" if len(values) > _MOST else ""
        say(visible(f"  {group}: {shown}{more}"))
    for where, problem in found.problems[:_MOST]:
        say(visible(f"  cannot be asked: {where}: {problem}"))
