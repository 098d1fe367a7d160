"""``macr-local download``: a pool's or a member's files from the hub, with their sizes before it begins."""

from __future__ import annotations

import json
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from macr_local.cli.console import say, verbose_option, verbose_wanted, visible
from macr_local.cli.interrupt import Interrupts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from macr_local.hub.listing import RemoteFile
    from macr_local.hub.plan import Need, Plan
    from macr_local.hub.wanted import Wanted
    from macr_local.poolfile import MemberEntry

HELP = """Download what a pool, or one member, needs from the Hugging Face hub.

NAME is a pool's name, FILE.toml#POOL, or a member's name; without it, the default pool. Sizes are shown
before anything is downloaded. What is here is not downloaded again. Ctrl-C or a kill loses nothing: the same
command goes on where it stopped. Every file is verified by the sha256 that the hub publishes before it can
be loaded.

HF_HOME, HF_TOKEN, HF_ENDPOINT and HF_HUB_OFFLINE are respected.

\b
macr-local download --dry-run
macr-local download qwen3-vl-8b
"""


@click.command(help=HELP)
@click.argument("name", required=False)
@click.option("--quant", metavar="Q5_K_M", help="Another quantization than models.toml names.")
@click.option("--dry-run", is_flag=True, help="Show files and sizes; download nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print files, sizes and paths as one JSON object.")
@verbose_option
@click.pass_context
def download(
    context: click.Context, name: str | None, quant: str | None, *, dry_run: bool, as_json: bool
) -> None:
    """Download; see `HELP`."""
    from macr_local.hub.plan import Plan

    needs = needs_of(members_named(name))
    if quant is not None:
        needs = [need.quantized(quant) for need in needs]
    quiet(verbose=verbose_wanted(context))
    plan = Plan.of(needs)
    if not as_json:
        describe(plan)
    if not dry_run:
        with Interrupts():
            run(plan)
    if as_json:
        say(json.dumps(_plain(plan, downloaded=not dry_run)))
    elif not dry_run:
        say(visible(f"All {len(plan.files)} files are here and verified."))
    if quant is not None and not as_json:
        for part in plan.parts:
            line = f'model = "{part.need.model}"'
            say(visible(f"To use it, write {line} for {part.need.member} in models.toml."))


def members_named(name: str | None) -> Sequence[MemberEntry]:
    """The members of a pool, or one by its own name.

    Raises:
        ConfigError: There is no such pool or member.
    """
    from macr_local.config import find_pool, list_pools
    from macr_local.errors import ConfigError

    try:
        return find_pool(name).members
    except ConfigError:
        found = [member for pool in list_pools() for member in pool.members if member.name == name]
        if not found:
            raise
        return found[:1]


def needs_of(members: Sequence[MemberEntry]) -> list[Need]:
    """What members need from the hub.

    Raises:
        ConfigError: None of them names a repository.
    """
    from macr_local.errors import ConfigError
    from macr_local.hub.plan import Need

    needs = [
        Need(one.name, one.repo, str(one.spec.model), _text(one.spec.projector), one.revision)
        for one in members
        if one.repo is not None
    ]
    if not needs:
        names = ", ".join(one.name for one in members)
        raise ConfigError(f"{names}: nothing of it comes from the hub", "models.toml names its files")
    return needs


def describe(plan: Plan, *, err: bool = False) -> None:
    """Print what there is to download."""
    from macr_local.hub.listing import shown_size

    for part in plan.parts:
        say(visible(f"{part.need.member}  {part.need.repo}"), err=err)
        for one in part.files:
            line = f"  {one.file.name:52} {shown_size(one.file.size):>8}  {_state(one)}"
            say(visible(line).rstrip(), err=err)
    say(f"{shown_size(plan.left)} to download" if plan.left else "Nothing to download", err=err)


def run(plan: Plan) -> None:
    """Download, and show how far it is.

    Raises:
        DownloadError: There is no room, or a file cannot be downloaded.
        Cancelled: The user interrupted.
    """
    with ExitStack() as stack:
        plan.run(stack.enter_context(_Bars(plan)) if sys.stderr.isatty() else _Lines(plan))


def quiet(*, verbose: bool) -> None:
    """Keep the hub's client off the terminal: what matters of it is said by us."""
    if not verbose:
        from huggingface_hub.utils import logging

        logging.set_verbosity_error()  # type: ignore[no-untyped-call]


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


def _state(one: Wanted) -> str:
    from macr_local.hub.listing import shown_size

    if not one.left:
        return "here"
    return f"{shown_size(one.held)} of it here" if one.held else ""


def _plain(plan: Plan, *, downloaded: bool) -> dict[str, Any]:
    return {
        "left": 0 if downloaded else plan.left,
        "files": [
            {
                "member": part.need.member,
                "repo": part.need.repo,
                "commit": one.file.commit,
                "file": one.file.name,
                "size": one.file.size,
                "sha256": one.file.sha256,
                "path": str(path) if downloaded or not one.left else None,
            }
            for part in plan.parts
            for one, path in zip(part.files, part.paths, strict=True)
        ],
    }


class _Bars:
    """A bar for each file and one for all, on a terminal."""

    def __init__(self, plan: Plan) -> None:
        self._files = [one for one in plan.files if one.left]
        self._all: Any = None
        self._bars: dict[RemoteFile, Any] = {}

    def __enter__(self) -> _Bars:
        from tqdm import tqdm

        def bar(place: int, text: str, total: int, held: int) -> Any:
            return tqdm(
                total=total, initial=held, desc=text, position=place, unit="B", unit_scale=True,
                leave=False, dynamic_ncols=True, file=sys.stderr,
            )  # fmt: skip

        if self._files:
            held = sum(one.held for one in self._files)
            self._all = bar(0, "all", sum(one.file.size for one in self._files), held)
        for place, one in enumerate(self._files, 1):
            self._bars[one.file] = bar(place, one.file.name[-36:], one.file.size, one.held)
        return self

    def __exit__(self, *_: object) -> None:
        for bar in (*self._bars.values(), *filter(None, (self._all,))):
            bar.close()

    def __call__(self, file: RemoteFile, more: int) -> None:
        if file in self._bars:
            self._bars[file].update(more)
            self._all.update(more)


class _Lines:
    """A line now and then, where no terminal shows a bar."""

    EVERY = 10.0

    def __init__(self, plan: Plan) -> None:
        self._total, self._left = sum(one.file.size for one in plan.files), plan.left
        self._next = time.monotonic() + self.EVERY

    def __call__(self, _file: RemoteFile, more: int) -> None:
        from macr_local.hub.listing import shown_size

        self._left -= more
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + self.EVERY
            say(f"{shown_size(self._total - self._left)} of {shown_size(self._total)}", err=True)
