"""Confidence, bounds and random streams."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from macr_local.errors import CalibrationError
from macr_local.relay import policies, seeds
from macr_local.relay.confidence import Calibration, Window, highest_mean, mean

logprobs = st.floats(min_value=-1e300, max_value=0.0)
likely = st.one_of(logprobs, st.floats(-30.0, 0.0), st.sampled_from((0.0, -0.0, -5e-324, -1e-9, -0.1)))


@given(
    st.lists(likely, min_size=1, max_size=16),
    st.integers(0, 16),
    st.integers(0, 16),
    st.floats(-20, 0),
    st.floats(1e-6, 10),
    st.sampled_from((0.0, 0.1, 1 / 3)),
)
def test_no_completion_of_a_bid_ranks_above_its_bound(
    bid: list[float], begun: int, longer: int, mu: float, sigma: float, hysteresis: float
) -> None:
    window = len(bid) + longer
    calibration = Calibration(mu, sigma, window)
    for leads in (False, True):
        bound, final = (
            policies.rank(calibration.z(m), 1, leads=leads, hysteresis=hysteresis)
            for m in (highest_mean(bid[:begun], window), mean(bid))
        )
        assert final <= bound


@given(st.lists(likely, min_size=1, max_size=16))
def test_the_bound_of_a_whole_bid_is_its_mean(bid: list[float]) -> None:
    assert highest_mean(bid, len(bid)) == mean(bid)


@given(st.lists(st.floats(-30, 0), min_size=1, max_size=40), st.integers(1, 16))
def test_a_window_is_the_last_w_tokens_of_its_segment_or_undefined(tokens: list[float], size: int) -> None:
    window = Window(size)
    for count, logprob in enumerate(tokens, start=1):
        last = tokens[:count][-size:]
        assert window.mean_with(logprob) == (math.fsum(last) / size if count >= size else None)
        window.add(logprob)


def test_looking_at_a_token_does_not_keep_it() -> None:
    window = Window(2)
    window.add(-1.0)
    assert window.mean_with(-3.0) == -2.0
    assert window.mean_with(-5.0) == -3.0


@pytest.mark.parametrize(("mu", "sigma"), [(-0.5, 0.0), (-0.5, -1.0), (math.nan, 1.0), (-0.5, math.inf)])
def test_a_calibration_that_cannot_standardise_is_refused(mu: float, sigma: float) -> None:
    with pytest.raises(CalibrationError, match="macr-local calibrate"):
        Calibration(mu, sigma, 16)


def test_each_stream_depends_on_all_four_of_its_values() -> None:
    keys = [
        (7, "a", 1, "bid"),
        (8, "a", 1, "bid"),
        (7, "b", 1, "bid"),
        (7, "a", 2, "bid"),
        (7, "a", 1, "lead"),
    ]
    firsts = [seeds.stream(*key)() for key in keys]
    assert len(set(firsts)) == len(keys)
    assert [seeds.stream(*key)() for key in keys] == firsts


def test_streams_are_the_same_on_every_machine() -> None:
    draw = seeds.stream(7, "qwen3vl", 2, "bid")
    assert [draw(), draw()] == [0.287656617992066, 0.5558949853937097]
