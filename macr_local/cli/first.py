"""First contact: a pool whose files are not here is offered for download, where someone can answer."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from macr_local.cli.console import say, visible
from macr_local.cli.download import describe, needs_of, quiet, run
from macr_local.errors import DownloadError, NotDownloaded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from macr_local.specs import PoolSpec


def load_or_offer(pool: str | None, members: Sequence[str] | None, *, yes: bool) -> PoolSpec:
    """A pool, downloaded first if the user wants it. Nothing is downloaded without being asked for.

    Args:
        pool: Its name; None is the default pool.
        members: Only these members.
        yes: The user has said so already; without it, someone must be at the terminal to say so.

    Raises:
        NotDownloaded: Its files are not here, and nobody wanted them.
        DownloadError: They cannot be downloaded.
        ConfigError: See `load_pool`.
    """
    from macr_local.config import find_pool, load_pool
    from macr_local.hub.plan import Plan

    try:
        return load_pool(pool, members)
    except NotDownloaded as error:
        if not (yes or _someone_is_there()):
            raise
        quiet(verbose=False)
        entry = find_pool(pool).select(members)
        try:
            plan = Plan.of(needs_of([member for member in entry.members if not member.is_present()]))
        except DownloadError as fault:
            if yes:
                raise
            raise NotDownloaded(f"{error.found}, and {fault.found}", error.fix) from None
        say(visible(f'Pool "{entry.name}" is not on this machine yet. It needs:'), err=True)
        describe(plan, err=True)
        if not yes and not _wanted():
            raise
        run(plan)
        return load_pool(pool, members)


def _wanted() -> bool:
    say("(--pool tiny asks three tiny models that come along, without any download)", err=True)
    return click.confirm("Download now?", default=False, err=True)


def _someone_is_there() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()
