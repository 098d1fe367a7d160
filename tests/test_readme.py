"""What the README says is so."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from macr_local.cli.main import cli

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", README, re.S | re.M)
COMMANDS = [line for language, block in BLOCKS if not language for line in block.splitlines()]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_ci_runs_the_readme_s_test_command() -> None:
    (command,) = [line for line in COMMANDS if "pytest" in line]
    assert command in (ROOT / ".ci" / "run").read_text("utf-8").splitlines()
    assert command in (ROOT / "CONTRIBUTING.md").read_text("utf-8").splitlines()


def test_the_first_command_gives_the_answer_that_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    (command,) = [line for line in COMMANDS if "examples/scene.png" in line]
    monkeypatch.chdir(ROOT)
    words = shlex.split(command.split("&&")[-1])
    result = CliRunner().invoke(cli, words[1:])
    assert result.exit_code == 0
    assert " ".join(result.stdout.split()) in " ".join(README.split())
    assert re.sub(r"[\d.]+ s$", "", result.stderr.splitlines()[-1]) in README


@pytest.mark.parametrize("member", ["tiny-qwen3vl", "tiny-internvl", "tiny-minicpmv"])
def test_every_member_alone_is_as_wrong_as_it_says(member: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (command,) = [line for line in COMMANDS if "examples/scene.png" in line]
    words = shlex.split(command.split("&&")[-1])
    result = CliRunner().invoke(cli, [*words[1:], "--strategy", "single", "--leader", member])
    assert result.stdout.strip().endswith("Answer: three" if member == "tiny-internvl" else "Answer: zero")


def test_the_library_example_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    (code,) = [block for language, block in BLOCKS if language == "python"]
    exec(compile(code, "README.md", "exec"), {})
    assert "Answer: two" in capsys.readouterr().out


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_leads_somewhere(document: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", document.read_text("utf-8"))
    missing = [link for link in links if "://" not in link and not (document.parent / link).exists()]
    assert missing == []
