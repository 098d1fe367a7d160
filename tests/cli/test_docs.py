"""The documentation names what the program has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import click
import pytest

from macr_local.cli.program import COMMANDS, EPILOG, cli
from macr_local.settings import RelaySettings, Sampling
from macr_local.specs import ImageLimits, MemberSpec

DOCS = Path(__file__).parents[2] / "docs"


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Every command under one, with its words."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from commands(below, (*path, name))
    else:
        yield " ".join(path), command


def section(text: str, heading: str) -> str:
    match = re.search(rf"^## `macr-local {heading}`\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert match, f'docs/cli.md has no section "## `macr-local {heading}`"'
    return match[1]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_explained_in_the_section_of_its_command(name: str) -> None:
    text = (DOCS / "cli.md").read_text("utf-8")
    top = cli.get_command(click.Context(cli), name)
    assert top is not None
    for path, command in commands(top, (name,)):
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                for option in (*parameter.opts, *parameter.secondary_opts):
                    assert f"`{option}" in section(text, path), f"{path} {option}"


def test_every_exit_code_is_explained() -> None:
    text = (DOCS / "cli.md").read_text("utf-8")
    for line in EPILOG.splitlines()[2:]:
        code, meaning = line.split(maxsplit=1)
        assert f"| {code} | {meaning}" in text


def test_every_key_of_a_pool_file_is_explained() -> None:
    text = (DOCS / "configuration.md").read_text("utf-8")
    keys = {
        field.name for kind in (MemberSpec, ImageLimits, RelaySettings, Sampling) for field in fields(kind)
    }
    for key in (keys - {"name"}) | {"repo", "revision", "members", "description", "calibration", "settings"}:
        assert f"`{key}`" in text, key
