"""Every environment variable that is read is explained."""

from __future__ import annotations

import re
from pathlib import Path

from macr_local.images import MAX_PIXELS

ROOT = Path(__file__).parent.parent


def test_every_variable_of_the_package_and_its_tests_is_explained() -> None:
    text = (ROOT / "docs" / "configuration.md").read_text("utf-8")
    explained = set(re.findall(r"^\| `(MACR_LOCAL_[A-Z_]+)` \| \S", text, re.MULTILINE))
    folders = ("macr_local", "tests", "training", "benchmarks", "examples")
    texts = [path.read_text("utf-8") for folder in folders for path in (ROOT / folder).rglob("*.py")]
    used = {name for text in texts for name in re.findall(r"MACR_LOCAL_[A-Z_]*[A-Z]", text)}
    assert {"MACR_LOCAL_POOL", "MACR_LOCAL_MAX_PIXELS"} <= used
    assert used == explained


def test_the_ceiling_of_pixels_is_the_one_that_is_explained() -> None:
    text = (ROOT / "docs" / "configuration.md").read_text("utf-8")
    row = next(line for line in text.splitlines() if line.startswith("| `MACR_LOCAL_MAX_PIXELS`"))
    assert row.endswith(f"else {MAX_PIXELS} |")
