"""The sampler against an obvious one, and against llama.cpp's own filters."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from macr_local.engine.library import api
from macr_local.engine.sampler import Sampler
from macr_local.errors import EngineError
from macr_local.settings import Sampling

Logits = NDArray[np.float32]


def never() -> float:
    raise AssertionError("greedy sampling uses no random number")


@st.composite
def logits_of(draw: st.DrawFn, least: int = 1, most: int = 60) -> Logits:
    """Rows with a few sharp peaks, with ties, or flat."""
    size = draw(st.integers(least, most))
    values = st.integers(-30, 30).map(lambda n: n / 4)
    return np.array(draw(st.lists(values, min_size=size, max_size=size)), np.float32)


FILTERS = st.builds(
    Sampling,
    temperature=st.sampled_from([0.3, 0.7, 1.0, 1.5]),
    top_k=st.sampled_from([0, 1, 2, 5, 20, 1000]),
    top_p=st.sampled_from([0.1, 0.5, 0.9, 0.95, 1.0]),
    min_p=st.sampled_from([0.0, 0.01, 0.05, 0.3]),
    repeat_penalty=st.sampled_from([1.0, 1.1, 1.7]),
    repeat_last_n=st.sampled_from([0, 1, 3, 64]),
)
NEAR = 1e-5


@dataclass
class Obvious:
    """The filters written out one by one, for a row of logits.

    Attributes:
        candidates: What is left, likeliest first, with its probability.
        margin: How far the closest decision was from falling the other way, as a probability.
    """

    candidates: list[tuple[int, float]]
    margin: float

    @classmethod
    def of(
        cls, logits: Logits, sampling: Sampling, recent: Sequence[int] = (), forbid: Collection[int] = ()
    ) -> Obvious:
        scores = {i: float(x) for i, x in enumerate(logits) if i not in forbid}
        margin = 1.0
        for token in set(recent[max(len(recent) - sampling.repeat_last_n, 0) :]) & set(scores):
            penalty = float(np.float32(sampling.repeat_penalty))
            scores[token] = scores[token] / penalty if scores[token] > 0 else scores[token] * penalty
        ranked = sorted(scores, key=lambda i: (-np.float32(scores[i]), i))
        top = scores[ranked[0]]
        if sampling.top_k:
            ranked = ranked[: sampling.top_k]
        if sampling.top_p < 1:
            mass, reached, kept = sum(math.exp(scores[i] - top) for i in ranked), 0.0, []
            for token in ranked:
                kept.append(token)
                reached += math.exp(scores[token] - top) / mass
                margin = min(margin, abs(reached - sampling.top_p))
                if reached >= sampling.top_p:
                    break
            ranked = kept
        if sampling.min_p:
            shares = {token: math.exp(scores[token] - top) for token in ranked}
            margin = min(margin, *(abs(share - sampling.min_p) for share in shares.values()))
            ranked = [token for token in ranked if shares[token] >= sampling.min_p]
        weights = [math.exp((scores[i] - top) / sampling.temperature) for i in ranked]
        total = sum(weights)
        return cls([(i, weight / total) for i, weight in zip(ranked, weights, strict=True)], margin)

    def at(self, place: float) -> int:
        """The candidate at a place from 0 to 1, the candidates' probabilities laid end to end."""
        reach = np.cumsum([probability for _, probability in self.candidates])
        self.margin = min(self.margin, float(np.abs(reach - place).min()))
        return self.candidates[min(int(np.searchsorted(reach, place, side="right")), len(reach) - 1)][0]


@settings(max_examples=250, deadline=None)
@given(
    logits_of(), FILTERS, st.floats(0, 1 - 2 * NEAR),
    st.lists(st.integers(0, 59), max_size=6), st.sets(st.integers(0, 59), max_size=3),
)  # fmt: skip
def test_a_draw_is_the_obvious_samplers_draw(
    logits: Logits, sampling: Sampling, place: float, recent: list[int], forbid: set[int]
) -> None:
    recent = [token % len(logits) for token in recent]
    forbid = {token % len(logits) for token in forbid}
    assume(len(forbid) < len(logits))
    obvious = Obvious.of(logits, sampling, recent, forbid)
    expected = obvious.at(place)
    assume(obvious.margin > NEAR)
    before = logits.copy()
    token, logprob = Sampler(sampling, len(logits)).sample(logits, lambda: place, recent, forbid)
    assert token == expected
    assert np.array_equal(logits, before)
    assert logprob == pytest.approx(float(log_softmax(logits)[token]), abs=1e-5)


@pytest.mark.parametrize(
    "filters", [{}, {"top_p": 0.97}, {"top_k": 5000}, {"top_k": 5000, "top_p": 0.9}, {"min_p": 0.02}], ids=str
)
def test_candidates_that_are_sorted_step_by_step_are_in_the_same_order(filters: dict[str, Any]) -> None:
    logits = (np.random.default_rng(3).standard_normal(20_000) * 1.5).round(2).astype(np.float32)
    sampling = Sampling(temperature=0.9, **filters)
    ranks = {token: rank for rank, (token, _) in enumerate(Obvious.of(logits, sampling).candidates)}
    reach = np.cumsum([probability for _, probability in Obvious.of(logits, sampling).candidates])
    sampler = Sampler(sampling, len(logits))
    for place in (0.0, 0.1, 0.5, 0.9, 0.99, 0.9999):
        token, _ = sampler.sample(logits, lambda place=place: place)
        # float32 weights: among thousands of small candidates the edges move by a few of 1e-7 each.
        assert abs(ranks[token] - int(np.searchsorted(reach, place, side="right"))) <= 2


def test_draws_fall_on_tokens_in_proportion_to_their_probabilities() -> None:
    logits = np.log(np.array([0.05, 0.4, 0.25, 0.3], np.float32))
    sampler, places = Sampler(Sampling(temperature=1.0), 4), (np.arange(4000) + 0.5) / 4000
    drawn = [sampler.sample(logits, lambda place=place: place)[0] for place in places]
    assert np.bincount(drawn).tolist() == pytest.approx([200, 1600, 1000, 1200], abs=1)
    # The order of the places is that of falling probability.
    assert list(dict.fromkeys(drawn)) == [1, 3, 2, 0]


# llama.cpp's own samplers.


def kept_by_llama_cpp(logits: Logits, sampling: Sampling, recent: Sequence[int]) -> set[int]:
    data = (api.llama_token_data * len(logits))()
    for token, logit in enumerate(logits):
        data[token].id, data[token].logit = token, float(logit)
    array = api.llama_token_data_array(data=data, size=len(logits), selected=-1, sorted=False)
    penalties = api.llama_sampler_init_penalties(
        len(logits), sampling.repeat_last_n, sampling.repeat_penalty, 0.0, 0.0
    )
    for token in recent:
        api.llama_sampler_accept(penalties, token)
    samplers = (
        penalties,
        api.llama_sampler_init_top_k(sampling.top_k),
        api.llama_sampler_init_top_p(sampling.top_p, 1),
        api.llama_sampler_init_min_p(sampling.min_p, 1),
        api.llama_sampler_init_temp(sampling.temperature),
    )
    for sampler in samplers:
        api.llama_sampler_apply(sampler, ctypes.byref(array))
        api.llama_sampler_free(sampler)
    return {array.data[i].id for i in range(array.size)}


@settings(max_examples=100, deadline=None)
@given(
    st.randoms(use_true_random=False),
    st.integers(2, 1500),
    FILTERS,
    st.lists(st.integers(0, 1499), max_size=5),
)
def test_the_filters_keep_the_tokens_that_llama_cpps_keep(
    random: Any, size: int, sampling: Sampling, recent: list[int]
) -> None:
    # No ties, whose order llama.cpp leaves open.
    logits = np.array([x / 64 for x in random.sample(range(-9 * 64, 20 * 64), size)], np.float32)
    recent = [token % size for token in recent]
    obvious = Obvious.of(logits, sampling, recent)
    assume(obvious.margin > NEAR)
    candidates, kept = obvious.candidates, kept_by_llama_cpp(logits, sampling, recent)
    assert kept == {token for token, _ in candidates}
    # The first and the last place of the line are its first and its last candidate.
    sampler = Sampler(sampling, size)
    assert sampler.sample(logits, lambda: 0.0, recent)[0] == candidates[0][0]
    assert sampler.sample(logits, lambda: 1 - 2**-53, recent)[0] in kept


# The log-probability.


def log_softmax(logits: Logits) -> NDArray[np.float64]:
    """By hand, in float64."""
    exact = logits.astype(np.float64)
    return exact - exact.max() - np.log(np.exp(exact - exact.max()).sum())


@pytest.fixture(params=[400, 32_000, 262_144])
def row(request: pytest.FixtureRequest) -> Logits:
    rng = np.random.default_rng(request.param)
    logits = (rng.standard_normal(request.param) * 4).astype(np.float32)
    logits[7] += 15
    return logits


@pytest.mark.parametrize("place", [0.0, 0.3, 0.999])
def test_the_logprob_is_that_of_the_sampled_token_itself(row: Logits, place: float) -> None:
    token, logprob = Sampler(Sampling(temperature=1.0), len(row)).sample(row, lambda: place)
    assert logprob == pytest.approx(log_softmax(row)[token], abs=1e-5)


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(),
        Sampling(temperature=1.0, top_k=1),
        Sampling(temperature=0.2),
        Sampling(temperature=2.0, top_p=0.5),
        Sampling(temperature=1.0, min_p=0.9),
        Sampling(repeat_penalty=1.01),
    ],
)
def test_no_setting_changes_the_confidence_of_a_token(row: Logits, sampling: Sampling) -> None:
    likeliest = int(row.argmax())
    token, logprob = Sampler(sampling, len(row)).sample(row, lambda: 0.0, recent=[likeliest])
    assert (token, logprob) == (likeliest, Sampler(Sampling(), len(row)).sample(row, never)[1])


def test_a_certain_token_has_a_logprob_of_zero_and_not_above() -> None:
    logits = np.full(1000, -3.4e38, np.float32)
    logits[3] = 3.4e38
    assert Sampler(Sampling(), 1000).sample(logits, never) == (3, 0.0)
    assert Sampler(Sampling(temperature=1.0), 1000).sample(logits, lambda: 0.999) == (3, 0.0)


# Greedy, forbidden, broken.


def test_greedy_takes_the_lowest_id_of_a_tie_and_draws_nothing() -> None:
    logits = np.array([1, 5, 2, 5, 5], np.float32)
    assert Sampler(Sampling(), 5).sample(logits, never)[0] == 1


@pytest.mark.parametrize("top_k", [0, 1, 2])
def test_a_tie_for_the_last_place_goes_to_the_lowest_id(top_k: int) -> None:
    logits = np.zeros(6, np.float32)
    sampler = Sampler(Sampling(temperature=1.0, top_k=top_k), 6)
    drawn = {sampler.sample(logits, lambda place=place: place / 60)[0] for place in range(60)}
    assert drawn == set(range(top_k or 6))


@pytest.mark.parametrize("temperature", [1e-300, 1e-30, 1e-3])
def test_the_coldest_temperatures_are_greedy(temperature: float) -> None:
    logits = np.array([0.5, 2.5, 2.25], np.float32)
    assert Sampler(Sampling(temperature=temperature), 3).sample(logits, lambda: 0.999)[0] == 1


def test_one_number_is_drawn_for_one_token() -> None:
    calls = []
    sampler = Sampler(Sampling(temperature=1.0, top_k=1), 8)
    sampler.sample(np.arange(8, dtype=np.float32), lambda: calls.append(1) or 0.5)  # type: ignore[func-returns-value]
    assert len(calls) == 1


@pytest.mark.parametrize(
    "sampling", [Sampling(), Sampling(temperature=1.0), Sampling(temperature=1.0, top_k=2)], ids=str
)
def test_what_is_forbidden_is_never_chosen(sampling: Sampling) -> None:
    logits = np.array([1, 9, 8, 0], np.float32)
    sampler = Sampler(sampling, 4)
    drawn = {sampler.sample(logits, lambda place=place: place / 50, (), {1, 2})[0] for place in range(50)}
    assert drawn <= {0, 3}
    # The confidence is still the model's own: what was forbidden keeps its share.
    logprob = sampler.sample(logits, lambda: 0.0, (), {1, 2})[1]
    assert logprob == pytest.approx(log_softmax(logits)[0], abs=1e-5)


def test_nothing_left_to_choose_is_an_error() -> None:
    with pytest.raises(EngineError, match="every token is forbidden"):
        Sampler(Sampling(), 2).sample(np.zeros(2, np.float32), never, (), [0, 1])


@pytest.mark.parametrize("broken", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=1.0, top_k=3)])
def test_logits_that_are_not_finite_are_an_error(sampling: Sampling, broken: float) -> None:
    logits = np.arange(9, dtype=np.float32)
    logits[4] = broken
    with pytest.raises(EngineError, match="not finite"):
        Sampler(sampling, 9).sample(logits, lambda: 0.5)


def test_a_row_of_another_vocabulary_is_an_error() -> None:
    with pytest.raises(EngineError, match="vocabulary of 8"):
        Sampler(Sampling(), 8).sample(np.zeros(9, np.float32), never)


def test_the_repeat_penalty_looks_at_the_latest_tokens_only() -> None:
    logits = np.array([4.0, 3.9, -1.0], np.float32)
    for last, chosen in ((0, 0), (1, 0), (2, 1), (64, 1)):
        sampler = Sampler(Sampling(repeat_penalty=1.5, repeat_last_n=last), 3)
        assert sampler.sample(logits, never, recent=[0, 2])[0] == chosen


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("temperature", [0.0, 1e-300, 1.0, 100.0])
@pytest.mark.parametrize("penalty", [0.01, 0.99, 1.01, 100.0])
def test_the_strongest_penalty_on_the_largest_logits_stays_finite(penalty: float, temperature: float) -> None:
    largest = float(np.finfo(np.float32).max)
    for row in ([largest, 0.0, -largest], [-largest] * 3, [1e-45, -1e-45, 0.0]):
        logits = np.array(row, np.float32)
        sampler = Sampler(Sampling(temperature=temperature, repeat_penalty=penalty), 3)
        token, logprob = sampler.sample(logits, lambda: 0.999, recent=[0, 1, 2])
        assert token in range(3)
        assert math.isfinite(logprob)
