"""How answers are read: golden values are those of other people's code and data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from macr_local.evaluation.item import AnswerType, Item
from macr_local.evaluation.scoring import score
from macr_local.evaluation.scoring.hallusionbench import ratings
from macr_local.evaluation.scoring.mathvista import distance, normalized
from macr_local.evaluation.scoring.vlmevalkit import option, yes_or_no

COLORS = {"A": "red", "B": "blue", "C": "green", "D": "teal"}


def item(kind: AnswerType, answer: str, **more: object) -> Item:
    return Item("1", "row 1", "?", (), answer, kind, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("B", "B"),
        ("B.", "B"),
        ("(B)", "B"),
        ("B. blue", "B"),
        ("**B**", "B"),
        ("**Answer: B**", "B"),
        ("The correct answer is **C**. A and B are wrong because", "C"),
        ("The correct answer is (C), because A is not", None),
        ("Let us check A. Then B. Then the final answer: C", None),
        ("<answer>D</answer>", None),
        ("A red car", "A"),
        ("I think it is blue.", "B"),
        ("Answer is b", "B"),
        ("\\boxed{D}", "D"),
        ("$\\boxed{\\text{D}}$", "D"),
    ],
)
def test_options_are_read_as_vlmevalkit_reads_them(text: str, found: str | None) -> None:
    assert option(text, COLORS)[0] == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Yes", "Yes"),
        ("Yes.", "Yes"),
        ("\\boxed{Yes}", "Yes"),
        ("<answer>Yes</answer>", "Yes"),
        ("**Yes**", None),
        ("Answer:Yes", None),
        ("Answer: **No**", None),
        ("**No.**", None),
        ("There is no triangle, so the answer is Yes.", None),
        ("yes\n\nExplanation: no other shapes", None),
        ("No: the", None),
        ("No — it is not", "No"),
        ("Not present.", None),
    ],
)
def test_yes_and_no_are_read_as_vlmevalkit_reads_them(text: str, found: str | None) -> None:
    assert yes_or_no(text) == found


def test_two_hundred_strange_texts_are_read_as_vlmevalkit_s_own_functions_read_them() -> None:
    kept = json.loads((Path(__file__).parent / "vlmevalkit.json").read_text("utf-8"))
    assert len(kept) == 200
    for one in kept:
        assert option(one["text"], COLORS)[0] == one["option"], one["text"]
        assert yes_or_no(one["text"]) == one["yesno"], one["text"]


def test_what_vlmevalkit_would_give_to_a_judge_is_neither_right_nor_wrong() -> None:
    assert score(item("letters", "A, C"), "A, C", "compat:vlmevalkit").rule == "needs-judge"
    assert score(item("text", "red"), "red", "compat:vlmevalkit").rule == "needs-judge"
    assert score(item("mcq", "", options=COLORS), "B", "strict").rule == "no-label"


@pytest.mark.parametrize(
    ("text", "found", "rule"),
    [
        ("The correct answer is (C), because A is not", "C", "answer-is"),
        ("<answer>D</answer>", "D", "tag"),
        ("$\\boxed{\\text{D}}$", "D", "boxed"),
        ("First B, then C.\nAnswer: \nD", "D", "answer-line"),
        ("**Answer:** (B) blue", "B", "answer-line"),
        ("Answer: blue", "B", "answer-line"),
        ("<think>Answer: A</think>\nB", "B", "last-line"),
        ("B\n\nIt is the only one with two sides.", "B", "first-line"),
        ("A red car", None, "last-line-unread"),
        ("Answer: A or B", None, "answer-line-unread"),
        ("The answer is not A.", None, "last-line-unread"),
        ("Answer: E", None, "answer-line-unread"),
        ("<think>It must be B", None, "unfinished-thought"),
        ("", None, "empty"),
    ],
)
def test_a_letter_is_read_where_it_is_marked_and_never_guessed(
    text: str, found: str | None, rule: str
) -> None:
    read = score(item("mcq", "B", options=COLORS), text, "strict")
    assert (read.found, read.rule, read.right) == (found, rule, found == "B")


@pytest.mark.parametrize(
    ("kind", "answer", "text", "right"),
    [
        ("yesno", "Yes", "**Yes**", True),
        ("yesno", "Yes", "There is no triangle, so the answer is Yes.", True),
        ("yesno", "No", "No: the", True),
        ("yesno", "No", "Not present.", False),
        ("int", "1234", "Answer: 1,234", True),
        ("int", "7", "so 3 + 4 = 7", True),
        ("int", "3", "three", True),
        ("int", "3", "Answer: 3.9", False),
        ("int", "3", "3 or 4", False),
        ("int", "12", "The answer is 12 years.", True),
        ("int", "-5", "Answer: −5", True),
        ("float", "0.5", "\\boxed{\\frac{1}{2}}", True),
        ("list", "[3, 4]", "Answer: [3,4]", True),
        ("letters", "A, C", "Answer: C and A", True),
        ("letters", "A, C", "Answer: AC", True),
        ("letters", "A, C", "Answer: A", False),
        ("letters", "3", "Answer: 3", True),
        ("text", "red", "Answer: The Red.", True),
        ("text", "2", "Answer: two", True),
    ],
)
def test_each_kind_of_answer_is_compared_in_its_own_way(
    kind: AnswerType, answer: str, text: str, right: bool
) -> None:
    assert score(item(kind, answer), text, "strict").right is right


def test_a_float_is_rounded_to_the_item_s_precision() -> None:
    assert score(item("float", "1.2", precision=1), "Answer: 1.19", "strict").right
    assert not score(item("float", "1.2", precision=1), "Answer: 1.3", "strict").right


def test_an_option_that_stands_twice_is_right_by_either_letter() -> None:
    twice = {"A": "7", "B": "8", "C": "7"}
    assert score(item("mcq", "A", options=twice), "Answer: C", "strict").right


def test_mathvista_s_own_rules() -> None:
    choices = ("5 cm", "12 cm", "13 cm")
    assert normalized("(B) 12 cm", choices, "mcq", None) == "12 cm"
    assert normalized("C", choices, "mcq", None) == "13 cm"
    assert normalized("14 cm", choices, "mcq", None) == "12 cm"  # the first of the nearest
    assert normalized("3.9", (), "int", None) == "3"
    assert normalized("1.45", (), "float", 1) == str(round(1.45, 1))
    assert normalized("many", (), "int", None) is None
    assert distance("kitten", "sitting") == 3


def test_hallusionbench_s_figures_and_questions_are_told_apart_by_both_categories() -> None:
    def groups(l2: str, figure: int, question: int) -> dict[str, tuple[str, ...]]:
        return {"figure": (f"{l2}_0_{figure}",), "question": (f"{l2}_0_{question}",)}

    answers = [
        (groups("VD_ocr", 0, 0), True),
        (groups("VD_ocr", 0, 1), False),
        (groups("VD_ocr", 1, 0), True),
        (groups("VS_ocr", 0, 0), True),
    ]
    rated = ratings(answers)
    assert rated is not None
    assert (rated.all, rated.figures, rated.questions) == (3 / 4, 2 / 3, 2 / 3)
    assert ratings([({}, True)]) is None
