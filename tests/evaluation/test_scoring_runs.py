"""``macr-local score``: what is said about kept answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from macr_local.cli.main import cli
from macr_local.evaluation.item import AnswerType, Item
from macr_local.evaluation.manifest import Manifest
from macr_local.evaluation.record import Record


def score(*args: object) -> Result:
    return CliRunner().invoke(cli, ["score", *(str(arg) for arg in args)])


def item(number: int, answer: str, kind: AnswerType, **more: object) -> Item:
    return Item(f"i{number}", f"row {number}", "?", (), answer, kind, **more)  # type: ignore[arg-type]


def write(folder: Path, records: Sequence[Record]) -> Path:
    folder.mkdir(parents=True)
    Manifest(folder.parent.name, folder.name, {}, {}).save(folder)
    (folder / "answers.jsonl").write_bytes(b"".join(record.encode() + b"\n" for record in records))
    return folder


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """Two choices, one free text, one without a published answer; kinds as groups."""
    options = {"A": "red", "B": "blue"}
    choice = {"options": options, "groups": {"kind": ("choice",)}}
    asked = [
        (item(0, "A", "mcq", **choice), "Answer: A"),
        (item(1, "B", "mcq", **choice), "Answer: A"),
        (item(2, "three red cubes", "text", groups={"kind": ("words",)}), "Answer: three red cubes"),
        (item(3, "", "text"), "Answer: something"),
    ]
    return write(
        tmp_path / "mine" / "macr", [Record(one, seed, text) for seed in (0, 1) for one, text in asked]
    )


def rows(given: Result) -> dict[str, list[str]]:
    """Columns by the row's name, without the header."""
    assert given.exit_code == 0, given.output
    split = [line.split("  ") for line in given.stdout.splitlines()[1:]]
    return {cells[0] or cells[1]: " ".join(cells[1:]).split() for cells in split}


def test_readings_stand_side_by_side_with_what_they_do_not_judge(mixed: Path) -> None:
    given = score(mixed)
    assert given.stdout.splitlines()[0].split() == ["answers", "right", "unread", "unscored", "each", "seed"]
    found = rows(given)
    assert found["mine macr strict"] == ["6", "0.667", "0.000", "2", "0.667", "0.667"]
    assert found["mine macr compat:vlmevalkit"] == ["4", "0.500", "0.000", "4", "0.500", "0.500"]


def test_a_scorer_made_for_other_data_is_not_shown(mixed: Path) -> None:
    assert "mathvista" not in score(mixed).output
    assert {one["scorer"] for one in json.loads(score(mixed, "--json").stdout)} == {
        "strict",
        "compat:vlmevalkit",
    }


def test_why_answers_are_not_judged_is_in_the_json(mixed: Path) -> None:
    strict, compat = json.loads(score(mixed, "--json").stdout)
    assert (strict["unscored"], strict["passed_over"]) == (2, {"no-label": 2})
    assert compat["passed_over"] == {"needs-judge": 2, "no-label": 2}
    assert strict["groups"]["kind"] == {
        "choice": {"answers": 4, "accuracy": 0.5},
        "words": {"answers": 2, "accuracy": 1.0},
    }


def test_a_run_that_a_scorer_cannot_judge_at_all_says_why(tmp_path: Path) -> None:
    words = item(0, "three red cubes", "text")
    given = score(write(tmp_path / "mine" / "macr", [Record(words, 0, "Answer: three red cubes")]))
    assert given.exit_code == 0
    assert "compat:vlmevalkit  says nothing about these answers (1 needs-judge)" in given.stdout


def test_answers_are_broken_down_by_group_and_by_rule(mixed: Path) -> None:
    shown = score(mixed, "--by", "kind", "--rules").stdout.splitlines()
    strict = [line.split() for line in shown[1 : shown.index(next(x for x in shown if "compat" in x))]]
    assert ["choice", "4", "0.500"] in strict
    assert ["words", "2", "1.000"] in strict
    assert ["answer-line", "6"] in strict


def test_failed_questions_are_not_wrong_and_are_told(tmp_path: Path) -> None:
    good, bad = item(0, "A", "mcq", options={"A": "a", "B": "b"}), item(1, "A", "mcq", options={"A": "a"})
    folder = write(
        tmp_path / "mine" / "macr", [Record(good, 0, "Answer: A"), Record.failed(bad, 0, "broken image")]
    )
    given = score(folder)
    assert given.exit_code != 0
    assert "mine macr strict" in given.stdout
    assert "1.000" in given.stdout
    assert "row 1" in given.stderr
    assert "broken image" in given.stderr
