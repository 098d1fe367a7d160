"""The paper's three tables, of any runs: as Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from macr_local.evaluation.method import known
from macr_local.evaluation.statistics.estimate import Estimate
from macr_local.evaluation.table import BASE, Row

ABLATIONS = ("macr-fi", "macr-fs", "macr-ft")
HOMOGENEOUS = ("roleplay", "tdh")
_NONE = "-"


def markdown(rows: Sequence[Row], scorer: str) -> str:
    """All tables that the rows fill."""
    datasets = list(dict.fromkeys(row.dataset for row in rows))
    parts = [_table1(rows, datasets, scorer)]
    for dataset in datasets:
        of_data = [row for row in rows if row.dataset == dataset]
        parts += filter(None, (_table2(of_data, dataset), _table3(of_data, dataset)))
    parts.append(_notes(rows))
    return "\n\n".join(parts) + "\n"


def as_csv(rows: Sequence[Row]) -> str:
    """One line for each row, numbers unrounded."""
    file = io.StringIO()
    plain = [flat(row) for row in rows]
    names = list(dict.fromkeys(name for each in plain for name in each))
    writer = csv.DictWriter(file, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(plain)
    return file.getvalue()


def as_json_text(rows: Sequence[Row], scorer: str) -> str:
    """Everything, numbers unrounded; what is not defined is null."""
    return json.dumps({"scorer": scorer, "rows": [_finite(asdict(row)) for row in rows]}, indent=1)


def flat(row: Row) -> dict[str, Any]:
    """A row without nesting."""
    plain = asdict(row)
    interval, ibc = plain.pop("interval"), plain.pop("ibc_interval") or {}
    plain |= {"low": interval["low"], "high": interval["high"]}
    plain |= {"ibc_low": ibc.get("low"), "ibc_high": ibc.get("high")}
    plain |= {f"accuracy {name}": value for name, value in plain.pop("other").items()}
    plain |= plain.pop("ratings")
    found = _finite(plain)
    assert isinstance(found, dict)
    return found


def _table1(rows: Sequence[Row], datasets: Sequence[str], scorer: str) -> str:
    """Accuracy, tokens and IBC of all methods on all data sets."""
    heads = ["method"]
    for name in datasets:
        items = {row.items for row in rows if row.dataset == name}
        count = f"{min(items):,}" if len(items) == 1 else f"{min(items):,}-{max(items):,}"
        heads += [f"{name} ({count}): right", "95 %", "tokens", "IBC"]
    by = {(row.dataset, row.method): row for row in rows}
    lines = []
    for method in sorted(dict.fromkeys(row.method for row in rows), key=_rank(rows)):
        cells = [f"`{method}`"]
        for name in datasets:
            row = by.get((name, method))
            cells += [_NONE] * 4 if row is None else _cells(row)
        lines.append(cells)
    title = f"**Table 1.** Accuracy in percent ({scorer}; ± sample SD over seeds), tokens, IBC (1e-6)."
    return f"{title}\n\n{_grid(heads, lines)}"


def _cells(row: Row) -> list[str]:
    ibc = _NONE
    if row.strategy != BASE:
        ibc = row.standing or _NONE
        if row.ibc is not None:
            ibc = f"{row.ibc:.2f}{_between(row.ibc_interval, 2)}"
    return [_accuracy(row), _percents(row.interval), f"{row.tokens:,.0f}", ibc]


def _table2(rows: Sequence[Row], dataset: str) -> str:
    """Ablations of the relay."""
    chosen = [row for row in rows if row.strategy in ABLATIONS]
    if not chosen:
        return ""
    chosen += [row for row in rows if row.method == "macr"]
    lines = [
        [f"`{row.method}`", _accuracy(row), _percents(row.interval), f"{row.written:,.1f}"] for row in chosen
    ]
    title = f"**Table 2.** Ablations on {dataset} ({_items(chosen)} items); tokens are those written."
    return f"{title}\n\n{_grid(['variant', 'right', '95 %', 'tokens'], lines)}"


def _table3(rows: Sequence[Row], dataset: str) -> str:
    """One member in several roles, or with several draws, against all members."""
    chosen = [row for row in rows if row.strategy in HOMOGENEOUS]
    if not chosen:
        return ""
    members = list(dict.fromkeys(row.member for row in chosen))
    by = {(row.strategy, row.member): row for row in rows}
    lines = []
    for strategy in HOMOGENEOUS:
        found = [by.get((strategy, member)) for member in members]
        cells = [_NONE if row is None else f"{_accuracy(row)} {_percents(row.interval)}" for row in found]
        lines.append([f"`{strategy}`", *cells])
    if (relay := by.get(("macr", ""))) is not None:
        whole = f"{_accuracy(relay)} {_percents(relay.interval)}"
        lines.append(["`macr`, all members", whole, *[""] * (len(members) - 1)])
    title = f"**Table 3.** One member alone on {dataset} ({_items(chosen)} items), right in percent."
    return f"{title}\n\n{_grid(['method', *members], lines)}"


def _notes(rows: Sequence[Row]) -> str:
    lines = [
        "Intervals are 95 %, from a bootstrap over images (or figures), whose questions are not independent. "
        "The SD over seeds says nothing about other questions. Tokens count each prompt once for each member "
        "it went to, and all that was written."
    ]
    for row in rows:
        said = []
        if row.other:
            said.append(", ".join(f"{name} {100 * value:.1f}" for name, value in row.other.items()))
        if row.unparsed:
            said.append(f"{100 * row.unparsed:.1f} % unread")
        if row.failed:
            said.append(f"{row.failed} failed")
        if row.unscored:
            said.append(f"{row.unscored} without a score")
        if row.dataset.lower().startswith("logicvista") and row.items == 447:
            said.append(f"{100 * row.accuracy * 447 / 448:.2f} of 448, one of which asks nothing")
        if row.ratings:
            said.append(", ".join(f"{name} {100 * value:.2f}" for name, value in row.ratings.items()))
        if said:
            lines.append(f"* {row.dataset} `{row.method}`: {'; '.join(said)}")
    return "\n".join(lines)


def _rank(rows: Sequence[Row]) -> Callable[[str], tuple[int, str, int]]:
    """Methods of one member first, member by member, as the paper has them."""
    members = list(dict.fromkeys(row.member for row in rows if row.strategy == BASE))
    order = known()

    def key(method: str) -> tuple[int, str, int]:
        strategy, _, member = method.partition(":")
        place = order.index(strategy) if strategy in order else len(order)
        if not member or strategy.startswith("macr"):
            return len(members), "", place
        return members.index(member) if member in members else len(members), member, place

    return key


def _items(rows: Iterable[Row]) -> str:
    return " to ".join(f"{count:,}" for count in sorted({row.items for row in rows}))


def _accuracy(row: Row) -> str:
    spread = "" if row.deviation is None else f" ± {100 * row.deviation:.2f}"
    return f"{100 * row.accuracy:.2f}{spread}"


def _percents(interval: Estimate) -> str:
    return f"[{100 * interval.low:.1f}, {100 * interval.high:.1f}]"


def _between(interval: Estimate | None, digits: int) -> str:
    if interval is None or not math.isfinite(interval.low):
        return ""
    return f" [{interval.low:.{digits}f}, {interval.high:.{digits}f}]"


def _grid(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[place]) for row in (heads, *lines)) for place in range(len(heads))]

    def line(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))} |"

    rule = f"|{'|'.join('-' * (width + 2) for width in widths)}|"
    return "\n".join([line(heads), rule, *map(line, lines)])


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
