"""``pool list`` and ``pool show``: what there is, without loading it."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from macr_local.cli.program import cli
from macr_local.config import find_pool

TINY = Path(__file__).parents[2] / "macr_local" / "tiny"


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MACR_LOCAL_MODELS", "MACR_LOCAL_POOL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("platformdirs.user_config_path", lambda *_, **__: tmp_path / "config")
    monkeypatch.setattr("platformdirs.user_data_path", lambda *_, **__: tmp_path / "data")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.chdir(tmp_path)


def run(*args: str | Path) -> Result:
    return CliRunner().invoke(cli, ["pool", *map(str, args)])


def shown(*args: str | Path) -> dict[str, Any]:
    result = run("show", "--json", *args)
    assert result.exit_code == 0, result.stderr
    value: dict[str, Any] = json.loads(result.stdout)
    return value


def pool_file(folder: Path, **models: str) -> Path:
    """A pool of local models, name to TOML lines."""
    tables = "".join(f"[models.{name}]\n{text}\n" for name, text in models.items())
    path = folder / "models.toml"
    path.write_text(f"[pools.p]\nmembers = {list(models)}\ncalibration = 'cal'\n{tables}")
    return path


def test_the_list_names_every_pool_its_members_and_its_file() -> None:
    result = run("list")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines[::2]] == ["default", "tiny"]
    assert lines[0].endswith("(files are missing)")
    assert lines[3].split("; ")[1] == str(TINY / "models.toml")
    report = json.loads(run("list", "--json").stdout)
    assert report["default"] == "default"
    assert [(pool["name"], pool["present"]) for pool in report["pools"]] == [
        ("default", False), ("tiny", True),
    ]  # fmt: skip


def test_a_pool_is_shown_from_its_files_headers() -> None:
    report = shown("tiny")
    first = report["members"][0]
    assert (first["name"], first["architecture"], first["projector_type"]) == (
        "tiny-qwen3vl", "qwen3vl", "qwen3vl_merger",
    )  # fmt: skip
    assert (first["n_vocab"], first["n_ctx"], first["problem"], first["missing"]) == (536, 512, "", [])
    model, projector = Path(first["model"]), Path(first["projector"])
    assert first["bytes"] == model.stat().st_size + projector.stat().st_size
    assert report["settings"]["window"] == find_pool("tiny").settings.window
    result = run("show", "tiny")
    for name in ("tiny-qwen3vl", "tiny-internvl", "tiny-minicpmv"):
        assert f"\n{name}\n  model        {TINY}/" in result.stdout


def test_the_embedded_pool_is_calibrated_for_its_files() -> None:
    for member in shown("tiny")["members"]:
        calibration = member["calibration"]
        assert calibration["problem"] == ""
        assert calibration["questions"] >= 100
        assert calibration["date"] > "2025"


def test_nothing_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    monkeypatch.delitem(sys.modules, "macr_local.engine.library", raising=False)
    assert shown("tiny")["members"][0]["problem"] == ""


def test_what_is_not_downloaded_is_shown_with_its_command() -> None:
    result = run("show")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.count("problem      not downloaded") == 3
    assert "To download what is missing: macr-local download default\n" in result.stdout
    first = shown()["members"][0]
    assert first["repo"] == "Qwen/Qwen3-VL-8B-Instruct-GGUF"
    assert first["missing"] == ["Qwen3VL-8B-Instruct-Q4_K_M.gguf", "mmproj-Qwen3VL-8B-Instruct-F16.gguf"]


def test_files_that_are_missing_or_no_models_are_shown_not_fatal(tmp_path: Path) -> None:
    (tmp_path / "page.gguf").write_text("<!DOCTYPE html><html>not found</html>")
    path = pool_file(
        tmp_path,
        absent='model = "absent.gguf"',
        page='model = "page.gguf"',
        fine=f'model = "{TINY / "qwen3vl.gguf"}"',
    )
    absent, page, fine = shown(path)["members"]
    assert "absent.gguf" in absent["problem"]
    assert "page.gguf" in page["problem"]
    assert (absent["bytes"], page["n_vocab"]) == (None, None)
    assert (fine["problem"], fine["n_vocab"]) == ("", 536)
    assert json.loads(run("list", "--json").stdout)["pools"][0] == {
        "name": "p", "description": "", "members": ["absent", "page", "fine"],
        "source": str(path), "present": False,
    }  # fmt: skip


def test_a_calibration_is_shown_as_absent_damaged_or_of_another_model(tmp_path: Path) -> None:
    stored = "tiny-qwen3vl"
    path = pool_file(tmp_path, **{stored: f'model = "{TINY / "internvl.gguf"}"'})

    def problem() -> str:
        return str(shown(path)["members"][0]["calibration"]["problem"])

    assert problem().startswith("none")
    (tmp_path / "cal").mkdir()
    for suffix in ("json", "npz"):
        shutil.copy(TINY / "calibration" / f"{stored}.{suffix}", tmp_path / "cal")
    assert "was made with another model and projector" in problem()
    assert "cannot be used: The calibration of" in run("show", path).stdout
    (tmp_path / "cal" / f"{stored}.json").write_text("{")
    assert "is damaged" in problem()


def test_an_unknown_pool_is_an_error() -> None:
    result = run("show", "tinny")
    assert result.exit_code == 4
    assert 'Perhaps "tiny" is meant' in result.stderr
