"""The relay as Algorithm 1 says it, with no regard for cost: for every bid and token all is read again.

Written from the paper and docs/relay.md alone. It shares nothing with `macr_local.relay`: scripts are plain
functions here, there is no cache, no branch, no pruning, and text is judged from its beginning every time.
"""

from __future__ import annotations

import codecs
import hashlib
import json
import math
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from scripted import Choice, Script, choose, split

from macr_local.settings import RelaySettings


@dataclass(frozen=True)
class Model:
    name: str
    script: Script
    mu: float
    sigma: float
    opens_thought: bool = False


@dataclass
class Record:
    """Everything that was decided."""

    rounds: list[tuple[object, ...]] = field(default_factory=list)
    bids: list[tuple[object, ...]] = field(default_factory=list)
    relays: list[tuple[object, ...]] = field(default_factory=list)
    tokens: list[tuple[object, ...]] = field(default_factory=list)
    text: str = ""
    thought: str = ""
    reason: str = ""


def decoded(data: bytes) -> tuple[str, bool]:
    """Whole characters, and whether the beginning of another follows."""
    decoder = codecs.getincrementaldecoder("utf-8")("ignore")
    return decoder.decode(data), bool(decoder.getstate()[0])


def read(text: str, stop: Sequence[str], inside: bool) -> tuple[str, str, bool, bool, bool]:
    """Text and thought of an answer; whether it stopped, is inside a thought, and ever opened one."""
    texts, run, opened, skip = {False: "", True: ""}, "", inside, inside
    for character in text:
        if skip and character.isspace():
            continue
        skip, run = False, run + character
        hits = [p for p in ("<think>", "</think>", *(() if inside else stop)) if run.endswith(p)]
        if hits:
            hit = max(hits, key=len)
            texts[inside] += run[: -len(hit)]
            run, skip = "", True
            if hit == "<think>":
                inside, opened = inside or not opened, True
            elif hit == "</think>":
                inside = False
            else:
                return texts[False], texts[True], True, inside, opened
    texts[inside] += run
    return texts[False], texts[True], False, inside, opened


def draws(seed: int, name: str, number: int, phase: str) -> random.Random:
    key = json.dumps([seed, name, number, phase]).encode()
    return random.Random(int.from_bytes(hashlib.sha256(key).digest(), "big"))


def sentence_ends(before: str, after: str) -> bool:
    closers = "\"'”’»)\\]*_」』】〉》）"
    if not before or not after:
        return False
    if re.search(rf"[.!?…。！？｡][{closers}]*\s+\Z", before):
        return not after[0].isspace()
    if re.search(rf"[.!?…][{closers}]*\Z", before):
        return after[0].isspace()
    return bool(re.search(rf"[。！？｡][{closers}]*\Z", before)) and not re.match(
        rf"[.!?…。！？｡{closers}\s]", after
    )


def in_word(before: str, after: bytes) -> bool:
    """As far as these scripts go: of their letters, the Latin ones make words."""
    letter = "[A-Za-zÀ-ÖØ-öø-ÿ]"
    return bool(re.search(letter + r"\Z", before) and re.match(letter, after.decode("utf-8", "ignore")))


def relay(pool: Sequence[Model], s: RelaySettings) -> Record:
    """Run one question."""
    record = Record()
    answer = b""
    views: dict[str, list[bytes]] = {m.name: [] for m in pool}
    seen: dict[str, int] = {m.name: 0 for m in pool}  # characters
    first_opens: bool | None = None
    leader: Model | None = None
    number = -1
    judged = 1 if s.confidence == "first-doubt" else s.window

    def state(model: Model, more: bytes = b"") -> tuple[bool, tuple[bytes, ...]]:
        """Whether a stop string is complete, and which markers must not come next."""
        opens = model.opens_thought if first_opens is None else first_opens
        _, _, stopped, inside, opened = read(decoded(answer + more)[0], s.stop, opens)
        forbid = ((b"<think>",) if opened else ()) + (() if inside else (b"</think>",))
        return stopped, forbid

    def sync(model: Model) -> None:
        whole = decoded(answer)[0]
        views[model.name] += split(whole[seen[model.name] :].encode())
        seen[model.name] = len(whole)

    def sample(model: Model, tokens: list[bytes], more: bytes, rng: random.Random) -> Choice:
        greedy = s.sampling.temperature == 0
        return choose(model.script(tuple(tokens)), greedy, rng.random, state(model, more)[1])

    def bid(model: Model) -> tuple[list[Choice], float]:
        rng, out, text = draws(s.seed, model.name, number, "bid"), [], b""
        while len(out) < s.window:
            choice = sample(model, views[model.name] + [c.text for c in out], text, rng)
            out.append(choice)
            z = (choice.logprob - model.mu) / model.sigma
            if choice.is_end or (s.confidence == "first-doubt" and z < s.threshold):
                break
            text += choice.text
            if state(model, text)[0]:
                break
        return out, (math.fsum(c.logprob for c in out) / len(out) - model.mu) / model.sigma

    def append(model: Model, choice: Choice) -> None:
        nonlocal answer, first_opens
        if first_opens is None:
            first_opens = model.opens_thought
        segment.append(choice.logprob)
        mean = math.fsum(segment[-judged:]) / judged if len(segment) >= judged else None
        z = None if mean is None else (mean - model.mu) / model.sigma
        record.tokens.append((model.name, b"" if choice.is_end else choice.text, choice.logprob, mean, z))
        if choice.is_end:
            record.reason = "end"
            return
        answer += choice.text
        views[model.name].append(choice.text)
        seen[model.name] = len(decoded(answer)[0])
        if state(model)[0]:
            record.reason = "stop"
        elif len(record.tokens) == s.max_tokens:
            record.reason = "max_tokens"

    def best(reason: str, mean: float | None, z: float | None, dropped: bytes) -> list[Choice]:
        nonlocal leader
        record.rounds.append((number, leader.name if leader else None, reason, mean, z, dropped))
        for model in pool:
            sync(model)
        bids = [(model, *bid(model)) for model in pool]
        record.bids += [(number, m.name, [c.logprob for c in b], z) for m, b, z in bids]
        top = None
        for model, tokens, z in bids:
            score = z + s.hysteresis if model is leader else z
            if top is None or score > top[0] or (score == top[0] and model is leader):
                top = (score, model, tokens, z)
        assert top is not None
        record.relays.append((number, leader.name if leader else None, top[1].name, top[3]))
        leader = top[1]
        kept = top[2]
        if s.confidence == "first-doubt" and len(kept) > 1:
            last = (kept[-1].logprob - leader.mu) / leader.sigma
            kept = kept[:-1] if last < s.threshold else kept
        return kept

    segment: list[float] = []
    number = 0
    after_bid = 0
    kept: list[Choice] = []
    if s.initiation == "best":
        trial = best("initiation", None, None, b"")
        kept = trial if s.keep_trial else []
    else:
        leader = next(m for m in pool if m.name == s.initiation)
        record.relays.append((0, None, leader.name, None))
    for choice in kept:
        if not record.reason:
            append(leader, choice)
    lead_rng, start = draws(s.seed, leader.name, 0, "lead"), 0

    while not record.reason:
        choice = sample(leader, views[leader.name], b"", lead_rng)
        window = [*segment, choice.logprob][-judged:]
        mean = math.fsum(window) / judged if len(window) == judged else None
        z = None if mean is None else (mean - leader.mu) / leader.sigma
        whole, partial = decoded(answer)
        text = b"" if choice.is_end else choice.text
        fires = {
            "confidence": z is not None and z < s.threshold,
            "sentence": not choice.is_end
            and sentence_ends(whole[start:], choice.text.decode("utf-8", "ignore")),
            "never": False,
        }[s.trigger]
        if s.boundary == "word" and s.trigger == "confidence" and in_word(whole[start:], text):
            fires = False
        fires = fires and (bool(segment) or s.selection == "best")  # or nobody might ever write
        limited = s.max_relays is not None and number >= s.max_relays
        if not fires or partial or limited or after_bid < s.cooldown:
            append(leader, choice)
            after_bid += 1
            continue
        number += 1
        kept = []
        previous = leader
        if s.selection == "order":
            record.rounds.append((number, leader.name, s.trigger, mean, z, text))
            names = [m.name for m in pool]
            leader = pool[(names.index(leader.name) + 1) % len(pool)]
            sync(leader)
            record.relays.append((number, previous.name, leader.name, None))
        else:
            kept = best(s.trigger, mean, z, text)
        segment, after_bid, start = [], 0, len(whole)
        for choice in kept:
            if not record.reason:
                append(leader, choice)
        lead_rng = draws(s.seed, leader.name, number, "lead")

    shown, thought, stopped, *_ = read(decoded(answer)[0], s.stop, bool(first_opens))
    if not shown.strip() and thought.strip() and not stopped:
        shown += thought
    record.text, record.thought = shown, thought
    return record
