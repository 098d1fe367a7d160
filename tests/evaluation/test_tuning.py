"""Settings chosen by measurement: which, on what, kept where, and when they no longer hold."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from macr_local.cli.main import cli
from macr_local.config import load_pool
from macr_local.errors import CalibrationError, DataError
from macr_local.evaluation import tuning as choosing
from macr_local.evaluation.datasets import open_dataset
from macr_local.evaluation.item import Item
from macr_local.evaluation.record import Record
from macr_local.evaluation.result import Result as Scored
from macr_local.evaluation.tuning import Setting, choose, grid
from macr_local.relay.counters import Counters
from macr_local.tuning import Tuning

TINY = Path(choosing.__file__).parent.parent / "tiny"


def run(*args: object) -> Result:
    return CliRunner().invoke(cli, [str(arg) for arg in args])


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    """The tiny pool with a calibration folder of its own."""
    shutil.copytree(TINY / "calibration", tmp_path / "calibration")
    text = (TINY / "models.toml").read_text("utf-8")
    for path in TINY.glob("*.gguf"):
        text = text.replace(f'"{path.name}"', json.dumps(str(path)))
    (tmp_path / "models.toml").write_text(text, "utf-8")
    return tmp_path / "models.toml"


def tune(pool: Path, *args: object, data: str = "scenes:tuning") -> Result:
    small = ("--limit", 6, "--ending", "", "--windows", "2,8", "--thresholds", "-0.3", "--cooldowns", "0,2")
    return run("tune", data, "--pool", pool, *small, "--out", pool.parent / "runs", *args)


def scored(bits: str, written: int) -> Scored:
    records = [
        Record(
            Item(str(place), "", "?", (), "Yes", "yesno"),
            0,
            "Answer: yes" if bit == "1" else "Answer: no",
            counters={"m": Counters(committed=written)},
        )
        for place, bit in enumerate(bits)
    ]
    return Scored.of("data", "m", records, "strict")


def test_the_most_right_answers_win_then_the_fewest_tokens_then_what_was_there() -> None:
    a, b, c = Setting(2, -0.3, 0), Setting(4, -0.3, 0), Setting(8, -0.3, 0)
    good, dear, bad = scored("1110", 10), scored("1110", 20), scored("1000", 1)
    assert choose([(a, dear), (b, good), (c, bad)], a).best.setting == b
    assert choose([(a, good), (b, good)], b).best.setting == b
    found = choose([(a, bad), (b, good)], a)
    assert found.gain is not None
    assert found.gain.difference.value == pytest.approx(0.5)
    assert choose([(a, good), (b, bad)], a).gain is None


def test_the_grid_has_what_the_pool_has_now_once() -> None:
    before = Setting(2, -0.3, 0)
    assert grid([2, 8], [-0.3], [0], before) == [before, Setting(8, -0.3, 0)]
    assert grid([8], [-1], [0], before) == [Setting(8, -1, 0), before]


def test_a_choice_is_kept_with_its_evidence_and_used_from_then_on(pool: Path) -> None:
    given = tune(pool, "--apart-from", "scenes")
    assert given.exit_code == 0, given.output
    assert "chosen" in given.stdout
    kept = json.loads((pool.parent / "calibration" / "tuning.json").read_text("utf-8"))
    assert kept["data"] == "scenes-tuning"
    assert len(kept["evidence"]["tried"]) == 4
    assert kept["evidence"]["apart_from"] == ["scenes"]
    assert 3 <= len(kept["images"]) <= 6
    spec = load_pool(pool)
    assert spec.tuning is not None
    assert spec.settings.window == kept["window"] == 2
    assert (
        f"tuned        window = 2, threshold = -0.3, cooldown = {kept['cooldown']}"
        in run("pool", "show", pool).stdout
    )
    again = tune(pool, "--json")
    assert json.loads(again.stdout)["tried"] == kept["evidence"]["tried"]  # nothing was asked anew


def test_an_evaluation_refuses_images_that_were_tuned_on(pool: Path) -> None:
    assert tune(pool).exit_code == 0
    given = run(
        "eval",
        "scenes:tuning",
        "--pool",
        pool,
        "--ending",
        "",
        "--limit",
        6,
        "--out",
        pool.parent / "evaluated",
    )
    assert given.exit_code != 0
    assert "shows an image that the pool's settings were tuned on (scenes-tuning)" in given.stderr


def test_data_that_will_be_evaluated_on_is_refused_before_anything_is_asked(pool: Path) -> None:
    given = tune(pool, "--apart-from", "scenes:tuning")
    assert given.exit_code != 0
    assert "scenes-tuning shows images that would be tuned on (" in given.stderr
    assert not (pool.parent / "runs").exists()
    digest = next(choosing.pixels(open_dataset("easy-vqa")))[1]
    with pytest.raises(DataError, match="would be tuned on"):
        choosing.apart({digest}, open_dataset("easy-vqa"))


def test_another_calibration_makes_a_choice_void(pool: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert tune(pool).exit_code == 0
    path = pool.parent / "calibration" / "tiny-qwen3vl.json"
    path.write_text(path.read_text("utf-8") + "\n", "utf-8")
    assert load_pool(pool).tuning is None
    assert "was made with other calibrations or members and is not used" in caplog.text


def test_a_dry_run_keeps_nothing(pool: Path) -> None:
    given = tune(pool, "--dry-run")
    assert given.exit_code == 0, given.output
    assert not (pool.parent / "calibration" / "tuning.json").exists()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--windows", "2,x"), '"2,x" is no list such as 2,4,8,16,32'),
        (("--windows", "0"), "window is 0"),
        (("--thresholds", "nan"), "threshold is nan"),
    ],
)
def test_a_grid_that_cannot_be_says_why(pool: Path, args: tuple[str, ...], said: str) -> None:
    given = tune(pool, *args)
    assert given.exit_code != 0
    assert said in given.stderr


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"macr_tuning": 2}', '{"macr_tuning": 1, "window": 2}'])
def test_a_damaged_choice_is_named(pool: Path, text: str) -> None:
    path = pool.parent / "calibration" / "tuning.json"
    path.write_text(text, "utf-8")
    with pytest.raises(CalibrationError, match=r"tuning\.json is damaged"):
        load_pool(pool)


def test_a_choice_out_of_range_is_damaged(tmp_path: Path) -> None:
    good = Tuning(2, -0.3, 0, "d", 1, "2026-01-01", (), {}, {})
    good.save(tmp_path)
    assert Tuning.load(tmp_path) == good
    replace(good, window=0).save(tmp_path)
    with pytest.raises(CalibrationError, match="window is 0"):
        Tuning.load(tmp_path)
