"""``macr-local pool``: which pools there are, and what one consists of."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from macr_local.cli.console import say, verbose_option, visible
from macr_local.cli.interrupt import Interrupts

if TYPE_CHECKING:
    from macr_local.config import PoolEntry
    from macr_local.inventory import CalibrationState, MemberState

SHOW_HELP = """Show a pool: each member's files, what their headers say, and its calibration.

Nothing is loaded. Files that are not downloaded are shown with the command that downloads them.
Without NAME (a pool's name, or FILE.toml#NAME), the default pool is shown.
"""


@click.group(help="List pools, or show one: its models, files and calibration.")
def pool() -> None:
    """The group of pool commands."""


@pool.command("list", help="List every pool that can be named, and where it is defined.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@verbose_option
def list_(as_json: bool) -> None:
    """List every pool."""
    from macr_local.config import default_pool, list_pools

    pools = [_summary(entry) for entry in list_pools()]
    if as_json:
        say(json.dumps({"default": default_pool(), "pools": pools}))
        return
    width = max(len(entry["name"]) for entry in pools)
    for entry in pools:
        state = "" if entry["present"] else " (files are missing)"
        say(visible(f"{entry['name']:{width}}  {entry['description']}{state}"))
        say(visible(f"{'':{width}}  {', '.join(entry['members'])}; {entry['source']}"))


@pool.command(help=SHOW_HELP)
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@verbose_option
def show(name: str | None, as_json: bool) -> None:
    """Show one pool; see `SHOW_HELP`."""
    from macr_local.config import find_pool
    from macr_local.inventory import inspect

    with Interrupts():
        entry = find_pool(name)
        members = inspect(entry)
    if as_json:
        report = {
            **_summary(entry),
            "calibration": str(entry.calibration),
            "settings": asdict(entry.settings),
            "members": [asdict(member) for member in members],
        }
        say(json.dumps(report))
        return
    for line in _describe(entry, members):
        say(visible(line))


def _summary(entry: PoolEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "description": entry.description,
        "members": [member.name for member in entry.members],
        "source": str(entry.source),
        "present": all(member.is_present() for member in entry.members),
    }


def _describe(entry: PoolEntry, members: tuple[MemberState, ...]) -> Iterator[str]:
    yield f"{entry.name}: {entry.description}" if entry.description else entry.name
    yield f"  defined in   {entry.source}"
    yield f"  calibration  {entry.calibration}"
    yield f"  settings     {_settings(asdict(entry.settings))}"
    if (tuning := entry.tuning()) is not None:
        chosen = f"window = {tuning.window}, threshold = {tuning.threshold:g}, cooldown = {tuning.cooldown}"
        yield f"  tuned        {chosen} ({tuning.items} items of {tuning.data}, {tuning.date})"
    for member in members:
        yield ""
        yield member.name
        if member.repo:
            yield f"  repository   {member.repo}"
        yield f"  model        {member.model}"
        if member.projector:
            yield f"  projector    {member.projector}"
        if member.problem:
            yield f"  problem      {member.problem}"
        else:
            yield f"  is           {_facts(member)}"
            yield f"  calibration  {_calibration(member.calibration)}"
    if any(member.missing for member in members):
        yield ""
        yield f"To download what is missing: {entry.download_command()}"


def _facts(member: MemberState) -> str:
    facts = [member.architecture, member.quantization]
    if member.projector_type:
        facts.append(f"projector {member.projector_type}")
    facts += [f"{member.n_vocab} tokens", f"n_ctx {member.n_ctx}"]
    if member.bytes is not None:
        facts.append(f"{member.bytes / 2**20:.0f} MiB")
    return ", ".join(fact for fact in facts if fact)


def _calibration(state: CalibrationState) -> str:
    if state.questions is None:
        return state.problem
    made = f"{state.questions} questions, {state.date}"
    return f"{made}; cannot be used: {state.problem}" if state.problem else f"{made}, fits these files"


def _settings(settings: dict[str, Any]) -> str:
    """The settings that differ from the defaults, as the pool file writes them."""
    from macr_local.settings import RelaySettings

    usual = asdict(RelaySettings())
    sampling, usual_sampling = settings.pop("sampling"), usual.pop("sampling")
    changed = {key: value for key, value in settings.items() if value != usual[key]}
    changed |= {key: value for key, value in sampling.items() if value != usual_sampling[key]}
    return ", ".join(f"{key} {value}" for key, value in changed.items()) or "the defaults"
