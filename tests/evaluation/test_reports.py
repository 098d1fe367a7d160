"""Tables and comparisons of runs, as users get them: on the command line, and in files."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from macr_local.cli.main import cli
from macr_local.evaluation.item import Item
from macr_local.evaluation.manifest import Manifest
from macr_local.evaluation.record import Record
from macr_local.relay.counters import Counters


def run(*args: object) -> Result:
    return CliRunner().invoke(cli, [str(arg) for arg in args])


def write(
    out: Path,
    method: str,
    bits: Mapping[int, str],
    tokens: int = 100,
    dataset: str = "scenes",
    failed: int = 0,
) -> Path:
    """A run whose answers with each seed are right where its bit is 1."""
    folder = out / dataset / method.replace(":", "_")
    folder.mkdir(parents=True)
    Manifest(dataset, method, {}, {}).save(folder)
    lines = []
    for seed, row in bits.items():
        for place, bit in enumerate(row):
            item = Item(f"i{place}", f"row {place}", "?", (), "Yes", "yesno", cluster=str(place // 2))
            counters = {"m": Counters(prompt_text=tokens - 10, committed=6, discarded=4)}
            lines.append(Record(item, seed, f"Answer: {'yes' if bit == '1' else 'no'}", counters=counters))
    item = Item("i0", "row 0", "?", (), "Yes", "yesno")
    lines += [Record.failed(item, 100 + number, "broken image") for number in range(failed)]
    (folder / "answers.jsonl").write_bytes(b"".join(line.encode() + b"\n" for line in lines))
    return folder


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    write(tmp_path, "single:m0", {0: "10101010", 1: "10101011"}, 50)
    write(tmp_path, "single:m1", {0: "11001010", 1: "10101011"}, 80)
    write(tmp_path, "macr", {0: "11111010", 1: "11101111"}, 150)
    write(tmp_path, "macr-fs", {0: "10111010"}, 120)
    write(tmp_path, "macr-fi:m0", {0: "11111010"}, 120)
    write(tmp_path, "tdh:m0", {0: "10001010"}, 90)
    write(tmp_path, "macr", {0: "1111"}, 150, dataset="easy")
    return tmp_path


def test_the_papers_tables_are_printed_and_written(runs: Path) -> None:
    given = run("report", runs)
    assert given.exit_code == 0, given.output
    assert given.stdout == (runs / "report.md").read_text("utf-8")
    lines = given.stdout.splitlines()
    head = next(line for line in lines if line.startswith("| method"))
    assert "easy (4): right" in head
    assert "scenes (8): right" in head
    macr = next(line for line in lines if line.startswith("| `macr` "))
    # (6/8 + 7/8) / 2 = 81.25, sample SD of 75.0 and 87.5 = 8.84
    assert "81.25 ± 8.84" in macr
    # against m0 (50 and 62.5: 56.25): 25 points by 100 tokens = 2500; m1 (56.25): 25 by 70 = 3571.43
    assert "3035.72 [" in macr
    names = [line.split("`")[1] for line in lines if line.startswith("| `")]
    assert names[:6] == ["single:m0", "tdh:m0", "single:m1", "macr", "macr-fi:m0", "macr-fs"]
    assert "**Table 2.** Ablations on scenes (8 items)" in given.stdout
    assert "**Table 3.** One member alone on scenes (8 items)" in given.stdout


def test_a_table_goes_on_in_other_programs(runs: Path, tmp_path: Path) -> None:
    out = tmp_path / "tables"
    given = run("report", runs / "scenes", "--out", out, "--json")
    found = json.loads(given.stdout)
    assert found["scorer"] == "strict"
    rows = {row["method"]: row for row in found["rows"]}
    assert rows["macr"]["accuracy"] == 0.8125
    assert rows["macr"]["other"] == {"compat:vlmevalkit": 0.8125}
    assert rows["single:m0"]["ibc"] is None
    assert rows["macr-fs"]["deviation"] is None
    with (out / "report.csv").open(newline="") as file:
        table = {row["method"]: row for row in csv.DictReader(file)}
    assert table["macr"]["accuracy"] == "0.8125"
    assert table["macr-fs"]["deviation"] == ""
    assert float(table["macr"]["low"]) < 0.8125 < float(table["macr"]["high"])


def test_a_method_of_one_member_is_measured_against_that_member(runs: Path) -> None:
    rows = {row["method"]: row for row in json.loads(run("report", runs / "scenes", "--json").stdout)["rows"]}
    # 37.5 - 56.25 points by 40 tokens
    assert rows["tdh:m0"]["ibc"] == pytest.approx(-0.1875 / 40 * 1e6)
    assert rows["tdh:m0"]["standing"] == "dominated"


def test_failed_items_are_told_and_not_counted(tmp_path: Path) -> None:
    write(tmp_path, "macr", {0: "11"}, failed=3)
    given = run("report", tmp_path)
    assert "100.00" in given.stdout
    assert "3 failed" in given.stdout


def test_a_report_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    given = run("report", tmp_path)
    assert given.exit_code != 0
    assert "holds no run" in given.stderr
    folder = write(tmp_path, "macr", {})
    assert "holds no answer that strict judges" in run("report", folder).stderr
    write(tmp_path, "vote", {0: "1"})
    (tmp_path / "file").write_text("")
    given = run("report", tmp_path, "--out", tmp_path / "file" / "x")
    assert given.exit_code != 0
    assert "cannot be written" in given.stderr


def test_two_runs_are_compared_question_by_question(runs: Path) -> None:
    given = run("compare", runs / "scenes" / "macr", runs / "scenes" / "single_m0")
    assert given.exit_code == 0, given.output
    assert "scenes: macr - single:m0" in given.stdout
    assert "+25.00" in given.stdout
    # seed 0: 11111010 to 10101010, seed 1: 11101111 to 10101011
    assert "seed 0: 2 to 0, McNemar p = 0.5" in given.stdout
    assert "seed 1: 2 to 0, McNemar p = 0.5" in given.stdout
    assert "3.000 [3.000, 3.000]" in given.stdout


def test_one_method_is_compared_with_all_others_as_a_family(runs: Path) -> None:
    found = json.loads(run("compare", runs, "--of", "macr", "--json").stdout)
    assert [one["second"] for one in found] == ["macr-fi:m0", "macr-fs", "single:m0", "single:m1", "tdh:m0"]
    assert all(one["p_holm"] >= one["p"] for one in found)
    fs = found[1]
    assert (fs["seeds"], fs["left_out"]) == ([0], 8)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("{runs}",), "give one of them, or --of METHOD"),
        (("{runs}", "--of", "cot"), 'No run is of the method "cot"'),
        (("{runs}/scenes/macr",), "There is nothing to compare with"),
        (("{runs}/scenes/macr", "{runs}/easy/macr"), "There is nothing to compare with"),
        (("{runs}/none",), "holds no run"),
    ],
)
def test_what_cannot_be_compared_says_why(runs: Path, args: tuple[str, ...], said: str) -> None:
    given = run("compare", *(arg.format(runs=runs) for arg in args))
    assert given.exit_code != 0
    assert said in given.stderr
