"""The methods a pool can answer with, one file each."""

from __future__ import annotations

from macr_local.errors import ConfigError
from macr_local.strategies import best_of, ccot, cot, ddcot, hdmad, relay, roleplay, single, tdh, vote
from macr_local.strategies.case import Case, Strategy
from macr_local.strategies.chain import alone
from macr_local.strategies.prompts import Prompts

__all__ = ["ALONE", "STRATEGIES", "WORDS", "Case", "Prompts", "Strategy", "strategy"]

STRATEGIES: dict[str, Strategy] = {
    "relay": relay.run,
    "single": single.run,
    "cot": alone(cot.plan),
    "ccot": alone(ccot.plan),
    "ddcot": alone(ddcot.plan),
    "ddcot-original": alone(ddcot.original),
    "roleplay": alone(roleplay.plan),
    "tdh": tdh.run,
    "vote": vote.run,
    "vote-cot": vote.run_cot,
    "vote-paper": vote.run_paper,
    "best-of": best_of.run,
    "hdmad": hdmad.run,
}
ALONE = frozenset({"single", "cot", "ccot", "ddcot", "ddcot-original", "roleplay", "tdh"})
"""Those that one member carries out."""

WORDS: dict[str, tuple[str, ...]] = {
    "cot": ("cot",),
    "ccot": ("ccot",),
    "ddcot": ("ddcot",),
    "ddcot-original": ("ddcot-original",),
    "roleplay": ("roleplay",),
    "vote-cot": ("cot",),
    "vote-paper": ("ccot", "ddcot"),
    "hdmad": ("ccot", "ddcot", "hdmad"),
}
"""The tables of `prompts.toml` that a strategy's answers depend on."""


def strategy(name: str) -> Strategy:
    """The strategy of that name.

    Raises:
        ConfigError: There is none; the message lists those there are.
    """
    if name not in STRATEGIES:
        raise ConfigError(f'There is no strategy "{name}"', f"Use one of {', '.join(STRATEGIES)}")
    return STRATEGIES[name]
