"""One member answers alone: the baseline that every other method is compared with."""

from __future__ import annotations

from macr_local.strategies.chain import alone
from macr_local.strategies.plan import io

run = alone(io)
"""Answer with the leader, or with the pool's first member.

It is a relay of one that never bids, so prompt, sampler, counters and events are the relay's own.
"""
