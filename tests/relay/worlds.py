"""Random pools and settings for the property tests."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import strategies as st
from reference import Model
from scripted import ScriptedMember, improvises

from macr_local.prompt import Prompt
from macr_local.relay.confidence import Calibration
from macr_local.relay.controller import Controller
from macr_local.relay.events import Event
from macr_local.settings import RelaySettings, Sampling

PROMPT = Prompt("how many red shapes are there?")


def pool_of(rng: random.Random) -> list[Model]:
    """One to four models; now and then two are alike, so that ties are real."""
    models: list[Model] = []
    for place in range(rng.choice((1, 2, 3, 3, 4))):
        if models and rng.random() < 0.2:
            models.append(replace(models[-1], name=f"m{place}"))
            continue
        script = improvises(rng.getrandbits(32), ends=rng.choice((0.0, 0.005, 0.02)))
        mu, sigma = rng.choice((-0.3, -0.5, -0.8)), rng.choice((0.1, 0.3, 0.7))
        models.append(Model(f"m{place}", script, mu, sigma, opens_thought=rng.random() < 0.2))
    return models


def settings_of(rng: random.Random, pool: list[Model]) -> RelaySettings:
    return RelaySettings(
        window=rng.randint(1, 6),
        confidence=rng.choice(("mean", "mean", "first-doubt")),
        threshold=rng.choice((-1.0, -0.3, 0.3, 1.0)),
        initiation=rng.choice(("best",) * 4 + (pool[0].name, pool[-1].name)),
        keep_trial=rng.random() < 0.7,
        trigger=rng.choice(("confidence",) * 5 + ("sentence", "sentence", "never")),
        boundary=rng.choice(("token", "token", "word")),
        selection=rng.choice(("best",) * 4 + ("order",)),
        hysteresis=rng.choice((0.0, 0.0, 0.25, 2.0)),
        cooldown=rng.choice((0, 0, 1, 4)),
        max_relays=rng.choice((None, None, None, 0, 1, 3)),
        prune=rng.random() < 0.5,
        max_tokens=rng.choice((rng.randint(1, 9), 60, 90)),
        stop=rng.choice(((), (), (), ("ababa",), ("\n", "babb"), ("aab", "ab.", "éé"))),
        seed=rng.randint(0, 3),
        sampling=Sampling(temperature=rng.choice((0.0, 0.0, 1.0))),
    )


def build(seed: int) -> tuple[list[Model], RelaySettings]:
    rng = random.Random(seed)
    pool = pool_of(rng)
    return pool, settings_of(rng, pool)


def worlds() -> st.SearchStrategy[tuple[list[Model], RelaySettings]]:
    """A pool and settings from one number: left to itself, hypothesis prefers answers without relays."""
    return st.integers(0, 2**40).map(build)


def seated(pool: list[Model]) -> list[ScriptedMember]:
    return [ScriptedMember(m.name, m.script, opens_thought=m.opens_thought) for m in pool]


def run(pool: list[Model], settings: RelaySettings) -> list[Event]:
    """Every event of one question, the clock standing still."""
    calibrations = {m.name: Calibration(m.mu, m.sigma, settings.judged) for m in pool}
    members = seated(pool)
    try:
        return list(Controller(members, calibrations, settings, clock=lambda: 0.0).run(PROMPT))
    finally:
        for member in members:
            member.close()
