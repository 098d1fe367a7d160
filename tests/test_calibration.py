"""mu and sigma from stored log-probabilities; mismatches refused; runs that can be interrupted."""

from __future__ import annotations

import json
import math
import statistics
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from macr_local import Pool, Sampling
from macr_local.calibrating import calibrate
from macr_local.calibration import MemberCalibration, Origin
from macr_local.errors import CalibrationError, Cancelled, DataError
from macr_local.protocol import Fingerprint
from macr_local.references import Reference, ReferenceSet, read
from macr_local.shift import shift

PRINT = Fingerprint("a" * 64, "b" * 64, "Q8_0", "c" * 64)
ORIGIN = Origin("m", PRINT, Sampling(), 96, 0, "set", "d" * 64, 2, "llama-cpp-python 0.3.36", "2026-01-01")


def made(answers: list[list[float]]) -> MemberCalibration:
    return MemberCalibration(ORIGIN, [f"k{i}" for i in range(len(answers))], [np.array(a) for a in answers])


def noise(questions: int, length: int = 20, *, mean: float = -0.4, seed: int = 0) -> list[list[float]]:
    rng = np.random.default_rng(seed)
    return np.minimum(rng.normal(mean, 0.1, (questions, length)), 0).tolist()


@settings(max_examples=60, deadline=None)
@given(
    answers=st.lists(
        st.lists(st.floats(-9, -0.001), min_size=1, max_size=12), min_size=1, max_size=6
    ),
    window=st.integers(1, 6),
)
def test_mu_and_sigma_are_those_of_all_overlapping_windows(answers: list[list[float]], window: int) -> None:
    means = [
        math.fsum(answer[i : i + window]) / window
        for answer in answers
        for i in range(len(answer) - window + 1)
    ]
    found = made(answers).statistics(window)
    if len(means) < 2:
        assert found is None
    else:
        assert found is not None
        assert found.windows == len(means)
        assert found.mu == pytest.approx(statistics.fmean(means))
        assert found.sigma == pytest.approx(statistics.stdev(means), abs=1e-12)


def test_what_is_saved_is_read_back_bit_by_bit(tmp_path: Path) -> None:
    calibration = made(noise(5))
    calibration.save(tmp_path)
    again = MemberCalibration.load(tmp_path, "m")
    assert again.origin == calibration.origin
    assert again.keys == calibration.keys
    assert all(np.array_equal(a, b) for a, b in zip(again.logprobs, calibration.logprobs, strict=True))
    assert again.at(4) == calibration.at(4)
    packed = (tmp_path / "m.npz").read_bytes()
    calibration.save(tmp_path)
    assert (tmp_path / "m.npz").read_bytes() == packed, "the same numbers are the same bytes"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.json", "m.npz"]


def test_too_few_windows_or_no_spread_give_no_sigma() -> None:
    with pytest.raises(CalibrationError, match=r"has 5 windows of 16 tokens, from 1 of 1 answers"):
        made(noise(1)).at(16)
    with pytest.raises(CalibrationError, match="has 0 windows of 64 tokens"):
        made(noise(9)).at(64)
    with pytest.raises(CalibrationError, match="gives no sigma"):
        made([[-0.5] * 40] * 4).at(4)


@pytest.mark.parametrize(
    ("part", "value"), [("model", "x"), ("projector", None), ("quantization", "F16"), ("template", "y")]
)
def test_another_file_or_template_is_refused_by_name(part: str, value: str | None) -> None:
    calibration = made(noise(5))
    calibration.check(PRINT)
    with pytest.raises(CalibrationError, match=rf"m was made with another {part}.*macr-local calibrate"):
        calibration.check(replace(PRINT, **{part: value}))


def test_other_sampling_and_another_build_are_noted_and_not_refused() -> None:
    calibration = made(noise(5))
    assert calibration.notes(Sampling(), ORIGIN.llama_cpp) == ()
    notes = calibration.notes(Sampling(temperature=0.7), "llama-cpp-python 9")
    assert notes == (
        "m was calibrated with temperature 0, not 0.7: its z may be shifted",
        "m was calibrated with llama-cpp-python 0.3.36, this is llama-cpp-python 9",
    )


@pytest.mark.parametrize("damage", ["missing", "json", "npz", "format", "keys", "pair"])
def test_damaged_files_are_one_clear_line(damage: str, tmp_path: Path) -> None:
    made(noise(5)).save(tmp_path)
    where = tmp_path / "m.json"
    record = json.loads(where.read_text())
    if damage == "missing":
        (tmp_path / "m.npz").unlink()
    elif damage == "json":
        where.write_text(where.read_text()[:200])
    elif damage == "npz":
        (tmp_path / "m.npz").write_bytes((tmp_path / "m.npz").read_bytes()[:-40])
    elif damage == "format":
        where.write_text(json.dumps({**record, "macr_calibration": 99}))
    elif damage == "keys":
        del record["origin"]["sampling"]
        where.write_text(json.dumps(record))
    else:
        made(noise(5, seed=1)).save(tmp_path / "other")
        (tmp_path / "m.npz").write_bytes((tmp_path / "other" / "m.npz").read_bytes())
    with pytest.raises(CalibrationError) as raised:
        MemberCalibration.load(tmp_path, "m", mend="macr-local calibrate REFERENCE --pool p")
    assert "--pool p" in raised.value.fix
    assert "\n" not in str(raised.value)


# Running.


@pytest.fixture(scope="module")
def references() -> ReferenceSet:
    return read("easy-vqa").sample(12, 3)


@pytest.fixture(scope="module")
def one() -> object:
    with Pool.open("tiny", members=["tiny-internvl"]) as pool:
        yield pool


def test_an_interrupted_run_goes_on_and_ends_the_same(
    one: Pool, references: ReferenceSet, tmp_path: Path
) -> None:
    straight = calibrate(one, references, tmp_path / "straight", one.spec.settings)[0]

    class Killed(Exception):
        pass

    def kill(member: str, done: int, total: int) -> None:
        if done == 5:
            raise Killed

    with pytest.raises(Killed):
        calibrate(one, references, tmp_path / "killed", one.spec.settings, progress=kill)
    journal = tmp_path / "killed" / "tiny-internvl.partial.jsonl"
    journal.write_bytes(journal.read_bytes() + b'{"key": "torn')
    asked: list[int] = []
    again = calibrate(
        one, references, tmp_path / "killed", one.spec.settings,
        progress=lambda member, done, total: asked.append(done),
    )[0]  # fmt: skip
    assert again.resumed == 5
    assert asked == list(range(1, 13))
    assert not journal.exists()
    assert again.calibration.keys == straight.calibration.keys
    assert all(
        np.array_equal(a, b)
        for a, b in zip(again.calibration.logprobs, straight.calibration.logprobs, strict=True)
    )


def test_an_interrupted_run_with_other_settings_is_not_mixed_in(
    one: Pool, references: ReferenceSet, tmp_path: Path
) -> None:
    def stop(member: str, done: int, total: int) -> None:
        raise Cancelled("stop")

    with pytest.raises(Cancelled):
        calibrate(one, references, tmp_path, one.spec.settings, progress=stop)
    other = replace(one.spec.settings, max_tokens=5)
    with pytest.raises(CalibrationError, match=r"interrupted run with other.*--restart"):
        calibrate(one, references, tmp_path, other)
    found = calibrate(one, references, tmp_path, other, restart=True)[0]
    assert found.resumed == 0
    assert max(map(len, found.calibration.logprobs)) == 5


def test_rows_that_cannot_be_used_are_reported_and_the_others_count(
    one: Pool, references: ReferenceSet, tmp_path: Path
) -> None:
    bad = (
        Reference("row 1", "", (), "it has no question"),
        Reference("row 2", "what?", (b"this is no image",)),
    )
    mixed = ReferenceSet("mixed", (*bad, *references.items[:3]))
    outcome = calibrate(one, mixed, tmp_path, one.spec.settings)[0]
    assert outcome.calibration.origin.questions == 3
    assert [where for where, _ in outcome.problems] == ["row 1", "row 2"]
    with pytest.raises(DataError, match="could answer none of the 2"):
        calibrate(one, ReferenceSet("bad", bad), tmp_path, one.spec.settings)


def test_sampled_answers_depend_on_the_question_and_not_on_the_order(
    one: Pool, references: ReferenceSet, tmp_path: Path
) -> None:
    drawn = replace(one.spec.settings, sampling=Sampling(temperature=1.0), seed=4)
    forward = calibrate(one, references, tmp_path / "a", drawn)[0].calibration
    backward = calibrate(
        one, ReferenceSet("x", references.items[::-1]), tmp_path / "b", drawn
    )[0].calibration
    assert forward.keys == backward.keys[::-1]
    assert all(map(np.array_equal, forward.logprobs, backward.logprobs[::-1]))


# The embedded pools, and the shift.


@pytest.mark.parametrize("name", ["tiny", "scenes"])
def test_the_embedded_pools_are_calibrated_for_their_files(
    name: str, request: pytest.FixtureRequest
) -> None:
    pool: Pool = request.getfixturevalue(name)
    for member in pool.members:
        calibration = pool.calibration(member.name)
        assert calibration.at(pool.spec.settings.window).sigma > 0
        assert calibration.origin.questions >= 200
        assert calibration.notes(pool.spec.settings.sampling, calibration.origin.llama_cpp) == ()


def test_a_shift_is_found_and_standardising_removes_it() -> None:
    apart = {"a": made(noise(200, mean=-0.4)), "b": made(noise(200, mean=-0.7, seed=1))}
    found = shift(apart, 4)
    assert found is not None
    (gap,) = found.gaps
    assert gap.raw_interval[0] < gap.raw < gap.raw_interval[1]
    assert gap.raw_interval[0] > 1
    assert gap.standardised_interval[0] < 0 < gap.standardised_interval[1]
    assert found.f_all_windows > found.f_one_window > 10
    assert shift(apart, 4) == found, "seeded"
    assert shift({"a": apart["a"]}, 4) is None
