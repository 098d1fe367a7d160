"""Reference sets in every form people have them."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from macr_local.errors import DataError
from macr_local.references import read


def picture(seed: int = 0) -> bytes:
    # Noise, so that its base64 is longer than any row's index, as those of real images are.
    pixels = np.random.default_rng(seed).integers(0, 256, (8, 8, 3)).astype(np.uint8)
    buffer = io.BytesIO()
    PIL.Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def coded(seed: int = 0) -> str:
    return base64.b64encode(picture(seed)).decode()


def tsv(path: Path, rows: list[dict[str, str]], *, ends: str = "\n", mark: str = "") -> Path:
    lines = ["\t".join(rows[0])] + ["\t".join(f'"{value}"' for value in row.values()) for row in rows]
    path.write_bytes((mark + ends.join(lines) + ends).encode("utf-8"))
    return path


def test_a_folder_of_images_with_text_files(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / f"{name}.png").write_bytes(picture())
        (tmp_path / f"{name}.txt").write_text(f"what is {name}?\n")
    (tmp_path / "c.jpg").write_bytes(picture())
    found = read(tmp_path)
    assert [(item.question, item.problem) for item in found.items] == [
        ("what is a?", ""),
        ("what is b?", ""),
        ("", "there is no c.txt with its question"),
    ]


def test_a_text_file_that_is_not_utf8_is_a_problem_of_its_row(tmp_path: Path) -> None:
    for name, text in (("a", b"what?"), ("b", b"\xff\xfe")):
        (tmp_path / f"{name}.png").write_bytes(picture())
        (tmp_path / f"{name}.txt").write_bytes(text)
    fine, broken = read(tmp_path).items
    assert not fine.problem
    assert broken.problem.startswith("b.txt cannot be read")


def test_a_folder_with_a_jsonl_file(tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(picture())
    rows = [{"image": "x.png", "question": "one?"}, {"images": ["x.png", "x.png"], "question": "two?"}]
    (tmp_path / "questions.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    found = read(tmp_path)
    assert found.name == tmp_path.name
    assert [len(item.images) for item in found.items] == [1, 2]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "it is not JSON"),
        ("[1]", "not a JSON object"),
        ('{"image": "x.png"}', "it has no question"),
        ('{"image": "none.png", "question": "?"}', "there is no image"),
        ('{"image": 3, "question": "?"}', "neither a path nor a list"),
        ('{"image": "x.png", "question": "\\ud800"}', "half a character"),
        (json.dumps({"image": "x." * 600, "question": "?"}), "is not base64"),
        ('{"image": "x\\u0000", "question": "?"}', "its image ('x\\x00') is not base64"),
    ],
)
def test_a_bad_row_carries_its_problem_and_its_place(line: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(picture())
    path = tmp_path / "set.jsonl"
    path.write_text('{"image": "x.png", "question": "fine?"}\n' + line + "\n")
    good, bad = read(path).items
    assert not good.problem
    assert problem in bad.problem
    assert bad.where == "set.jsonl, line 2"


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_tsv_with_base64_images(ends: str, mark: str, tmp_path: Path) -> None:
    rows = [{"index": str(i), "image": coded(i), "question": f"q{i}?"} for i in range(3)]
    found = read(tsv(tmp_path / "set.tsv", rows, ends=ends, mark=mark))
    assert [item.images for item in found.items] == [(picture(i),) for i in range(3)]
    assert [item.question for item in found.items] == ["q0?", "q1?", "q2?"]


def test_a_small_image_in_base64_is_not_taken_for_a_path(tmp_path: Path) -> None:
    # A path of this length is legal, a name is not: asking for it is an error of the operating system.
    data = b"\x89PNG" + bytes(400)
    rows = [{"index": "1", "image": base64.b64encode(data).decode(), "question": "?"}]
    (item,) = read(tsv(tmp_path / "set.tsv", rows)).items
    assert item.images == (data,)


def test_a_tsv_row_with_options_is_asked_with_them(tmp_path: Path) -> None:
    rows = [
        {"image": coded(), "question": "Which?", "hint": "Look.", "A": "red", "B": "blue", "C": ""},
        {"image": coded(), "question": "What?", "hint": "Look.", "A": "", "B": "", "C": ""},
    ]
    choice, open_one = read(tsv(tmp_path / "set.tsv", rows)).items
    assert choice.question == (
        "Hint: Look.\nQuestion: Which?\nOptions:\nA. red\nB. blue\n"
        "Please select the correct answer from the options above. \n"
    )
    assert open_one.question == "Look.\nWhat?"


def test_a_cell_may_name_another_row_also_a_later_one(tmp_path: Path) -> None:
    rows = [
        {"index": "1", "image": "3", "question": "forward?"},
        {"index": "2", "image": "9", "question": "nowhere?"},
        {"index": "3", "image": coded(), "question": "itself?"},
        {"index": "4", "image": "1", "question": "a chain?"},
    ]
    forward, nowhere, itself, chain = read(tsv(tmp_path / "set.tsv", rows)).items
    assert forward.images == itself.images == (picture(),)
    assert 'that of index "9", and no row has it' in nowhere.problem
    assert nowhere.where == "set.tsv, line 3 (index 2)"
    assert 'index "1", which has none of its own' in chain.problem


def test_a_cell_may_hold_several_images_and_be_longer_than_csv_allows(tmp_path: Path) -> None:
    large = io.BytesIO()
    noise = np.random.default_rng(0).integers(0, 256, (300, 300, 3)).astype(np.uint8)
    PIL.Image.fromarray(noise).save(large, "PNG")
    code = base64.b64encode(large.getvalue()).decode()
    assert len(code) > 131_072
    cell = f"['{code}', '{coded()}']"
    (item,) = read(tsv(tmp_path / "set.tsv", [{"index": "1", "image": cell, "question": "?"}])).items
    assert item.images == (large.getvalue(), picture())


def test_paths_in_a_tsv_are_relative_to_it(tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(picture())
    rows = [
        {"image": "", "image_path": "x.png", "question": "?"},
        {"image": "x.png", "image_path": "", "question": "?"},
    ]
    found = read(tsv(tmp_path / "set.tsv", rows)).items
    assert [item.images for item in found] == [(tmp_path / "x.png",)] * 2


def test_easy_vqa_by_name() -> None:
    assert len(read("easy-vqa").items) == 38_575
    test = read("easy-vqa:test")
    assert len(test.items) == 9_673
    assert test.items[0].images[0].is_file()  # type: ignore[union-attr]
    with pytest.raises(DataError, match='no part "dev"'):
        read("easy-vqa:dev")


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("none.jsonl", None, "There is no data set"),
        ("set.csv", "a,b", "in no known form"),
        ("set.jsonl", "", "holds no question"),
        ("set.tsv", "index\timage\n1\tx\n", 'no column "question"'),
        ("set.jsonl", b"\xff\xfe\x00", "line 1: it is not JSON"),
    ],
)
def test_what_is_no_reference_set_is_refused(
    name: str, content: str | bytes | None, found: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError, match=found):
        read(path)


def test_a_sample_is_seeded_and_a_key_follows_the_content_and_not_the_place(tmp_path: Path) -> None:
    keys = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        rows = []
        for i in range(20):
            (tmp_path / folder / f"{folder}{i}.png").write_bytes(picture(i))
            rows.append(json.dumps({"image": f"{folder}{i}.png", "question": "what?"}))
        (tmp_path / folder / "questions.jsonl").write_text("\n".join(rows))
        found = read(tmp_path / folder)
        keys.append([item.key() for item in read(tmp_path / folder, 5, 1).items])
        assert read(tmp_path / folder, 5, 2) != read(tmp_path / folder, 5, 1)
        assert read(tmp_path / folder, 99, 1) == found
        assert all(item in found.items for item in read(tmp_path / folder, 5, 1).items)
    assert keys[0] == keys[1]
    assert len(set(keys[0])) == 5


def test_any_data_set_that_can_be_evaluated_is_one(tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(picture())
    rows = [{"question": "Which?", "image": "x.png", "options": ["red", "blue"], "answer": "B"}]
    (tmp_path / "mine.json").write_text(json.dumps(rows))
    found = read(tmp_path / "mine.json")
    assert found.name == "mine"
    assert found.items[0].question.startswith("Question: Which?\nOptions:\nA. red\nB. blue\n")
    assert found.items[0].images == (tmp_path / "x.png",)
    scenes = read("scenes:tuning", 3, 0)
    assert (len(scenes.items), scenes.name) == (3, "scenes-tuning (3 of 1000, seed 0)")


def test_a_set_in_which_nothing_can_be_used_is_refused_with_its_first_problem(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text('{"image": "none.png", "question": "?"}\n' * 3)
    with pytest.raises(DataError, match=r"can be used: set\.jsonl, line 1: there is no image none\.png"):
        read(path)
