"""How every benchmark shows what it measured, and says whether the target was met."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under heads; the first column to the left, numbers to the right."""
    widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]
    for row in [heads, *rows]:
        cells = zip(row, widths, strict=True)
        first, *rest = (cell.rjust(w) if i else cell.ljust(w) for i, (cell, w) in enumerate(cells))
        print("  ".join([first, *rest]).rstrip())


def verdict(targets: dict[str, bool]) -> None:
    """Print whether each target was met, and leave with exit code 1 if one was not."""
    print()
    for target, met in targets.items():
        print(f"{'met   ' if met else 'MISSED'}  {target}")
    if not all(targets.values()):
        sys.exit(1)
