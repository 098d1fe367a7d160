"""The program as a whole: help, errors, exit codes."""

from __future__ import annotations

import subprocess
import sys
import typing
from dataclasses import fields

import click
import pytest
from click.testing import CliRunner, Result

from macr_local import errors
from macr_local.cli.options import settings_of
from macr_local.cli.program import COMMANDS, EPILOG, cli
from macr_local.cli.streams import StdoutError
from macr_local.settings import RelaySettings, Sampling


def run(*args: str, **more: typing.Any) -> Result:
    return CliRunner().invoke(cli, args, **more)


def failing(error: BaseException) -> click.Command:
    @click.command
    @click.option("--verbose", is_flag=True)
    def fail(verbose: bool) -> None:
        raise error

    return fail


@pytest.fixture
def raising(monkeypatch: pytest.MonkeyPatch) -> typing.Callable[[BaseException], None]:
    monkeypatch.delenv("MACR_LOCAL_DEBUG", raising=False)

    def replace(error: BaseException) -> None:
        monkeypatch.setattr(type(cli), "get_command", lambda *_: failing(error))

    return replace


HEAVY = {"numpy", "llama_cpp", "PIL", "scipy", "huggingface_hub", "jinja2", "psutil"}
CALL_HELP = "from macr_local.cli.program import cli\ntry: cli(['--help'])\nexcept SystemExit: pass"
IMPORT_ALL = "\n".join(f"import {module}" for module, _ in COMMANDS.values())


@pytest.mark.parametrize("script", [CALL_HELP, IMPORT_ALL], ids=["help", "command modules"])
def test_nothing_heavy_is_imported_before_a_command_runs(script: str) -> None:
    check = f"\nimport sys\nprint(sorted({HEAVY} & set(sys.modules)), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script + check], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "[]\n")


def test_python_m_is_the_same_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "macr_local", "--version"], capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("macr-local ")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str) -> None:
    result = run(name, "--help")
    assert (result.exit_code, result.stderr) == (0, "")
    assert f"Usage: cli {name}" in result.stdout


def test_every_exit_code_of_an_error_is_in_the_help() -> None:
    codes = {
        kind.exit_code
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.MacrError)
    }
    listed = {int(line.split()[0]) for line in EPILOG.splitlines()[2:]}
    assert codes | {0, 2, 70, 74, 130, 141} == listed


def test_an_error_is_one_line_with_its_remedy_below(raising: typing.Callable[[BaseException], None]) -> None:
    raising(errors.CapacityError("it does not \x1b[1mfit", "Do this\nor that"))
    result = run("ask")
    assert result.exit_code == 6
    assert result.stderr == "macr-local: error: it does not [1mfit\n  Do this\n  or that\n"
    assert result.stdout == ""


def test_what_should_not_happen_is_one_line_too(
    raising: typing.Callable[[BaseException], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    raising(ValueError("two\nlines"))
    result = run("ask")
    assert result.exit_code == 70
    assert result.stderr.startswith(
        "macr-local: error: this is a bug in macr-local (ValueError: two lines)\n"
    )
    assert "Traceback" not in result.stderr
    assert "MACR_LOCAL_DEBUG=1" in result.stderr
    monkeypatch.setenv("MACR_LOCAL_DEBUG", "1")
    assert "Traceback" in run("ask").stderr


@pytest.mark.parametrize(
    ("error", "code"), [(KeyboardInterrupt(), 130), (StdoutError(BrokenPipeError()), 141)]
)
def test_interrupts_and_broken_pipes_are_quiet(
    raising: typing.Callable[[BaseException], None], error: BaseException, code: int
) -> None:
    raising(error)
    result = run("ask")
    assert (result.exit_code, result.output) == (code, "")


def test_a_misspelled_command_is_answered_with_the_nearest() -> None:
    assert 'Perhaps "doctor" is meant' in run("docter").stderr
    assert 'To ask: macr-local ask IMAGE "QUESTION"' in run("photo.png", "what?").stderr
    assert run("docter").exit_code == 2


def test_every_setting_is_an_option_of_ask() -> None:
    command = cli.get_command(click.Context(cli), "ask")
    assert command is not None
    options = {parameter.name for parameter in command.params}
    settings = {field.name for kind in (RelaySettings, Sampling) for field in fields(kind)} - {"sampling"}
    assert settings <= options


def test_options_replace_the_pools_settings_and_only_those() -> None:
    pool = RelaySettings(window=3, max_tokens=7, stop=("x",), sampling=Sampling(temperature=0.7, top_k=20))
    names = {field.name for kind in (RelaySettings, Sampling) for field in fields(kind)} - {"sampling"}
    untouched: dict[str, typing.Any] = dict.fromkeys(names) | {"stop": ()}
    assert settings_of(pool, untouched) == pool
    given = untouched | {"threshold": -1.0, "prune": False, "temperature": 0.0, "seed": 0, "stop": ("y", "z")}
    changed = settings_of(pool, given)
    assert (changed.window, changed.threshold, changed.prune, changed.stop) == (3, -1.0, False, ("y", "z"))
    assert changed.sampling == Sampling(temperature=0.0, top_k=20)
