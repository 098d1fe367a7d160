"""The options that set a relay, and the settings they make of a pool's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from macr_local.evaluation.score import Scorer
from macr_local.settings import BidMode, Boundary, Confidence, RelaySettings, Sampling, Selection, Trigger

if TYPE_CHECKING:
    from macr_local.strategies import Prompts

_SAMPLING = ("temperature", "top_k", "top_p", "min_p", "repeat_penalty", "repeat_last_n")
_RELAY = (
    "window", "confidence", "threshold", "initiation", "keep_trial", "trigger", "boundary", "selection",
    "draws", "draw_temperature", "hysteresis", "cooldown", "max_relays", "prune", "bids", "max_tokens",
    "deadline", "seed",
)  # fmt: skip

_DRAWS = (
    click.option("--temperature", type=float, metavar="T", help="0 takes the most probable token."),
    click.option("--top-k", type=int, metavar="K", help="Sample among the K most probable tokens; 0 is all."),
    click.option("--top-p", type=float, metavar="P", help="Sample among tokens of this total probability."),
    click.option("--min-p", type=float, metavar="P", help="Drop tokens below this share of the best one's."),
    click.option("--repeat-penalty", type=float, metavar="R", help="Penalty on recent tokens; 1 is off."),
    click.option("--repeat-last-n", type=int, metavar="N", help="Tokens that the repeat penalty looks at."),
)  # fmt: skip

_OPTIONS = (
    click.option("--window", type=int, metavar="W", help="Tokens in the confidence window."),
    click.option("--confidence", type=click.Choice(get_args(Confidence)), help="What is judged."),
    click.option("--threshold", type=float, metavar="TAU", help="Below this z of the leader, all bid."),
    click.option("--initiation", metavar="best|MEMBER", help="The best first trial leads, or this member."),
    click.option("--keep-trial/--no-keep-trial", default=None, help="Whether the first trial is kept."),
    click.option("--trigger", type=click.Choice(get_args(Trigger)), help="What makes all members bid."),
    click.option("--boundary", type=click.Choice(get_args(Boundary)), help="Where a trigger may fall."),
    click.option(
        "--selection", type=click.Choice(get_args(Selection)), help="Best bid, fixed order, or own draws."
    ),
    click.option("--draws", type=int, metavar="N", help="Draws of a round with --selection draws."),
    click.option("--draw-temperature", type=float, metavar="T", help="Their temperature."),
    click.option("--hysteresis", type=float, metavar="Z", help="By how much another bid must be better."),
    click.option("--cooldown", type=int, metavar="N", help="Tokens before the next trigger counts."),
    click.option("--max-relays", type=int, metavar="N", help="At most this many bidding rounds."),
    click.option("--prune/--no-prune", default=None, help="Stop bids that cannot win; same outcome."),
    click.option("--bids", type=click.Choice(get_args(BidMode)), help="One by one, or side by side."),
    *_DRAWS,
    click.option("--seed", type=int, metavar="N", help="The same seed gives the same answer."),
    click.option("--max-tokens", type=int, metavar="N", help="At most this many tokens of answer."),
    click.option("--deadline", type=float, metavar="SECONDS", help="End the answer after this time."),
    click.option("--stop", multiple=True, metavar="TEXT", help="End before this text; may be repeated."),
)  # fmt: skip


ALONE = ("single", "cot", "ccot", "ddcot", "ddcot-original", "roleplay", "tdh")
STRATEGIES = ("relay", *ALONE, "vote", "vote-cot", "vote-paper", "best-of", "hdmad")
"""As `macr_local.strategies` has them; named here so that --help loads nothing."""

prompts_option = click.option(
    "--prompts",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Your own words for methods of several calls (TOML).",
)


scorer_option = click.option(
    "--scorer",
    type=click.Choice(get_args(Scorer)),
    default="strict",
    show_default=True,
    help="Whose judgement counts.",
)


def names_of(members: str | None) -> list[str] | None:
    """The names in --members; None where it is not given, which is all."""
    return None if members is None else [name.strip() for name in members.split(",") if name.strip()]


def prompts_of(options: Mapping[str, Any]) -> Prompts:
    """The words in which methods ask.

    Raises:
        ConfigError: The file that was given is no file of prompts.
    """
    from macr_local.strategies.prompts import builtin, load

    return builtin() if options["prompts"] is None else load(options["prompts"])


def relay_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add every option of a relay; one that is not given leaves the pool's setting."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def sampling_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that set how tokens are drawn; one that is not given leaves the pool's setting."""
    for option in reversed(_DRAWS):
        command = option(command)
    return command


def settings_of(pool: RelaySettings, options: Mapping[str, Any]) -> RelaySettings:
    """A pool's settings with what the user gave in their place.

    Args:
        pool: The settings of the pool file.
        options: Values by parameter name, None or empty where not given.

    Raises:
        ConfigError: A value is out of range.
    """
    relay = {key: options[key] for key in _RELAY if options[key] is not None}
    if options["stop"]:
        relay["stop"] = tuple(options["stop"])
    return replace(pool, sampling=sampling_of(pool.sampling, options), **relay)


def sampling_of(pool: Sampling, options: Mapping[str, Any]) -> Sampling:
    """A pool's way to draw tokens with what the user gave in its place.

    Raises:
        ConfigError: A value is out of range.
    """
    return replace(pool, **{key: options[key] for key in _SAMPLING if options[key] is not None})
