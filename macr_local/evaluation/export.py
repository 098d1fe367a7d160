"""Kept answers in the forms of two other harnesses, for their own scoring and comparison."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterable, Mapping
from typing import Any

from macr_local.errors import DataError
from macr_local.evaluation.item import Item
from macr_local.evaluation.record import Record
from macr_local.evaluation.result import Result
from macr_local.evaluation.score import Scorer

CELL = 32_767
"""Characters that a cell of a spreadsheet holds; longer answers are cut there."""


def vlmevalkit(records: Iterable[Record]) -> list[dict[str, Any]]:
    """Rows of VLMEvalKit's prediction file: the data set's own rows without images, and "prediction".

    Rows of data sets that have none of their own, or other names for them, are given its columns.
    """
    return [
        {**_columns(one.item), "prediction": one.text, "extra_records": _extra(one)}
        for one in records
        if not one.error
    ]


def as_tsv(rows: list[dict[str, Any]]) -> str:
    """As VLMEvalKit writes a table: tabs, everything quoted."""
    file = io.StringIO()
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(
        file, names, delimiter="\t", quoting=csv.QUOTE_ALL, lineterminator="\n", restval=""
    )
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return file.getvalue()


def as_xlsx(rows: list[dict[str, Any]]) -> bytes:
    """As a spreadsheet, which is VLMEvalKit's default.

    Raises:
        DataError: openpyxl is not installed.
    """
    try:
        from openpyxl import Workbook
        from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE
    except ImportError:
        raise DataError(
            "Spreadsheets need openpyxl, which is not installed",
            "Run: pip install 'macr-local[xlsx]', or export vlmevalkit-tsv (PRED_FORMAT=tsv)",
        ) from None
    book = Workbook(write_only=True)
    sheet = book.create_sheet()
    names = list(dict.fromkeys(name for row in rows for name in row))
    sheet.append(names)
    for row in rows:
        cells = (_cell(row.get(name, "")) for name in names)
        sheet.append([ILLEGAL_CHARACTERS_RE.sub("", c)[:CELL] if isinstance(c, str) else c for c in cells])
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def lmms_eval(records: Iterable[Record], scorer: Scorer) -> str:
    """lmms-eval's sample lines (``--log_samples``), which its ``--baseline`` reads.

    ``doc_id`` is the item's place among the answered ones, in order of the run's file unless ids are numbers.
    """
    kept = [one for one in records if not one.error]
    judged = {one.record.key: one.score for one in Result.of("", "", kept, scorer).judged}
    lines = []
    for number, one in enumerate(kept):
        score = judged.get(one.key)
        row = json.dumps(_columns(one.item), ensure_ascii=False, sort_keys=True, default=str)
        line = {
            "doc_id": int(one.item.id) if one.item.id.isdecimal() else number,
            "target": one.item.answer,
            "filtered_resps": one.text,
            "token_counts": [{"output_tokens": one.total.committed}],
            "doc_hash": hashlib.sha256(row.encode("utf-8", "replace")).hexdigest(),
            "input": one.item.question,
            "id": one.item.id,
            "score": None if score is None else float(score.right),
            "rule": None if score is None else score.rule,
        }
        lines.append(json.dumps(line, ensure_ascii=False))
    return "".join(f"{line}\n" for line in lines)


def _columns(item: Item) -> dict[str, Any]:
    own = {name: value for name, value in item.row.items() if name not in ("image", "image_path")}
    if {"index", "question", "answer"} <= set(own):
        return own
    categories = item.groups.get("category") or next(iter(item.groups.values()), ())
    return {
        "index": item.id,
        "question": item.question,
        **({"hint": item.hint} if item.hint else {}),
        **item.options,
        "answer": item.answer,
        **({"category": ", ".join(categories)} if categories else {}),
    }


def _extra(record: Record) -> dict[str, Any]:
    total = record.total
    return {
        "seed": record.seed,
        "finish_reason": record.finish_reason,
        "tokens": total.tokens,
        "written": total.written,
        "relays": record.relays,
        "handovers": record.handovers,
    }


def _cell(value: Any) -> Any:
    if isinstance(value, (Mapping, list, tuple)):
        return json.dumps(value, ensure_ascii=False)
    return "" if value is None else value
