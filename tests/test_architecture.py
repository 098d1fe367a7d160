"""The arrows point one way, and rooms stay small."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "macr_local"
SOURCES = sorted(PACKAGE.rglob("*.py"))


def imports(path: Path) -> set[str]:
    """Every module that a file imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def uses(path: Path, *modules: str) -> set[str]:
    return {name for name in imports(path) if any(name == m or name.startswith(f"{m}.") for m in modules)}


def test_only_the_engine_imports_llama_cpp() -> None:
    others = [path for path in SOURCES if room(path) != "engine" and uses(path, "llama_cpp")]
    assert others == []
    assert any(uses(path, "llama_cpp") for path in SOURCES)


@pytest.mark.parametrize("path", [p for p in SOURCES if room(p) == "relay"], ids=lambda p: p.name)
def test_the_relay_is_pure(path: Path) -> None:
    heavy, above = ("ctypes", "numpy", "scipy", "PIL"), ("engine", "pool", "session", "strategies", "cli")
    assert not uses(path, *heavy, *(f"macr_local.{name}" for name in above))


@pytest.mark.parametrize("path", [p for p in SOURCES if room(p) == "engine"], ids=lambda p: p.name)
def test_the_engine_knows_nothing_of_windows_or_bids(path: Path) -> None:
    above = ("relay", "strategies", "pool", "session", "calibration", "cli")
    assert not uses(path, *(f"macr_local.{name}" for name in above))


def test_no_file_is_longer_than_400_lines() -> None:
    assert {p.name: n for p in SOURCES if (n := len(p.read_text("utf-8").splitlines())) > 400} == {}


@pytest.mark.parametrize("statement", ["import macr_local", "from macr_local.cli.main import main"])
def test_importing_costs_nothing_heavy(statement: str) -> None:
    heavy = "{'numpy', 'llama_cpp', 'PIL', 'scipy', 'huggingface_hub', 'jinja2'}"
    script = f"import sys\n{statement}\nprint(sorted({heavy} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_every_public_name_is_there() -> None:
    import macr_local

    for name in macr_local.__all__:
        assert getattr(macr_local, name) is not None
    lazy = {name for names in macr_local._HOME.values() for name in names}
    assert lazy | {"__version__"} == set(macr_local.__all__)
