"""Data sets as users have them on disk, read row by row."""

from __future__ import annotations

from macr_local.evaluation.datasets.dataset import DataSet
from macr_local.evaluation.datasets.opening import NAMED, open_dataset, tables

__all__ = ["NAMED", "DataSet", "open_dataset", "tables"]
