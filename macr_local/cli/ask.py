"""``macr-local ask``: one question, answered by a pool while you watch."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from macr_local.cli.console import verbose_option, verbose_wanted
from macr_local.cli.interrupt import Interrupts
from macr_local.cli.options import (
    ALONE,
    STRATEGIES,
    names_of,
    prompts_of,
    prompts_option,
    relay_options,
    settings_of,
)
from macr_local.cli.shown import Shown
from macr_local.cli.streams import IO_ERROR
from macr_local.cli.tracing import Tracing
from macr_local.cli.words import check_text, split
from macr_local.errors import Cancelled, ImageError

if TYPE_CHECKING:
    from macr_local.cli.paint import Painter
    from macr_local.config import PoolSpec
    from macr_local.prompt import Prompt
    from macr_local.settings import RelaySettings


HELP = """Ask a pool one question about images.

The question is the last word, in quotes; "-" reads an image from stdin. The answer goes to stdout,
everything else to stderr.

\b
macr-local ask photo.png "How many chairs are there?"
macr-local ask --pool tiny - "what is in the top row?" < photo.png
"""
_PIPE = 'Pipe one in: macr-local ask - "QUESTION" < photo.png'
EPILOG = "Settings that are not given are those of the pool (macr-local pool show)."


@click.command(help=HELP, epilog=EPILOG)
@click.argument("words", nargs=-1, metavar="[IMAGE]... QUESTION", required=False)
@click.option("--pool", metavar="NAME|FILE", help='A pool\'s name, or FILE.toml#NAME. Default: "default".')
@click.option("--members", metavar="A,B", help="Only these members, in this order.")
@click.option(
    "--strategy",
    type=click.Choice(STRATEGIES),
    default="relay",
    show_default=True,
    help="All by relay, one alone, or a choice among the answers of all.",
)
@click.option("--leader", metavar="MEMBER", help="Who answers where one does alone. Default: the first.")
@prompts_option
@relay_options
@click.option("--system", metavar="TEXT", help="A system prompt for all members.")
@click.option(
    "--think/--no-think", default=None, help="Ask for thinking, or for none, where a model knows it."
)
@click.option("--show-thinking", is_flag=True, help="Show thinking too, on stderr.")
@click.option(
    "--trace", type=click.Path(dir_okay=False), metavar="FILE", help="Write every event to this file."
)
@click.option("--json", "as_json", is_flag=True, help="Print the answer as one JSON object.")
@click.option("--jsonl", "as_lines", is_flag=True, help="Print every event as a line of JSON, as it comes.")
@click.option("--plain", is_flag=True, help="No colours, no legend.")
@click.option("--yes", is_flag=True, help="Download the pool's files if they are not here, without asking.")
@verbose_option
@click.pass_context
def ask(context: click.Context, /, words: tuple[str, ...], **options: Any) -> None:
    """Ask a pool one question; see `HELP`."""
    images, question = split(words)
    if options["as_json"] and options["as_lines"]:
        raise click.UsageError("--json and --jsonl exclude each other")
    if options["leader"] and options["strategy"] not in ALONE:
        raise click.UsageError(
            f"--leader is for --strategy {', '.join(ALONE)}; a relay begins with --initiation MEMBER"
        )
    for name, text in (("The question", question), ("--system", options["system"]), *_stops(options)):
        check_text(name, text)
    with Interrupts() as interrupts:
        code = _answer(interrupts, images, question, options, verbose=verbose_wanted(context))
    context.exit(130 if interrupts.happened else code)


def _answer(
    interrupts: Interrupts, images: tuple[str, ...], question: str, options: dict[str, Any], *, verbose: bool
) -> int:
    """Ask and show the answer; the exit code."""
    from macr_local.cli.first import load_or_offer

    spec = load_or_offer(options["pool"], names_of(options["members"]), yes=options["yes"])
    settings = settings_of(spec.settings, options)
    with ExitStack() as stack:
        trace = stack.enter_context(Tracing(options["trace"])) if options["trace"] else None
        shown = stack.enter_context(Shown(_painter(spec, settings, options, verbose), trace))
        interrupts.give_up = shown.cancelled
        try:
            prompt = _prompt(images, question, options)
            shown.status(f"loading pool {spec.name} ...")
            from macr_local import Pool, Relay
            from macr_local.tracing import header

            pool = stack.enter_context(
                Pool.open(spec, progress=lambda member: shown.status(f"loading {member} ..."))
            )
            shown.status("reading the prompt ...")
            relay = Relay(
                pool,
                settings,
                strategy=options["strategy"],
                leader=options["leader"],
                prompts=prompts_of(options),
            )
            if trace is not None:
                trace.begin(header(relay, prompt))
            with relay.stream(prompt) as stream:
                interrupts.cancel = stream.cancel
                for event in stream:
                    shown.event(event)
        except (KeyboardInterrupt, Cancelled):
            shown.cancelled()
        shown.close()
    if shown.reason == "cancelled":
        return 130
    return IO_ERROR if trace is not None and trace.failed else 0


def _stops(options: dict[str, Any]) -> list[tuple[str, str]]:
    return [("--stop", text) for text in options["stop"]]


def _prompt(images: tuple[str, ...], question: str, options: dict[str, Any]) -> Prompt:
    from macr_local.images import load
    from macr_local.prompt import Prompt

    loaded = tuple(load(_stdin(), name="<stdin>") if image == "-" else load(image) for image in images)
    return Prompt(question, loaded, options["system"], options["think"])


def _stdin() -> bytes:
    try:
        data = sys.stdin.buffer.read()
    except OSError as error:  # a stream that is open for writing only, or a failing device
        raise ImageError(f"stdin cannot be read: {error.strerror or error}", _PIPE) from None
    if not data:
        raise ImageError("No image came from stdin", _PIPE)
    return data


def _painter(spec: PoolSpec, settings: RelaySettings, options: dict[str, Any], verbose: bool) -> Painter:
    from macr_local.cli.paint import JsonPainter, LinesPainter, TextPainter

    if options["as_json"]:
        from macr_local.relay.answer import collect

        return JsonPainter(sys.stdout, lambda events: collect(events, settings))
    if options["as_lines"]:
        from macr_local.relay.trace import encode

        return LinesPainter(sys.stdout, encode)
    return TextPainter(
        sys.stdout,
        sys.stderr,
        [member.name for member in spec.members],
        plain=options["plain"],
        thoughts=options["show_thinking"],
        verbose=verbose,
    )
