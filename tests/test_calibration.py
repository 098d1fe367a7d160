"""mu and sigma from stored log-probabilities; mismatches refused; runs that can be interrupted."""

from __future__ import annotations

import json
import math
import os
import statistics
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from macr_local import Pool, Relay, Sampling
from macr_local.calibrating import calibrate
from macr_local.calibration import MemberCalibration
from macr_local.engine.library import build
from macr_local.errors import CalibrationError, Cancelled, DataError
from macr_local.origin import Origin, conditions_of
from macr_local.prompt import Prompt
from macr_local.protocol import Fingerprint
from macr_local.references import Reference, ReferenceSet, read
from macr_local.relay.events import Started
from macr_local.shift import shift
from macr_local.specs import ImageLimits, MemberSpec
from training.worlds.tiny.reference import write

PRINT = Fingerprint("a" * 64, "b" * 64, "Q8_0", "c" * 64)
ORIGIN = Origin(
    member="m", fingerprint=PRINT, sampling=Sampling(),
    conditions=conditions_of(MemberSpec("m", Path("m.gguf"))),
    max_tokens=96, seed=0, reference="set", reference_sha256="d" * 64, reference_questions=3, questions=2,
    llama_cpp="llama-cpp-python 0.3.36", date="2026-01-01T00:00:00+00:00",
)  # fmt: skip


def made(answers: list[list[float]]) -> MemberCalibration:
    return MemberCalibration(ORIGIN, [f"k{i}" for i in range(len(answers))], [np.array(a) for a in answers])


def noise(questions: int, length: int = 20, *, mean: float = -0.4, seed: int = 0) -> list[list[float]]:
    rng = np.random.default_rng(seed)
    return np.minimum(rng.normal(mean, 0.1, (questions, length)), 0).tolist()


@settings(max_examples=60, deadline=None)
@given(
    answers=st.lists(st.lists(st.floats(-9, -0.001), min_size=1, max_size=12), min_size=1, max_size=6),
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


def test_a_smaller_window_is_advised_only_where_it_helps() -> None:
    with pytest.raises(CalibrationError) as one_answer:
        made(noise(1)).at(16)
    with pytest.raises(CalibrationError) as few_tokens:
        made(noise(2, length=4)).at(1)
    for raised in (one_answer, few_tokens):
        assert raised.value.fix.startswith("Calibrate on more questions")
    calibration = made([*noise(1, length=80), *noise(20, length=10)])
    with pytest.raises(CalibrationError) as short_answers:
        calibration.at(40)
    assert short_answers.value.fix.startswith("Use a smaller --window, or calibrate on more")
    assert calibration.at(4).sigma > 0


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


def test_other_conditions_are_noted_and_a_prompt_stands_above_its_member() -> None:
    calibration = made(noise(5))
    spec = MemberSpec("m", Path("m.gguf"))

    def notes(spec: MemberSpec, prompt: Prompt | None = None) -> tuple[str, ...]:
        return calibration.notes(Sampling(), ORIGIN.llama_cpp, conditions_of(spec, prompt))

    assert notes(spec) == notes(spec, Prompt("?")) == ()
    other = replace(spec, kv_type="q8_0", images=ImageLimits(square=64))
    assert notes(other) == (
        "m was calibrated with kv_type f16, not q8_0, square unset, not 64: its z may be shifted",
    )
    assert notes(replace(spec, think=True), Prompt("?", system="Be brief.", think=False)) == (
        "m was calibrated with another system prompt, think unset, not false: its z may be shifted",
    )


def test_a_relay_says_when_it_asks_otherwise_than_was_calibrated(tiny: Pool) -> None:
    relay = Relay(tiny, strategy="single", leader="tiny-internvl")
    prompt = Prompt("what shape is in the image?")
    noted = []
    for asked in (prompt, replace(prompt, system="Answer.")):
        with relay.stream(asked) as stream:
            started = next(stream)
            assert isinstance(started, Started)
            noted.append(any("another system prompt" in note for note in started.notes))
    assert noted == [False, True]


@pytest.mark.parametrize("damage", ["missing", "json", "npz", "format", "keys", "value", "pair"])
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
    elif damage == "value":
        record["origin"]["sampling"]["temperature"] = -1
        where.write_text(json.dumps(record))
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
    return read("easy-vqa", 12, 3)


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


def test_members_that_were_finished_before_an_interruption_are_not_asked_again(
    tiny: Pool, references: ReferenceSet, tmp_path: Path
) -> None:
    third = tiny.members[2].name

    def stop(member: str, done: int, total: int) -> None:
        if member == third and done == 4:
            raise Cancelled("stop")

    few = ReferenceSet("few", references.items[:6])
    with pytest.raises(Cancelled):
        calibrate(tiny, few, tmp_path, tiny.spec.settings, progress=stop)
    outcomes = calibrate(tiny, few, tmp_path, tiny.spec.settings)
    assert [outcome.resumed for outcome in outcomes] == [6, 6, 4]
    assert list(tmp_path.glob("*.partial.jsonl")) == []
    assert [o.resumed for o in calibrate(tiny, few, tmp_path, tiny.spec.settings)] == [0, 0, 0]


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


def test_a_second_run_into_one_folder_is_refused_while_the_first_goes_on(
    one: Pool, references: ReferenceSet, tmp_path: Path
) -> None:
    refused: list[str] = []

    def again(member: str, done: int, total: int) -> None:
        with pytest.raises(CalibrationError) as raised:
            calibrate(one, references, tmp_path, one.spec.settings, restart=True)
        refused.append(raised.value.found)

    few = ReferenceSet("few", references.items[:2])
    calibrate(one, few, tmp_path, one.spec.settings, progress=again)
    assert refused == [f"Another run (pid {os.getpid()}) is calibrating into {tmp_path}"] * 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tiny-internvl.json", "tiny-internvl.npz"]


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


def test_an_image_that_is_gone_since_the_set_was_read_is_a_problem_and_tried_again(
    one: Pool, references: ReferenceSet, tmp_path: Path
) -> None:
    image = tmp_path / "x.png"
    gone = ReferenceSet("gone", (Reference("row 1", "what?", (image,)), *references.items[:2]))
    for _ in range(2):
        outcome = calibrate(one, gone, tmp_path, one.spec.settings)[0]
        ((where, why),) = outcome.problems
        assert (where, why) == ("row 1", f"{image} cannot be read (No such file or directory)")
        assert outcome.calibration.origin.reference_questions == 3
        assert outcome.calibration.origin.questions == 2


def test_a_set_that_is_mostly_unusable_stops_early(
    one: Pool, references: ReferenceSet, tmp_path: Path
) -> None:
    bad = [Reference(f"row {i}", f"what {i}?", (b"this is no image",)) for i in range(200)]
    seen: list[int] = []
    with pytest.raises(DataError, match=r"could not use 21 of the first 23 .* row 20: "):
        calibrate(
            one, ReferenceSet("bad", (*references.items[:2], *bad)), tmp_path, one.spec.settings,
            progress=lambda member, done, total: seen.append(done),
        )  # fmt: skip
    assert seen[-1] == 22


def test_what_only_a_relay_needs_does_not_touch_a_calibration(
    one: Pool, references: ReferenceSet, tmp_path: Path
) -> None:
    plain = calibrate(one, references, tmp_path / "a", one.spec.settings)[0].calibration
    relay = replace(one.spec.settings, initiation="a member that is not loaded", deadline=1e-9)
    other = calibrate(one, references, tmp_path / "b", relay)[0].calibration
    assert all(map(np.array_equal, plain.logprobs, other.logprobs))


def test_sampled_answers_depend_on_the_question_and_not_on_the_order(
    one: Pool, references: ReferenceSet, tmp_path: Path
) -> None:
    drawn = replace(one.spec.settings, sampling=Sampling(temperature=1.0), seed=4)
    forward = calibrate(one, references, tmp_path / "a", drawn)[0].calibration
    backward = calibrate(one, ReferenceSet("x", references.items[::-1]), tmp_path / "b", drawn)[0].calibration
    assert forward.keys == backward.keys[::-1]
    assert all(map(np.array_equal, forward.logprobs, backward.logprobs[::-1]))


# The embedded pool, and the shift.


def test_the_embedded_pool_is_calibrated_for_its_files(tiny: Pool) -> None:
    for member in tiny.members:
        calibration = tiny.calibration(member.name)
        assert calibration.at(tiny.spec.settings.judged).sigma > 0
        assert calibration.origin.questions >= 200
        assert calibration.notes(tiny.spec.settings.sampling, build(), conditions_of(member.spec)) == ()


def test_the_shipped_log_probabilities_are_those_that_the_models_give(tiny: Pool, tmp_path: Path) -> None:
    shipped = read(write(tmp_path / "reference", count=400, seed=1))
    few = ReferenceSet(shipped.name, (*shipped.items[:8], *shipped.items[-8:]))
    for outcome in calibrate(tiny, few, tmp_path, tiny.spec.settings):
        stored = tiny.calibration(outcome.calibration.origin.member)
        assert outcome.calibration.keys == (*stored.keys[:8], *stored.keys[-8:])
        ours = np.concatenate(outcome.calibration.logprobs)
        theirs = np.concatenate([*stored.logprobs[:8], *stored.logprobs[-8:]])
        # Other CPUs round otherwise, so that single tokens may differ; their mean hardly does.
        assert ours.mean() == pytest.approx(theirs.mean(), abs=0.02)


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
    assert shift({**apart, "b": made([[-0.5] * 20] * 200)}, 4) is None


def test_the_interval_after_standardising_counts_the_error_of_mu_and_sigma(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("macr_local.shift._RESAMPLES", 200)
    inside = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        members = {
            name: made([rng.normal(mu + rng.normal(0, 0.1), 0.05, 20).tolist() for _ in range(40)])
            for name, mu in (("a", -1.0), ("b", -1.5))
        }
        found = shift(members, 8, seed=seed)
        assert found is not None
        low, high = found.gaps[0].standardised_interval
        inside += low <= 0 <= high
    # Nothing is left after standardising, so 95 % of intervals hold 0. Where mu and sigma are taken as known,
    # 45 of these 60 do.
    assert inside >= 54
