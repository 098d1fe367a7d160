"""Bids in turn and side by side, pruned and whole: ``python -m benchmarks.bids``.

The pool of scenes, in which answers change hands several times. All ways must decide alike; what differs is
how many tokens of lost bids are written, and the time.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from benchmarks.report import table, verdict
from macr_local import Pool, Prompt, Relay
from macr_local.relay.events import Bid, Event, Relayed, Token
from macr_local.settings import BidMode
from tests.oracles.questions import scenes

WAYS: dict[str, tuple[BidMode, bool]] = {
    "in turn, pruned": ("turn", True),
    "in turn, whole": ("turn", False),
    "side by side": ("parallel", False),
}


def decided(happened: list[Event]) -> list[Event]:
    """What must be alike."""
    return [event for event in happened if isinstance(event, (Relayed, Token))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--window", type=int, default=None, help="w; the pool's own if not given")
    given = parser.parse_args()
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    written = dict.fromkeys(WAYS, 0)
    relays, alike = 0, True
    with tempfile.TemporaryDirectory() as folder, Pool.open("tiny") as pool:
        window = given.window or pool.spec.settings.window
        for asked in scenes(given.questions, Path(folder)):
            prompt = Prompt.of(asked.text, asked.picture)
            Relay(pool).ask(prompt)  # encodes the picture, so that no way pays for it
            outcomes = []
            for way, (bids, prune) in WAYS.items():
                relay = Relay(pool, replace(pool.spec.settings, window=window, bids=bids, prune=prune))
                began = time.perf_counter()
                with relay.stream(prompt) as stream:
                    happened = list(stream)
                seconds[way].append(time.perf_counter() - began)
                written[way] += sum(len(event.tokens) for event in happened if isinstance(event, Bid))
                outcomes.append(decided(happened))
            alike = alike and all(outcome == outcomes[0] for outcome in outcomes)
            relays += sum(isinstance(event, Relayed) for event in outcomes[0]) - 1
    whole = written["in turn, whole"]
    table(
        [f"{given.questions} questions, {relays} relays, w = {window}", "ms each", "bid tokens", "saved"],
        [
            [way, f"{statistics.median(seconds[way]) * 1e3:.1f}", str(n), f"{1 - n / whole:.1%}"]
            for way, n in written.items()
        ],
    )
    verdict(
        {
            "the same relays and the same tokens, whichever way": alike,
            "pruning writes fewer tokens of bids": written["in turn, pruned"] < whole,
        }
    )


if __name__ == "__main__":
    main()
