"""The relay decides as Algorithm 1 does when every bid starts in a fresh context.

The package's relay forks, rolls back, prunes, waits and runs threads; `tests.oracles.naive` does none of it.
Same rounds, same winners, same tokens, and the same z to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import pytest

from macr_local import Pool, Prompt, Relay, RelaySettings, Sampling
from macr_local.config import MemberSpec
from macr_local.engine.member import LlamaMember
from macr_local.relay import events
from macr_local.relay.confidence import Calibration
from macr_local.relay.controller import Controller
from macr_local.settings import BidMode
from tests.oracles import questions
from tests.oracles.bare import Bare
from tests.oracles.gguf_models import write_model
from tests.oracles.naive import NaiveMember, NaiveRelay, Outcome
from tests.oracles.questions import Asked

GREEDY = Sampling()
WARM = Sampling(temperature=1.0)
NARROW = Sampling(temperature=0.7, top_k=20)


@dataclass
class Pair:
    """A pool, and bare models over the same files."""

    pool: Pool
    bare: dict[str, Bare]

    def naive(self, settings: RelaySettings, calibrations: dict[str, Calibration]) -> NaiveRelay:
        members = [
            NaiveMember(name, bare, calibrations[name].mu, calibrations[name].sigma)
            for name, bare in self.bare.items()
        ]
        return NaiveRelay(members, settings)

    def shipped(self, settings: RelaySettings) -> dict[str, Calibration]:
        return {name: self.pool.calibration(name).at(settings.judged) for name in self.bare}

    def close(self) -> None:
        for bare in self.bare.values():
            bare.close()


def pair(pool: Pool) -> Pair:
    bare = {}
    for spec in pool.spec.members:
        assert spec.threads is not None
        bare[spec.name] = Bare(spec.model, spec.projector, n_ctx=spec.n_ctx, threads=spec.threads)
    return Pair(pool, bare)


@pytest.fixture(scope="module")
def tiny_pair(tiny: Pool) -> Iterator[Pair]:
    both = pair(tiny)
    yield both
    both.close()


def agree(happened: list[events.Event], expected: Outcome) -> None:
    """The same decisions, numbers and text."""
    tokens = [event for event in happened if isinstance(event, events.Token)]
    assert [(t.member, t.id, t.logprob, t.z) for t in tokens] == [
        (t.member, t.id, t.logprob, t.z) for t in expected.tokens
    ]
    opened = [event for event in happened if isinstance(event, events.BidOpened)]
    relayed = [event for event in happened if isinstance(event, events.Relayed)]
    assert [(o.round, o.leader, o.index, o.z, r.winner) for o, r in zip(opened, relayed, strict=True)] == [
        (r.number, r.leader, r.index, r.z, r.winner) for r in expected.rounds
    ]
    for naive in expected.rounds:
        bids = [event for event in happened if isinstance(event, events.Bid) and event.round == naive.number]
        for bid, whole in zip(bids, naive.bids, strict=True):
            assert bid.member == whole.member
            written = len(bid.tokens)
            assert (bid.tokens, bid.logprobs) == (whole.tokens[:written], whole.logprobs[:written])
            if bid.bound is None:
                assert (written, bid.z) == (len(whole.tokens), whole.z)
            else:
                assert whole.z <= bid.bound
    finished = happened[-1]
    assert isinstance(finished, events.Finished)
    assert finished.reason == expected.reason
    assert "".join(event.text for event in happened if isinstance(event, events.Text)) == expected.text


def compare(both: Pair, asked: list[Asked], settings: RelaySettings) -> list[Outcome]:
    relay, naive = Relay(both.pool, settings), both.naive(settings, both.shipped(settings))
    outcomes = []
    for one in asked:
        expected = naive.ask(one.text, [one.picture])
        with relay.stream(Prompt.of(one.text, one.picture)) as stream:
            agree(list(stream), expected)
        outcomes.append(expected)
    return outcomes


def relays(outcomes: list[Outcome]) -> int:
    return sum(len(outcome.rounds) - 1 for outcome in outcomes)


SAMPLINGS = pytest.mark.parametrize("sampling", [GREEDY, WARM, NARROW], ids=["greedy", "warm", "narrow"])


@SAMPLINGS
def test_ten_easy_vqa_questions(sampling: Sampling, tiny_pair: Pair) -> None:
    settings = replace(tiny_pair.pool.spec.settings, sampling=sampling, seed=5)
    assert relays(compare(tiny_pair, questions.easy_vqa(10), settings)) > 0


@pytest.mark.slow
@SAMPLINGS
def test_a_hundred_easy_vqa_questions(sampling: Sampling, tiny_pair: Pair) -> None:
    settings = replace(tiny_pair.pool.spec.settings, sampling=sampling, seed=1)
    outcomes = compare(tiny_pair, questions.easy_vqa(100), settings)
    assert relays(outcomes) > 20
    assert len({round.winner for outcome in outcomes for round in outcome.rounds}) == 3


@pytest.mark.parametrize("bids", ["turn", "parallel"])
@pytest.mark.parametrize("sampling", [GREEDY, WARM], ids=["greedy", "warm"])
def test_scenes_where_answers_change_hands_many_times(
    sampling: Sampling, bids: BidMode, tiny_pair: Pair, tmp_path: Path
) -> None:
    settings = replace(tiny_pair.pool.spec.settings, sampling=sampling, seed=2, bids=bids)
    asked = questions.scenes(6, tmp_path)
    assert relays(compare(tiny_pair, asked, settings)) > 10


def test_an_answer_cut_by_max_tokens_inside_a_bid(tiny_pair: Pair) -> None:
    settings = replace(tiny_pair.pool.spec.settings, max_tokens=5)
    assert {o.reason for o in compare(tiny_pair, questions.easy_vqa(3), settings)} == {"max_tokens"}


@pytest.fixture(scope="module")
def babblers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[list[LlamaMember], list[Bare]]]:
    """Random weights in three kinds of memory. They write noise: many bytes are parts of characters."""
    folder = tmp_path_factory.mktemp("models")
    members, bare = [], []
    for name in ("llama", "gemma3", "lfm2"):
        path = write_model(folder / f"{name}.gguf", name)
        members.append(LlamaMember(MemberSpec(name, path, n_ctx=512, threads=1)))
        bare.append(Bare(path, n_ctx=512))
    yield members, bare
    for one in (*members, *bare):
        one.close()


@pytest.mark.parametrize("window", [1, 3])
def test_members_that_are_passed_over_read_on_as_if_they_had_bid(
    window: int, babblers: tuple[list[LlamaMember], list[Bare]]
) -> None:
    """Pruned before its first token, a member reads nothing in that round; words must not run together later.

    The z of two members cannot exceed 1 here, so they are passed over whenever the third one's does. With
    w = 1 what they missed is single tokens, and for these weights a batch of one differs from one of two.
    """
    members, bare = babblers
    histories = [(-1.0, 1.0), (-1.0, 1.0), (-6.0, 1.5)]
    calibrations = {m.name: Calibration(*h, window) for m, h in zip(members, histories, strict=True)}
    settings = RelaySettings(window=window, threshold=0.5, max_tokens=80, sampling=Sampling(temperature=1.3))
    came_back = 0
    for seed in range(5):
        seeded = replace(settings, seed=seed)
        naive = NaiveRelay(
            [NaiveMember(m.name, b, *h) for m, b, h in zip(members, bare, histories, strict=True)], seeded
        )
        happened = list(Controller(members, calibrations, seeded).run(Prompt("what is it?")))
        agree(happened, naive.ask("what is it?"))
        for member in members:
            bids = [e for e in happened if isinstance(e, events.Bid) and e.member == member.name]
            came_back += sum(a.round > 0 and not a.tokens and bool(b.tokens) for a, b in pairwise(bids))
    assert came_back > 5
