"""What a loaded model makes of its specification."""

from __future__ import annotations

from pathlib import Path

import pytest

from macr_local.config import MemberSpec
from macr_local.engine.cores import CORES
from macr_local.engine.member import LlamaMember
from tests.oracles.gguf_models import write_model


@pytest.mark.parametrize(
    ("threads", "used", "warns"),
    [(1000, CORES.total, True), (CORES.total, CORES.total, False), (1, 1, False), (None, CORES.total, False)],
)
def test_more_threads_than_cores_are_not_used_and_a_warning_says_so(
    threads: int | None, used: int, warns: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    member = LlamaMember(MemberSpec("greedy", write_model(tmp_path / "m.gguf", "llama"), threads=threads))
    member.close()
    assert member.info.threads == used
    said = [record.getMessage() for record in caplog.records if record.name == "macr_local"]
    wanted = f"greedy: threads is 1000; {CORES.total} are used, as many as there are cores"
    assert said == ([wanted] if warns else [])


@pytest.mark.parametrize(("asked", "given"), [(1, 256), (16, 256), (256, 256), (257, 512)])
def test_a_context_is_rounded_up_to_256_cells(asked: int, given: int, tmp_path: Path) -> None:
    member = LlamaMember(MemberSpec("m", write_model(tmp_path / "m.gguf", "llama"), n_ctx=asked, threads=1))
    member.close()
    assert member.info.n_ctx == given
