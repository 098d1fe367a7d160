"""What `macr-local data` says of data sets."""

from __future__ import annotations

import base64
import json
from io import BytesIO
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from PIL import Image

from macr_local.cli.main import cli


def run(*args: object) -> Result:
    return CliRunner().invoke(cli, [str(arg) for arg in args])


def picture(color: str) -> str:
    file = BytesIO()
    Image.new("RGB", (8, 8), color).save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


def table(path: Path, *rows: tuple[str, str, str]) -> Path:
    lines = ["index\timage\tquestion\tA\tB\tanswer\tcategory"]
    lines += [f"{index}\t{image}\twhich?\tred\tblue\t{answer}\tc" for index, image, answer in rows]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def test_named_data_and_tables_on_this_machine_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LMUData", str(tmp_path))
    table(tmp_path / "MMMine.tsv", ("1", picture("red"), "A"))
    listed = run("data", "list").stdout
    assert "scenes:tuning" in listed
    assert str(tmp_path / "MMMine.tsv") in listed
    found = json.loads(run("data", "list", "--json").stdout)
    assert found["tables"] == {"MMMine": str(tmp_path / "MMMine.tsv")}
    assert run("data", "show", "MMMine").exit_code == 0


def test_a_data_set_is_shown_with_its_first_question(tmp_path: Path) -> None:
    path = table(tmp_path / "set.tsv", ("1", picture("red"), "A"), ("2", picture("red"), "B"), ("3", "", "A"))
    given = run("data", "show", path)
    assert given.exit_code == 0, given.output
    assert "2 items (2 with a right answer), 2 images, 1 independent groups" in given.stdout
    assert "rows that are no questions: 1 (" in given.stdout
    assert "category: c 2" in given.stdout
    assert (
        "the first question (1, 1 images):\n  which?\n  A. red\n  B. blue\n  End with one line"
        in given.stdout
    )
    assert "the right answer: A" in given.stdout


def test_every_row_is_looked_at_and_what_is_wrong_is_named(tmp_path: Path) -> None:
    broken = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 80).decode()
    path = table(
        tmp_path / "set.tsv",
        ("1", picture("red"), "A"),
        ("2", broken, "A"),
        ("3", "%" * 90, "B"),
        ("4", picture("blue"), "E"),
    )
    given = run("data", "check", path)
    assert given.exit_code == 9
    assert given.stdout.count("cannot be asked: ") == 3
    assert "3 of 4 items cannot be asked, such as" in given.stderr
    found = json.loads(run("data", "check", path, "--json").stdout)
    assert not found["sound"]
    assert len(found["problems"]) == 3


def test_ids_that_come_twice_are_named(tmp_path: Path) -> None:
    path = table(tmp_path / "set.tsv", ("1", picture("red"), "A"), ("1", picture("blue"), "A"))
    given = run("data", "check", path)
    assert given.exit_code == 9
    assert 'The id "1" is there twice\n' in given.stderr


def test_sound_data_passes() -> None:
    given = run("data", "check", "easy-vqa", "--json")
    assert given.exit_code == 0
    found = json.loads(given.stdout)
    assert (found["items"], found["images"], found["clusters"]) == (600, 600, 600)
    assert found["kinds"] == {"text": 300, "yesno": 300}


def test_a_data_set_that_is_not_there_is_named() -> None:
    given = run("data", "check", "nothing.tsv")
    assert given.exit_code == 9
    assert "There is no data set nothing.tsv" in given.stderr
