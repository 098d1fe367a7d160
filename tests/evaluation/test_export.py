"""Answers as other harnesses keep them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from macr_local.cli.main import cli
from macr_local.evaluation.item import Item
from macr_local.evaluation.manifest import Manifest
from macr_local.evaluation.record import Record
from macr_local.relay.counters import Counters

ROW = {
    "index": 7,
    "question": "which?",
    "A": "red",
    "B": 'a "b"\nc',
    "answer": "A",
    "category": "c",
    "image": "x",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two seeds of a table's row, an item without a row of its own, and one that failed."""
    run = tmp_path / "MMMine" / "macr"
    run.mkdir(parents=True)
    Manifest("MMMine", "macr", {}, {}).save(run)
    own = Item("7", "row 1", "which?", (), "A", "mcq", options={"A": "red", "B": "blue"}, row=ROW)
    bare = Item("s-1", "scene 1", "is it?", (), "Yes", "yesno", groups={"family": ("exist",)})
    cost = {"m": Counters(prompt_text=9, committed=3, discarded=2)}
    records = [
        Record(own, 0, "So.\nAnswer: A", counters=cost),
        Record(own, 1, "Answer: B\t\x07", counters=cost),
        Record.failed(bare, 0, "broken"),
        Record(bare, 0, "Answer: yes", counters=cost),
        Record.failed(bare, 1, "broken"),
    ]
    (run / "answers.jsonl").write_bytes(b"".join(one.encode() + b"\n" for one in records))
    return run


def export(folder: Path, form: str, out: Path, *args: object) -> Result:
    words = ["export", folder, "--to", form, "--out", out, *args]
    return CliRunner().invoke(cli, [str(word) for word in words])


def test_a_prediction_table_has_the_data_sets_own_columns(folder: Path, tmp_path: Path) -> None:
    given = export(folder, "vlmevalkit-tsv", tmp_path / "macr_MMMine.tsv")
    assert given.exit_code == 0, given.output
    with (tmp_path / "macr_MMMine.tsv").open(newline="") as file:
        first, second = csv.DictReader(file, delimiter="\t")
    assert (first["index"], first["B"], first["prediction"]) == ("7", 'a "b"\nc', "So.\nAnswer: A")
    assert "image" not in first
    assert json.loads(first["extra_records"])["written"] == 5
    assert (second["index"], second["answer"], second["category"]) == ("s-1", "Yes", "exist")


def test_a_spreadsheet_holds_the_same(folder: Path, tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    given = export(folder, "vlmevalkit-xlsx", tmp_path / "p.xlsx", "--seed", 1)
    assert given.exit_code == 0, given.output
    assert "Left out, without an answer: 1 of" in given.stderr
    heads, row = openpyxl.load_workbook(tmp_path / "p.xlsx").active.values
    assert dict(zip(heads, row, strict=True))["prediction"] == "Answer: B\t"


def test_json_holds_the_same(folder: Path, tmp_path: Path) -> None:
    export(folder, "vlmevalkit-json", tmp_path / "p.json")
    assert [row["prediction"] for row in json.loads((tmp_path / "p.json").read_text())] == [
        "So.\nAnswer: A",
        "Answer: yes",
    ]


def test_sample_lines_have_what_a_baseline_is_read_from(folder: Path, tmp_path: Path) -> None:
    export(folder, "lmms-eval", tmp_path / "s.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text().splitlines()]
    assert [(line["doc_id"], line["target"], line["filtered_resps"], line["score"]) for line in lines] == [
        (7, "A", "So.\nAnswer: A", 1.0),
        (1, "Yes", "Answer: yes", 1.0),
    ]


def test_what_cannot_be_exported_says_why(folder: Path, tmp_path: Path) -> None:
    given = export(folder, "lmms-eval", tmp_path / "s", "--seed", 5)
    assert "has no answer with seed 5\n  It has seeds: 0, 1" in given.stderr
    assert "holds no run" in export(tmp_path, "lmms-eval", tmp_path / "s").stderr
    (tmp_path / "file").write_text("")
    given = export(folder, "lmms-eval", tmp_path / "file" / "s.jsonl")
    assert given.exit_code == 9
    assert "cannot be written" in given.stderr
