"""``macr-local models``: the downloaded files, whether they are as published, and removing them."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from macr_local.cli.console import say, verbose_option, visible
from macr_local.errors import ConfigError, ModelFileError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from macr_local.hub.held import Held
    from macr_local.poolfile import MemberEntry

LIST_HELP = """List the models that pools name on the hub, and which of their files are here.

"verified" files are as they were when their sha256 was last found to be the published one; only size and time
of change are looked at. Nothing is read; macr-local models verify reads.
"""
VERIFY_HELP = """Read downloaded files, and compare their sha256 with the one that was published.

NAME is a pool or a member; without it, everything that was downloaded. The exit code is 5 if a file is
damaged.
"""
RM_HELP = """Remove the downloaded files of a member, or of all members of a pool.

macr-local download brings them again. Files that models.toml names outside the hub's cache are never removed.
"""


@click.group(help="List, verify or remove downloaded models.")
def models() -> None:
    """The group of commands on downloaded models."""


@models.command("list", help=LIST_HELP)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@verbose_option
def list_(*, as_json: bool) -> None:
    """List what is here and what is not; see `LIST_HELP`."""
    from macr_local.hub.listing import shown_size

    members = _every()
    rows = {member.name: list(_held(member)) for member in members}
    if as_json:
        plain = [{**_plain(one), "state": one.state()} for held in rows.values() for one in held]
        absent = [member.name for member in members if not member.is_present()]
        say(json.dumps({"files": plain, "not_downloaded": absent}))
        return
    for member in members:
        say(visible(f"{member.name}  {member.repo}"))
        for one in rows[member.name]:
            state = f"{one.state()} {one.date[:10]}".strip()
            say(visible(f"  {one.name:52} {shown_size(one.size):>8}  {state}"))
        if not member.is_present():
            say(visible(f"  not downloaded: macr-local download {member.name}"))
    total = sum(one.size for held in rows.values() for one in held)
    say(f"{shown_size(total)} in all")


@models.command(help=VERIFY_HELP)
@click.argument("name", required=False)
@verbose_option
def verify(name: str | None) -> None:
    """Read and compare; see `VERIFY_HELP`."""
    damaged: list[Held] = []
    found = [one for member in _named(name) for one in _held(member)]
    if not found:
        raise ConfigError("There is nothing to verify: nothing is downloaded", "Try macr-local download")
    for one in found:
        try:
            digest = one.read()
        except OSError as error:
            raise ModelFileError(
                f"{one.path} cannot be read ({error.strerror})", "Download it again"
            ) from None
        if one.published is None:
            said = f"no published sha256 is known; it has {digest}"
        elif digest == one.published:
            said = "verified"
        else:
            said = f"DAMAGED: sha256 {digest[:12]}..., published with {one.published[:12]}..."
            damaged.append(one)
        say(visible(f"{one.member}  {one.name}  {said}"))
    if damaged:
        names = ", ".join(dict.fromkeys(one.member for one in damaged))
        raise ModelFileError(
            f"{len(damaged)} of {len(found)} files are not as published",
            f"Download again what is damaged: macr-local download (for {names})",
        )


@models.command(help=RM_HELP)
@click.argument("name")
@click.option("--yes", is_flag=True, help="Without asking.")
@verbose_option
def rm(name: str, *, yes: bool) -> None:
    """Remove; see `RM_HELP`."""
    from macr_local.hub.listing import shown_size

    found = [one for member in _named(name) for one in _held(member)]
    if not found:
        raise ConfigError(f"Nothing of {name} is downloaded", "macr-local models list shows what is")
    for one in found:
        say(visible(f"{one.member}  {one.path}  {shown_size(one.size)}"), err=True)
    if not yes and not sys.stdin.isatty():
        raise click.UsageError("nobody is there to be asked; give --yes")
    if not yes and not click.confirm("Remove them?", default=False, err=True):
        raise click.Abort
    freed = 0
    for one in found:
        try:
            freed += one.remove()
        except OSError as error:
            raise ConfigError(
                f"{one.path} cannot be removed ({error.strerror})", "Check its permissions"
            ) from None
    say(f"{shown_size(freed)} removed")


def _every() -> list[MemberEntry]:
    """Every member of every pool that comes from the hub, each once."""
    from macr_local.config import list_pools

    members = [member for pool in list_pools() for member in pool.members if member.repo is not None]
    return list({(one.name, one.repo, one.files): one for one in members}.values())


def _named(name: str | None) -> Sequence[MemberEntry]:
    from macr_local.cli.download import members_named

    return _every() if name is None else [one for one in members_named(name) if one.repo is not None]


def _held(member: MemberEntry) -> Iterator[Held]:
    from macr_local.hub import cache
    from macr_local.hub.held import Held

    assert member.repo is not None
    for name in member.files:
        path = cache.find(member.repo, name, member.revision)
        if path is not None:
            yield Held.at(member.name, member.repo, path)


def _plain(one: Held) -> dict[str, str | int | None]:
    return {
        "member": one.member,
        "repo": one.repo,
        "file": one.name,
        "path": str(one.path),
        "size": one.size,
        "sha256": one.published,
        "verified": one.date or None,
    }
