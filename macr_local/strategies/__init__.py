"""The methods a pool can answer with, one file each."""

from __future__ import annotations

from macr_local.errors import ConfigError
from macr_local.strategies import best_of, relay, single, vote
from macr_local.strategies.case import Case, Strategy

__all__ = ["STRATEGIES", "Case", "Strategy", "strategy"]

STRATEGIES: dict[str, Strategy] = {
    "relay": relay.run,
    "single": single.run,
    "vote": vote.run,
    "best-of": best_of.run,
}


def strategy(name: str) -> Strategy:
    """The strategy of that name.

    Raises:
        ConfigError: There is none; the message lists those there are.
    """
    if name not in STRATEGIES:
        raise ConfigError(f'There is no strategy "{name}"', f"Use one of {', '.join(STRATEGIES)}")
    return STRATEGIES[name]
