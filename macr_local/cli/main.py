"""The entry point of ``macr-local``: ready for Ctrl-C before anything that takes time is imported."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from macr_local.cli.program import cli

__all__ = ["cli", "main"]

INTERRUPTED = 130
"""Exit code after a Ctrl-C, as of a program that SIGINT ends in a shell."""


def main() -> None:
    """The program: prepare the streams and run the command that is named."""
    signal.signal(signal.SIGINT, _leave)
    try:
        from macr_local.cli import console
        from macr_local.cli.program import cli
        from macr_local.cli.streams import prepare_streams

        prepare_streams()
        console.silence_pillow()
        console.enable_windows_colours()
        cli(prog_name="macr-local")
    except SystemExit as end:
        # The outcome stands. While Python ends it would restore SIGINT's default, which kills.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if end.code == INTERRUPTED:
            _leave()
        raise


def _leave(_: int = 0, __: FrameType | None = None) -> NoReturn:
    """End the process at once: a KeyboardInterrupt would show a traceback, or end as a death by SIGINT."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # closed, full, or in the middle of a write that the signal came into
            continue
    os._exit(INTERRUPTED)


def __getattr__(name: str) -> Any:
    """The click group, imported when it is asked for."""
    if name == "cli":
        from macr_local.cli import program

        return program.cli
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
