"""The terminal: what may be written to it, whether it has colours, and how errors look on it."""

from __future__ import annotations

import logging
import os
import re
import sys
import traceback
import warnings
from typing import IO, Any

import click

from macr_local.errors import MacrError

BUG = 70
"""Exit code for a fault in this program (EX_SOFTWARE)."""

_VERBOSE = "macr_local.verbose"
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_RESET = "\x1b[0m"


def silence_pillow() -> None:
    """Keep Pillow's warnings about slips in an image's metadata off the terminal; errors are not touched."""
    warnings.filterwarnings("ignore", module="PIL")


def visible(text: str) -> str:
    r"""Text of a model or a file without control characters, except ``\n`` and ``\t``.

    A model can be led to write escape sequences, and a terminal would obey them.
    """
    return _CONTROLS.sub("", text)


def has_colours(stream: IO[str], *, plain: bool = False) -> bool:
    """Whether a stream is to get colours: NO_COLOR and --plain say no, FORCE_COLOR yes, else terminals do."""
    if plain or os.environ.get("NO_COLOR"):
        return False
    force = os.environ.get("FORCE_COLOR", "")
    if force:
        return force != "0"
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def paint(text: str, code: str) -> str:
    """Text in a colour (an SGR code such as ``36`` or ``2``), without its line ends."""
    return "\n".join(f"\x1b[{code}m{line}{_RESET}" if line else "" for line in text.split("\n"))


def enable_windows_colours() -> None:
    """Let an older Windows console understand colour codes."""
    if sys.platform == "win32":
        import colorama

        colorama.just_fix_windows_console()


def verbose_option(command: Any) -> Any:
    """Add ``--verbose``: logs on stderr, and the traceback if something unforeseen goes wrong."""

    def turn_on(context: click.Context, _: click.Parameter, value: bool) -> None:
        if value:
            context.find_root().meta[_VERBOSE] = True
            handler = logging.StreamHandler()
            handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
            logger = logging.getLogger("macr_local")
            logger.addHandler(handler)
            logger.setLevel(logging.DEBUG)
            context.find_root().call_on_close(lambda: logger.removeHandler(handler))

    return click.option(
        "--verbose", is_flag=True, expose_value=False, is_eager=True, callback=turn_on,
        help="Show the logs of llama.cpp and macr-local on stderr.",
    )(command)  # fmt: skip


def verbose_wanted(context: click.Context) -> bool:
    """Whether ``--verbose`` was given."""
    return bool(context.find_root().meta.get(_VERBOSE))


def report(error: MacrError) -> None:
    """Print an error for the user: what was found on the first line, what to do indented below."""
    lines = [f"macr-local: error: {visible(error.found)}"]
    lines += ["  " + line for line in visible(error.fix).splitlines()]
    say("\n".join(lines), err=True)


def report_bug(context: click.Context, error: Exception) -> None:
    """Print one line for what should not have happened; the traceback only where it is asked for."""
    if verbose_wanted(context) or os.environ.get("MACR_LOCAL_DEBUG"):
        say("".join(traceback.format_exception(error)).rstrip(), err=True)
    what = " ".join(visible(f"{type(error).__name__}: {error}").split())
    say(f"macr-local: error: this is a bug in macr-local ({what})", err=True)
    say("  Run it again with MACR_LOCAL_DEBUG=1 and report what it prints", err=True)


def say(text: str, *, err: bool = False) -> None:
    """Print a line in the stream's own encoding (click would write UTF-8 to an ASCII stream)."""
    print(text, file=sys.stderr if err else sys.stdout, flush=True)
