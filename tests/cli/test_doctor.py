"""``doctor`` on the embedded pools."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from macr_local.cli import doctor
from macr_local.cli.program import cli
from macr_local.engine.member import LlamaMember


@pytest.fixture(autouse=True)
def _nothing_is_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MACR_LOCAL_MODELS", "MACR_LOCAL_POOL", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("platformdirs.user_config_path", lambda *_, **__: tmp_path / "config")


def run(*args: str) -> Result:
    return CliRunner().invoke(cli, ["doctor", *args])


def test_it_names_the_machine_and_passes_every_member() -> None:
    result = run("--pool", "tiny")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0].startswith("macr-local ")
    assert any(line.startswith("device     CPU: ") for line in lines)
    assert any(line.startswith("memory ") for line in lines)
    assert sum(line.startswith("ok         tiny-") for line in lines) == 15
    assert "FAILED" not in result.stdout


def test_without_a_gpu_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = doctor.survey()
    for gpu in (True, False):
        lines = list(doctor.describe({**machine, "gpu": gpu}))
        assert any("CPU only" in line for line in lines) is not gpu


def test_a_member_that_fails_is_named_and_gives_exit_code_8(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LlamaMember, "drop", LlamaMember.adopt)
    result = run("--pool", "tiny")
    assert result.exit_code == 8
    assert result.stdout.count("FAILED     tiny-") == 3
    assert "FAILED     tiny-qwen3vl drop: a dropped bid leaves a trace" in result.stdout
    assert "error: The self-test failed for tiny-qwen3vl, tiny-internvl, tiny-minicpmv" in result.stderr


def test_json_is_one_object_with_every_check() -> None:
    result = run("--pool", "tiny", "--json")
    report = json.loads(result.stdout)
    assert report["ok"] is True
    assert report["pool"] == "tiny"
    assert {check["name"] for check in report["checks"]} == {"prefill", "images", "drop", "adopt", "speed"}
    assert report["memory_total"] > report["memory_available"] > 0


def test_where_the_default_pool_is_absent_an_embedded_one_is_tested() -> None:
    result = run()
    assert result.exit_code == 0
    assert "testing tiny instead" in result.stdout
    named = run("--pool", "default")
    assert named.exit_code == 4
    assert "macr-local download default" in named.stderr
