"""Known benchmarks: what the columns of each mean, wherever its rows come from."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import get_args

from macr_local.evaluation.datasets.dataset import Reader
from macr_local.evaluation.datasets.row import Row
from macr_local.evaluation.item import AnswerType, Item

PUBLISHED = {
    "e1ecd2140806c1b1bbf54b43372efb9e": "MMStar",
    "4de008f55dc4fd008ca9e15321dc44b7": "RealWorldQA",
    "0c23ac0dc9ef46832d7a24504f2a0c7c": "HallusionBench",
    "f199b98e178e5a2a20e7048f5dcb0464": "MathVista_MINI",
    "41c5d33adf33765c399e0e6ae588c061": "LogicVista",
    "585e8ad75e73f75dcad265dfd0417d64": "MMMU_DEV_VAL",
}
"""VLMEvalKit's files by their MD5."""

_GROUPS = ("category", "l2-category", "l2_category", "split", "skill", "task", "family")
_INLINE_LINES = re.compile(r"^\(?([A-Z])[).:]\s+(\S.*?)\s*$", re.MULTILINE)
_MMSTAR_OPTIONS = re.compile(r"\nOptions:\s*(A: .*)$", re.DOTALL)
_MMSTAR_OPTION = re.compile(r"(?:^|,\s*)([A-Z]): ")
_METADATA = ("split", "language", "source", "category", "task", "context", "grade", "skills")


def reader_of(name: str, columns: Collection[str]) -> Reader:
    """How rows with these columns are read; the name decides where columns do not."""
    has, low = set(columns), name.lower()
    if {"question_type", "answer_type"} <= has and ("pid" in has or "choices" in has):
        return mathvista
    if {"set_id", "figure_id", "question_id"} <= has or low.startswith("hallusion"):
        return hallusionbench
    if low.startswith("logicvista") or {"skill", "broad_capability"} <= has:
        return logicvista
    if {"question_type", "subfield"} <= has or "image_1" in has:
        return mmmu
    if {"l2_category", "meta_info"} <= has:
        return mmstar
    if low.startswith("realworldqa"):
        return realworldqa
    return plain


def plain(row: Row) -> Item:
    """A row of no known benchmark: question, options, answer, hint, type, precision, unit, groups."""
    options = row.options()
    answer = row.text("answer", "label", "answers")
    kind = _kind(row, options, answer)
    if kind == "mcq" and answer:
        answer = _letter(answer, options)
    elif kind == "yesno":
        answer = _yes_or_no(answer)
    groups: dict[str, tuple[str, ...]] = {
        name.replace("_", "-"): (row.text(name),) for name in _GROUPS if row.text(name)
    }
    given = row.fields.get("groups")
    if isinstance(given, Mapping):
        groups |= {
            str(name): tuple(map(str, each)) if isinstance(each, (list, tuple)) else (str(each),)
            for name, each in given.items()
        }
    return _item(row, _question(row), answer, kind, options=options, groups=groups)


def mathvista(row: Row) -> Item:
    """MathVista, as published (JSON or parquet) or as VLMEvalKit's table.

    The table's question is the whole query, options among it; otherwise question, unit and choices are apart.
    """
    options = row.options()
    multiple = row.text("question_type") == "multi_choice"
    kinds: dict[str, AnswerType] = {"integer": "int", "float": "float", "list": "list"}
    kind: AnswerType = "mcq" if multiple else kinds.get(row.text("answer_type"), "text")
    answer = row.text("answer")
    if multiple and answer:
        answer = row.text("answer_option") or _letter(answer, options)
    metadata = row.fields.get("metadata")
    told = {**row.fields, **(metadata if isinstance(metadata, Mapping) else {})}
    source = Row(row.number, row.where, told)
    groups = {name: _several(source, name) for name in (*_METADATA, "question_type", "answer_type")}
    question, unit = _question(row), row.text("unit")
    inline = "pid" not in row.fields
    return _item(
        row,
        f"{question} (Unit: {unit})" if unit and not inline else question,
        answer,
        kind,
        options=options,
        inline=inline,
        groups=groups,
        unit=unit,
    )


def logicvista(row: Row) -> Item | str:
    """LogicVista: options are in the image; the answer is a letter or several."""
    answer = row.text("answer")
    if not row.text("question") and not answer:
        return "neither question nor answer"
    letters = sorted({part.strip().upper() for part in answer.split(",") if part.strip()})
    groups = {
        name: _several(row, name)
        for name in ("skill", "broad_capability", "specific_capability", "imagesource")
    }
    return _item(row, _question(row), ", ".join(letters), "letters", groups=groups)


def hallusionbench(row: Row) -> Item | str:
    """HallusionBench: yes or no; its figures and questions are kept as groups, for fAcc and qAcc."""
    parts = row.text("index").split("_")
    if len(parts) == 6:
        category, sub, visual, set_id, figure, question = parts
    else:
        category, sub, visual = (row.text(name) for name in ("category", "subcategory", "visual_input"))
        set_id, figure, question = (row.text(name) for name in ("set_id", "figure_id", "question_id"))
    if visual == "0":
        return "no image (visual_input 0)"
    l2 = row.text("l2-category") or f"{category}_{sub}"
    groups = {
        "category": (category,),
        "l2-category": (l2,),
        "figure": (f"{l2}_{set_id}_{figure}",),
        "question": (f"{l2}_{set_id}_{question}",),
    }
    answer = _yes_or_no(row.text("gt_answer", "answer"))
    name = "_".join((category, sub, visual, set_id, figure, question))
    return _item(row, _question(row), answer, "yesno", name=name, groups=groups, cluster=f"{l2}_{set_id}")


def mmstar(row: Row) -> Item:
    """MMStar as published, with its options in the question."""
    question = _question(row)
    block = _MMSTAR_OPTIONS.search(question)
    options: dict[str, str] = {}
    if block:
        parts = _MMSTAR_OPTION.split(block[1])
        options = {letter: text.strip() for letter, text in zip(parts[1::2], parts[2::2], strict=True)}
    options = options or _lines(question)
    groups = {"category": (row.text("category"),), "l2-category": (row.text("l2_category"),)}
    return _item(
        row, question, row.text("answer").upper(), "mcq", options=options, inline=True, groups=groups
    )


def mmmu(row: Row) -> Item:
    """MMMU: several images, named in the question; options or an open answer."""
    options = row.options()
    answer = row.text("answer")
    subject = row.text("id").split("_", 1)[-1].rpartition("_")[0]
    names = ("topic_difficulty", "question_type", "subfield", "split", "category")
    groups = {name: (row.text(name),) for name in names if row.text(name)}
    if subject:
        groups["subject"] = (subject,)
    kind: AnswerType = "mcq" if options and row.text("question_type") != "open" else "text"
    return _item(row, _question(row), answer, kind, options=options if kind == "mcq" else {}, groups=groups)


def realworldqa(row: Row) -> Item:
    """RealWorldQA: a letter where options are named in the question or in columns, and words otherwise."""
    question, options = _question(row), row.options()
    inline = not options
    options = options or _lines(question)
    answer = row.text("answer")
    if len(answer) == 1 and answer.upper() in options:
        return _item(row, question, answer.upper(), "mcq", options=options, inline=inline)
    return _item(row, question, answer, "text", inline=inline)


def _item(
    row: Row,
    question: str,
    answer: str,
    kind: AnswerType,
    *,
    name: str = "",
    options: Mapping[str, str] | None = None,
    inline: bool = False,
    groups: Mapping[str, tuple[str, ...]] | None = None,
    cluster: str = "",
    unit: str = "",
) -> Item:
    return Item(
        id=name or row.text("index", "id", "pid", "question_id") or f"row {row.number}",
        where=row.where,
        question=question,
        images=(),
        answer=answer,
        answer_type=kind,
        options=options or {},
        inline=inline,
        hint=row.text("hint"),
        precision=_precision(row),
        unit=unit or row.text("unit"),
        cluster=cluster or row.text("cluster"),
        groups={name: values for name, values in (groups or {}).items() if values},
        row=row.fields,
    )


def _question(row: Row) -> str:
    question = row.text("question")
    if not question:
        raise ValueError("it has no question")
    if any("\ud800" <= char <= "\udfff" for char in question):
        raise ValueError("its question holds half a character (a lone surrogate)")
    return question


def _kind(row: Row, options: Mapping[str, str], answer: str) -> AnswerType:
    said = row.text("answer_type", "type").lower()
    for known in get_args(AnswerType):
        if said == known:
            return known  # type: ignore[no-any-return]
    value = row.fields.get("answer")
    if options:
        return "mcq"
    if isinstance(value, bool) or answer.lower() in ("yes", "no"):
        return "yesno"
    if isinstance(value, (int, float)):
        return "int" if float(value).is_integer() and row.text("precision") == "" else "float"
    return "text"


def _letter(answer: str, options: Mapping[str, str]) -> str:
    if answer.upper() in options and len(answer) == 1:
        return answer.upper()
    for letter, text in options.items():
        if text.strip() == answer.strip():
            return letter
    raise ValueError(f'its answer "{answer[:40]}" is none of its options')


def _yes_or_no(answer: str) -> str:
    found = {"1": "Yes", "yes": "Yes", "true": "Yes", "0": "No", "no": "No", "false": "No", "": ""}
    if answer.lower() not in found:
        raise ValueError(f'its answer "{answer[:40]}" is neither yes nor no')
    return found[answer.lower()]


def _precision(row: Row) -> int | None:
    said = row.text("precision")
    try:
        return int(float(said)) if said else None
    except (ValueError, OverflowError):
        raise ValueError(f'its precision "{said[:40]}" is no number') from None


def _lines(question: str) -> dict[str, str]:
    found = dict(_INLINE_LINES.findall(question))
    return found if list(found) == [chr(ord("A") + place) for place in range(len(found))] else {}


def _several(row: Row, name: str) -> tuple[str, ...]:
    value = row.fields.get(name)
    if isinstance(value, str) and not value.strip().startswith("["):
        return (value.strip(),) if value.strip() else ()
    return tuple(str(each) for each in row.listed(name))
