"""From an empty home to an answer, as a user goes: the real program against a hub on loopback.

The hub serves the embedded pool's files under the names that the default pool has for the real ones.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from server import Hub, Repo, serving

from macr_local.config import load_pool

REAL = {
    "Qwen/Qwen3-VL-8B-Instruct-GGUF": (
        "tiny-qwen3vl",
        "Qwen3VL-8B-Instruct-Q4_K_M.gguf",
        "mmproj-Qwen3VL-8B-Instruct-F16.gguf",
    ),
    "bartowski/OpenGVLab_InternVL3_5-8B-GGUF": (
        "tiny-internvl",
        "OpenGVLab_InternVL3_5-8B-Q4_K_M.gguf",
        "mmproj-OpenGVLab_InternVL3_5-8B-f16.gguf",
    ),
    "openbmb/MiniCPM-V-4_5-gguf": ("tiny-minicpmv", "ggml-model-Q4_K_M.gguf", "mmproj-model-f16.gguf"),
}
QWEN, *_ = REAL


@pytest.fixture
def hub() -> Iterator[Hub]:
    repos = {}
    members = {member.name: member for member in load_pool("tiny").members}
    for repo, (name, model, projector) in REAL.items():
        assert members[name].projector is not None
        files = {model: members[name].model.read_bytes(), projector: members[name].projector.read_bytes()}
        repos[repo] = Repo({**files, "README.md": b"a card"})
    with serving(Hub(repos)) as made:
        yield made


@pytest.fixture
def home(hub: Hub, tmp_path: Path) -> dict[str, str]:
    """The environment of a user who has nothing yet."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "SYSTEMROOT") if name in os.environ}
    return {
        **kept,
        "HOME": str(tmp_path),
        "USERPROFILE": str(tmp_path),
        "HF_ENDPOINT": hub.url,
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }


def program(*args: object) -> list[str]:
    return [sys.executable, "-m", "macr_local", *(str(arg) for arg in args)]


def run(home: dict[str, str], *args: object, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        program(*args), env=home, cwd=home["HOME"], input=given, capture_output=True, text=True, timeout=120
    )


def test_from_nothing_to_an_answer(home: dict[str, str], hub: Hub, scene: Path) -> None:
    first = run(home, "ask", scene, "how many triangles are there?")
    assert first.returncode == 4
    assert 'Pool "default" needs files that are not on this machine' in first.stderr
    assert "macr-local download default" in first.stderr
    assert "--pool tiny" in first.stderr
    assert hub.asked["file"] == 0  # nothing is downloaded without being asked for

    dry = run(home, "download", "--dry-run")
    assert dry.returncode == 0
    assert "MB to download" in dry.stdout
    assert "MiniCPM-V-4_5-gguf" in dry.stdout
    assert "ggml-model-Q4_K_M.gguf" in dry.stdout
    assert hub.asked["file"] == 0

    done = run(home, "download")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "All 6 files are here and verified.")
    assert hub.asked["file"] == 6
    again = run(home, "download")
    assert (again.returncode, hub.asked["file"]) == (0, 6)
    assert "Nothing to download" in again.stdout

    answer = run(
        home, "ask", scene, "how many triangles are there?", "--strategy", "single", "--max-tokens", 32
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.strip()

    listed = json.loads(run(home, "models", "list", "--json").stdout)
    assert [one["state"] for one in listed["files"]] == ["verified"] * 6


def test_ask_downloads_where_it_was_told_so(home: dict[str, str], scene: Path) -> None:
    args = ("ask", scene, "how many?", "--strategy", "single", "--max-tokens", 16, "--yes")
    answer = run(home, *args)
    assert answer.returncode == 0, answer.stderr
    assert 'Pool "default" is not on this machine yet' in answer.stderr
    assert "to download" in answer.stderr
    assert "download" not in answer.stdout


@pytest.mark.parametrize("how", ["SIGKILL", "SIGINT"])
def test_a_download_that_was_stopped_goes_on(how: str, home: dict[str, str], hub: Hub) -> None:
    if not hasattr(signal, how):
        pytest.skip("no such signal")
    hub.repos[QWEN].files["Qwen3VL-8B-Instruct-Q4_K_M.gguf"] = random.Random(0).randbytes(40_000_000)
    hub.slow = 0.002
    with subprocess.Popen(
        program("download", "qwen3-vl-8b"), env=home, cwd=home["HOME"], stdout=-1, stderr=-1, text=True
    ) as process:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and hub.sent < 25_000_000:
            time.sleep(0.01)
        process.send_signal(getattr(signal, how))
        _, stderr = process.communicate(timeout=30)
    if how == "SIGINT":
        assert process.returncode == 130
        assert "Give the same command again to go on where it stopped" in stderr
        assert "Traceback" not in stderr
    hub.slow = 0.0
    hub.starts.clear()
    done = run(home, "download", "qwen3-vl-8b")
    assert done.returncode == 0, done.stderr
    assert max(hub.starts) >= 10_000_000  # the client takes ten million bytes at a time
    assert run(home, "models", "verify", "qwen3-vl-8b").returncode == 0


def test_a_file_that_was_changed_is_noticed_before_it_is_loaded(home: dict[str, str], scene: Path) -> None:
    assert run(home, "download").returncode == 0
    (path,) = [
        Path(one["path"])
        for one in json.loads(run(home, "models", "list", "--json").stdout)["files"]
        if one["file"] == "ggml-model-Q4_K_M.gguf"
    ]
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.resolve().write_bytes(data)

    verified = run(home, "models", "verify")
    assert verified.returncode == 5
    assert "ggml-model-Q4_K_M.gguf  DAMAGED" in verified.stdout
    assert verified.stdout.count("verified") == 5
    asked = run(home, "ask", scene, "how many?", "--strategy", "single")
    assert asked.returncode == 5
    assert "minicpm-v-4.5" in asked.stderr
    assert "was published with" in asked.stderr
    assert "macr-local download" in asked.stderr

    assert run(home, "download", "minicpm-v-4.5").returncode == 0
    assert run(home, "models", "verify").returncode == 0


def test_models_can_be_removed(home: dict[str, str], hub: Hub) -> None:
    assert run(home, "download", "internvl3.5-8b").returncode == 0
    refused = run(home, "models", "rm", "internvl3.5-8b")
    assert refused.returncode == 2
    assert "give --yes" in refused.stderr
    removed = run(home, "models", "rm", "internvl3.5-8b", "--yes")
    assert removed.returncode == 0
    assert "MB removed" in removed.stdout
    cache = Path(home["HOME"]) / ".cache" / "huggingface" / "hub"
    assert not [path for path in cache.rglob("*") if path.is_file() and path.stat().st_size > 100_000]
    assert run(home, "models", "rm", "internvl3.5-8b", "--yes").returncode == 4


def test_another_quantization_says_how_to_use_it(home: dict[str, str], hub: Hub) -> None:
    files = hub.repos[QWEN].files
    files["Qwen3VL-8B-Instruct-Q8_0.gguf"] = files["Qwen3VL-8B-Instruct-Q4_K_M.gguf"]
    done = run(home, "download", "qwen3-vl-8b", "--quant", "Q8_0")
    assert done.returncode == 0, done.stderr
    assert 'write model = "Qwen3VL-8B-Instruct-Q8_0.gguf" for qwen3-vl-8b' in done.stdout
    none = run(home, "download", "qwen3-vl-8b", "--quant", "Q5_K_M")
    assert none.returncode == 4
    assert "it has Qwen3VL-8B-Instruct-Q4_K_M.gguf (" in none.stderr


def test_offline_nothing_is_asked_of_the_hub(home: dict[str, str], hub: Hub) -> None:
    given = run({**home, "HF_HUB_OFFLINE": "1"}, "download")
    assert given.returncode == 10
    assert "HF_HUB_OFFLINE is set" in given.stderr
    assert not hub.asked


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals")
@pytest.mark.parametrize(("reply", "code"), [("y\n", 0), ("n\n", 4)])
def test_at_a_terminal_the_download_is_offered_with_its_size(
    reply: str, code: int, home: dict[str, str], hub: Hub, scene: Path
) -> None:
    import pty

    ours, theirs = pty.openpty()
    args = program("ask", scene, "how many?", "--strategy", "single", "--max-tokens", 16)
    with subprocess.Popen(
        args, env=home, cwd=home["HOME"], stdin=theirs, stdout=-1, stderr=theirs
    ) as process:
        os.close(theirs)
        shown = b""
        while b"[y/N]" not in shown:
            shown += os.read(ours, 4096)
        os.write(ours, reply.encode())
        try:
            while block := os.read(ours, 4096):
                shown += block
        except OSError:  # the other end is closed
            pass
        assert process.wait(60) == code
    os.close(ours)
    assert b"to download" in shown
    assert b"--pool tiny" in shown
    assert bool(hub.asked["file"]) == (code == 0)
