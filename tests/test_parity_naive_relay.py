"""The relay decides as Algorithm 1 does when every bid starts in a fresh context.

The package's relay forks, rolls back, prunes, waits and runs threads; `tests.oracles.naive` does none of it.
Same rounds, same winners, same tokens, and the same z to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from macr_local import Pool, Prompt, Relay, RelaySettings, Sampling
from macr_local.relay import events
from tests.oracles import questions
from tests.oracles.bare import Bare
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

    def naive(self, settings: RelaySettings) -> NaiveRelay:
        calibrations = {name: self.pool.calibration(name).at(settings.window) for name in self.bare}
        members = [
            NaiveMember(name, bare, calibrations[name].mu, calibrations[name].sigma)
            for name, bare in self.bare.items()
        ]
        return NaiveRelay(members, settings)

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


@pytest.fixture(scope="module")
def scenes_pair(scenes: Pool) -> Iterator[Pair]:
    both = pair(scenes)
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
    relay, naive = Relay(both.pool, settings), both.naive(settings)
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
    sampling: Sampling, bids: str, scenes_pair: Pair, tmp_path: Path
) -> None:
    settings = replace(scenes_pair.pool.spec.settings, sampling=sampling, seed=2, bids=bids)
    asked = questions.scenes(6, tmp_path)
    assert relays(compare(scenes_pair, asked, settings)) > 10


def test_an_answer_cut_by_max_tokens_inside_a_bid(tiny_pair: Pair) -> None:
    settings = replace(tiny_pair.pool.spec.settings, max_tokens=5)
    assert {o.reason for o in compare(tiny_pair, questions.easy_vqa(3), settings)} == {"max_tokens"}
