"""The program: registers the commands, and turns what goes wrong into one line and an exit code."""

from __future__ import annotations

import difflib
import importlib
import sys
from typing import Any

import click

from macr_local import __version__
from macr_local.cli import console
from macr_local.cli.streams import StdoutError
from macr_local.errors import MacrError

COMMANDS = {
    "ask": ("macr_local.cli.ask", "Ask a pool one question about images."),
    "download": ("macr_local.cli.download", "Download a pool's models from the hub."),
    "models": ("macr_local.cli.models", "List, verify or remove downloaded models."),
    "pool": ("macr_local.cli.pool", "List pools, or show one: its models, files and calibration."),
    "doctor": ("macr_local.cli.doctor", "Check this machine and test every member of a pool."),
    "calibrate": ("macr_local.cli.calibrate", "Measure each member's own confidence (mu and sigma)."),
    "data": ("macr_local.cli.data", "List, show or check data sets."),
    "eval": ("macr_local.cli.eval", "Ask whole data sets, with one method or several."),
    "tune": ("macr_local.cli.tune", "Choose w, tau and cooldown on data of your own."),
    "score": ("macr_local.cli.score", "Score the answers of a run again."),
    "report": ("macr_local.cli.report", "Make the paper's tables of runs."),
    "export": ("macr_local.cli.export", "Write answers as a file of another harness."),
    "compare": ("macr_local.cli.compare", "Compare methods question by question."),
}
"""Each command's module and one line about it; the module holds a click command of the same name."""

HELP = """Several vision-language models answer one question together, by relay, on this machine.

One model leads; when its confidence falls, every model of the pool writes a short bid, and the most
confident one takes over. Answers go to stdout, everything else to stderr.

\b
macr-local ask --pool tiny photo.png "What is in the picture?"
"""
EPILOG = """\b
Exit codes:
  0    success
  1    the pool is busy or closed
  2    wrong usage
  3    an image cannot be read
  4    a pool, a setting or a name cannot be used
  5    a model file or its chat template is missing or damaged
  6    the prompt or the pool does not fit
  7    a calibration is missing, damaged or of another model
  8    llama.cpp failed, or a member failed its self-test
  9    a data file cannot be read
  10   a download failed
  70   a bug in macr-local
  74   stdout or the trace cannot be written (a full disk)
  130  interrupted (Ctrl-C); the partial answer was shown
  141  the reader of stdout went away
"""


class Commands(click.Group):
    """A group that imports a command only when it is called, so that ``--help`` stays quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command; None if there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(importlib.import_module(COMMANDS[cmd_name][0]), cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or say which one was probably meant."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            close = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f'Perhaps "{close[0]}" is meant.' if close else 'To ask: macr-local ask IMAGE "QUESTION"'
            ctx.fail(f'There is no command "{args[0]}". {hint}')
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in COMMANDS.items()])

    def main(self, *args: Any, **named: Any) -> Any:
        """Run the program; also where it only prints help, stdout may be lost."""
        try:
            return super().main(*args, **named)
        except StdoutError as error:
            if not error.reader_left:
                console.report(error)
            sys.exit(error.exit_code)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; every way it can fail ends here, except for a lost stdout."""
        try:
            try:
                return super().invoke(ctx)
            finally:
                sys.stdout.flush()  # a full device shows here, not when Python ends
        except StdoutError:
            raise
        except MacrError as error:
            console.report(error)
            ctx.exit(error.exit_code)
        except KeyboardInterrupt:
            ctx.exit(130)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            console.report_bug(ctx, error)
            ctx.exit(console.BUG)


@click.group(cls=Commands, help=HELP, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="macr-local", message="%(prog)s %(version)s")
def cli() -> None:
    """The program's root; see `HELP`."""
