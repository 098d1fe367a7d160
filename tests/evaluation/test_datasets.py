"""Data files in the forms in which users have them, with the oddities that were seen in each."""

from __future__ import annotations

import base64
import csv
import json
from collections.abc import Iterable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from macr_local.errors import DataError
from macr_local.evaluation.asking import question
from macr_local.evaluation.datasets import NAMED, open_dataset
from macr_local.evaluation.item import Item


def png(shade: int = 0, size: int = 32) -> bytes:
    file = BytesIO()
    Image.effect_noise((size, size), 40 + shade).convert("RGB").save(file, "PNG")
    return file.getvalue()


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def tsv(
    path: Path,
    rows: Iterable[Mapping[str, str]],
    *,
    end: str = "\n",
    mark: bool = False,
    all_quoted: bool = True,
) -> Path:
    rows = list(rows)
    columns = list(dict.fromkeys(column for row in rows for column in row))
    with path.open("w", encoding="utf-8-sig" if mark else "utf-8", newline="") as file:
        quoting = csv.QUOTE_ALL if all_quoted else csv.QUOTE_MINIMAL
        writer = csv.DictWriter(file, columns, delimiter="\t", quoting=quoting, lineterminator=end)
        writer.writeheader()
        writer.writerows(rows)
    return path


def read(source: Path) -> list[Item]:
    return list(open_dataset(source).items())


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [False, True])
@pytest.mark.parametrize("all_quoted", [False, True])
def test_a_table_is_read_whatever_its_line_ends_quotes_and_mark(
    tmp_path: Path, end: str, mark: bool, all_quoted: bool
) -> None:
    row = {
        "index": "1",
        "image": b64(png()),
        "question": 'Which "one"?\nLook.\tTwice.',
        "A": "red",
        "B": "nan",
    }
    path = tsv(
        tmp_path / "mine.tsv",
        [{**row, "C": "", "D": "None", "answer": "D", "category": "x"}],
        end=end,
        mark=mark,
        all_quoted=all_quoted,
    )
    (item,) = read(path)
    assert not item.problem
    assert item.question == 'Which "one"?\nLook.\tTwice.'
    assert item.options == {"A": "red", "D": "None"}
    assert (item.answer_type, item.answer, item.groups) == ("mcq", "D", {"category": ("x",)})


def test_an_image_that_is_another_row_s_is_found_before_and_behind_it(tmp_path: Path) -> None:
    first, last = png(1), png(2)
    rows = [
        {"index": "a", "image": "c", "question": "forward?", "answer": "yes"},
        {"index": "b", "image": b64(first), "question": "own?", "answer": "yes"},
        {"index": "c", "image": b64(last), "question": "own?", "answer": "no"},
        {"index": "d", "image": "b", "question": "back?", "answer": "no"},
        {"index": "e", "image": "zz", "question": "missing?", "answer": "no"},
        {"index": "f", "image": "a", "question": "one that has none?", "answer": "no"},
    ]
    items = read(tsv(tmp_path / "refs.tsv", rows))
    assert [one.images for one in items[:4]] == [(last,), (first,), (last,), (first,)]
    assert items[0].cluster == items[2].cluster != items[1].cluster
    assert '"zz"' in items[4].problem
    assert "line 6 (index e)" in items[4].where
    assert "none of its own" in items[5].problem


def test_several_images_a_large_field_and_rows_without_an_image(tmp_path: Path) -> None:
    large = png(3, 400)
    assert len(b64(large)) > 128 * 1024
    rows = [
        {"index": "1", "image": str([b64(png(1)), b64(large)]), "question": "two?", "answer": "yes"},
        {"index": "2", "image": "", "question": "none?", "answer": "yes"},
        {"index": "3", "image": "[broken", "question": "no list?", "answer": "yes"},
        {"index": "4", "image": "[1, 2]", "question": "a list of numbers?", "answer": "yes"},
    ]
    data = open_dataset(tsv(tmp_path / "many.tsv", rows))
    items = list(data.items())
    assert items[0].images[1] == large
    assert [one.id for one in items] == ["1", "3", "4"] == list(data.ids())
    assert data.left_out == {"no image": 1}
    assert all(one.problem for one in items[1:])


def test_one_bad_row_among_many_is_a_row_with_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "bad.tsv"
    good = b64(png())
    lines = [b"index\timage\tquestion\tanswer", f"1\t{good}\tq?\tyes".encode(), b"2\tonly two"]
    lines += [
        f"3\t{good}\t".encode() + b"\xff?\tyes",
        f"4\t{good}\t\tyes".encode(),
        f"5\t{good}\tq?\tno".encode(),
    ]
    path.write_bytes(b"\n".join(lines))
    items = read(path)
    assert [bool(one.problem) for one in items] == [False, True, True, True, False]
    assert ["cells" in items[1].problem, "UTF-8" in items[2].problem, "no question" in items[3].problem] == [
        True
    ] * 3


def test_a_file_that_is_no_table_is_refused_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("one\ttwo\n1\t2\n")
    (tmp_path / "b.json").write_text("{")
    (tmp_path / "c.txt").write_text("")
    for name in ("a.tsv", "b.json", "c.txt", "d.tsv"):
        with pytest.raises(DataError, match=name[:1]):
            open_dataset(tmp_path / name)


def mathvista(pid: str, **more: Any) -> dict[str, Any]:
    return {
        "pid": pid,
        "question": "How long?",
        "image": "images/1.png",
        "choices": None,
        "unit": None,
        "precision": None,
        "answer": "3",
        "question_type": "free_form",
        "answer_type": "integer",
        "metadata": {"task": "figure question answering", "skills": ["arithmetic reasoning", "numeric"]},
        "query": "Hint: ...",
        **more,
    }


def test_mathvista_s_own_file(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "1.png").write_bytes(png())
    choices = {"question_type": "multi_choice", "answer_type": "text", "choices": ["4", "5", "4"]}
    rows = {
        "1": mathvista("1", unit="years"),
        "2": mathvista("2", answer_type="float", precision=2.0, answer="1.25"),
        "3": mathvista("3", answer="4", **choices),
        "4": mathvista("4", answer="9", **choices),
        "5": mathvista("5", answer="[1, 2]", answer_type="list"),
        "6": mathvista("6", image="images/none.png"),
    }
    (tmp_path / "testmini.json").write_text(json.dumps(rows))
    one, two, three, four, five, six = read(tmp_path)
    assert (one.question, one.answer_type, one.answer) == ("How long? (Unit: years)", "int", "3")
    assert one.groups["skills"] == ("arithmetic reasoning", "numeric")
    assert (two.answer_type, two.precision) == ("float", 2)
    assert (three.answer_type, three.answer, three.options["C"]) == ("mcq", "A", "4")
    assert "none of its options" in four.problem
    assert five.answer_type == "list"
    assert "images/none.png" in six.problem


def test_mathvista_as_vlmevalkit_s_table(tmp_path: Path) -> None:
    query = "Hint: Please ...\nQuestion: Which?\nChoices:\n(A) 4\n(B) 5"
    row = {"index": "7", "image": b64(png()), "question": query, "answer": "5", "answer_option": "B"}
    more = {
        "choices": "['4', '5']",
        "question_type": "multi_choice",
        "answer_type": "text",
        "skills": "['algebraic']",
    }
    (item,) = read(tsv(tmp_path / "MathVista_MINI.tsv", [{**row, **more, "task": "x"}]))
    assert (item.answer, item.options, item.groups["skills"]) == ("B", {"A": "4", "B": "5"}, ("algebraic",))
    assert question(item) == query  # its options are not named twice


def test_logicvista_s_own_file(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "v.png").write_bytes(png())
    row = {"imagename": "v.png", "question": "Which?", "skill": ["inductive"], "broad_capability": ["x"]}
    rows = {
        "v1_0": {**row, "answer": "C, A"},
        "v1_20": {**row, "answer": "3"},
        "v1_382": {**row, "question": "", "answer": ""},
    }
    (tmp_path / "dataset.json").write_text(json.dumps(rows))
    data = open_dataset(tmp_path)
    first, second = data.items()
    assert (first.id, first.answer_type, first.answer, first.groups["skill"]) == (
        "v1_0", "letters", "A, C", ("inductive",),
    )  # fmt: skip
    assert second.answer == "3"
    assert data.left_out == {"neither question nor answer": 1}


def test_hallusionbench_s_own_file_and_table_are_the_same_items(tmp_path: Path) -> None:
    folder = tmp_path / "hallusion_bench" / "VD" / "ocr"
    folder.mkdir(parents=True)
    (folder / "0_1.png").write_bytes(png())
    row = {
        "category": "VD", "subcategory": "ocr", "visual_input": "1", "set_id": "0", "figure_id": "1",
        "question_id": "2", "question": "Is it?", "gt_answer": "1",
        "filename": "./hallusion_bench/VD/ocr/0_1.png",
    }  # fmt: skip
    rows = [row, {**row, "visual_input": "0", "filename": None}]
    (tmp_path / "HallusionBench.json").write_text(json.dumps(rows))
    table = {"index": "VD_ocr_1_0_1_2", "image": b64(png()), "question": "Is it?", "answer": "Yes"}
    path = tsv(tmp_path / "HallusionBench.tsv", [{**table, "category": "VD", "l2-category": "VD_ocr"}])
    (own,) = read(tmp_path / "HallusionBench.json")
    (theirs,) = read(path)
    for one in (own, theirs):
        assert (one.id, one.answer, one.cluster, one.problem) == ("VD_ocr_1_0_1_2", "Yes", "VD_ocr_0", "")
        assert one.groups["figure"] == ("VD_ocr_0_1",)
        assert one.groups["question"] == ("VD_ocr_0_2",)


def test_parquet_files_of_hubs(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    image = {"bytes": png(), "path": None}
    star = {
        "index": 0, "image": image, "answer": "B", "category": "math", "l2_category": "geometry",
        "question": "Which?\nOptions: A: red, dark, B: blue, C: green, D: teal", "meta_info": {"source": "x"},
    }  # fmt: skip
    parquet.write_table(pyarrow.Table.from_pylist([star]), tmp_path / "mmstar.parquet")
    (item,) = read(tmp_path / "mmstar.parquet")
    assert item.options == {"A": "red, dark", "B": "blue", "C": "green", "D": "teal"}
    assert item.images == (image["bytes"],)
    assert question(item) == star["question"]

    unit = {
        "id": "validation_Accounting_1", "question": "In <image 1> and <image 2>?", "options": "['1', '2']",
        "answer": "A", "question_type": "multiple-choice", "subfield": "x", "image_1": image,
        "image_2": image,
    }  # fmt: skip
    rows = [
        unit,
        {**unit, "id": "validation_Art_2", "question_type": "open", "options": "[]", "image_2": None},
    ]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "mmmu.parquet")
    choice, free = read(tmp_path / "mmmu.parquet")
    assert (len(choice.images), choice.options, choice.groups["subject"]) == (
        2, {"A": "1", "B": "2"}, ("Accounting",),
    )  # fmt: skip
    assert (len(free.images), free.answer_type) == (1, "text")

    vista = mathvista("9", decoded_image=image, precision=1.0, answer_type="float", answer="1.5")
    parquet.write_table(pyarrow.Table.from_pylist([vista]), tmp_path / "testmini.parquet")
    (item,) = read(tmp_path / "testmini.parquet")
    assert (item.precision, item.images) == (1, (image["bytes"],))
    (tmp_path / "pointer.parquet").write_text("version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(DataError, match="no parquet file"):
        open_dataset(tmp_path / "pointer.parquet")


def test_lines_of_json(tmp_path: Path) -> None:
    (tmp_path / "1.png").write_bytes(png())
    lines = [
        {"id": "a", "image": "1.png", "question": "Which?", "options": ["x", "y"], "answer": "y"},
        {"id": "b", "images": ["1.png", b64(png())], "question": "Is it?", "answer": True},
        {"id": "c", "question": "How many?", "answer": 3},
        {"id": "d", "question": "How much?", "answer": 2.5, "precision": 1, "groups": {"skill": ["p", "q"]}},
        {"id": "e", "image": "http://host/1.png", "question": "?", "answer": "x"},
        {"id": "f", "question": "Which?", "options": {"A": "x"}, "answer": "z"},
    ]
    text = "\n".join(map(json.dumps, lines)) + "\n{broken\n[1]\n"
    (tmp_path / "questions.jsonl").write_text("\ufeff" + text, "utf-8")
    items = read(tmp_path)
    assert [one.answer_type for one in items[:4]] == ["mcq", "yesno", "int", "float"]
    assert items[0].answer == "B"
    assert len(items[1].images) == 2
    assert items[3].groups == {"skill": ("p", "q")}
    assert [bool(one.problem) for one in items] == [False] * 4 + [True] * 4
    assert len({one.id for one in items}) == len(items)


def test_named_data_sets_are_the_same_each_time() -> None:
    for name, counts in {"scenes": 1000, "easy-vqa": 600, "easy-vqa:train": 600}.items():
        data = open_dataset(name)
        ids = list(data.ids())
        assert len(set(ids)) == counts
        assert ids == [item.id for item in NAMED[name][0]().items()]


def test_balanced_easy_vqa_asks_for_yes_and_no_as_often() -> None:
    items = [one for one in open_dataset("easy-vqa").items() if one.answer_type == "yesno"]
    assert len(items) == 300
    assert sum(one.answer == "Yes" for one in items) == 150
    assert len({one.cluster for one in items}) == 300
