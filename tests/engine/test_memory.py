"""What a pool will need is known before it is loaded, to the byte where llama.cpp says what it allocates."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from macr_local import Pool
from macr_local.config import ImageLimits, KvType, MemberSpec, find_pool
from macr_local.engine import library, memory
from macr_local.engine.context import _OUTPUTS
from macr_local.engine.files import check_model, check_projector
from macr_local.engine.member import LlamaMember
from macr_local.errors import CapacityError
from tests.oracles.architectures import ARCHITECTURES
from tests.oracles.gguf_models import write_model

MIB, GIB = 1 << 20, 1 << 30


class Allocated(logging.Handler):
    """What llama.cpp logs of its buffers, in MiB; of several contexts of one load, the last."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())

    def of(self, what: str) -> float:
        found: dict[str, float] = {}
        for line in self.lines:
            if match := re.search(rf"^\s*(\w+): +CPU {what} buffer size = +([\d.]+) MiB", line):
                # A cache of two kinds of layers reports one size for each.
                found[match[1]] = found.get(match[1], 0) + float(match[2])
            elif line.startswith("llama_context: constructing"):
                found.clear()
        return sum(found.values())


@contextmanager
def allocations() -> Iterator[Allocated]:
    handler, level = Allocated(), library.logger.level
    library.logger.addHandler(handler)
    library.logger.setLevel(logging.DEBUG)
    try:
        yield handler
    finally:
        library.logger.removeHandler(handler)
        library.logger.setLevel(level)


def planned(spec: MemberSpec) -> memory.MemberMemory:
    header = check_model(spec)
    return memory.plan([(spec, header, check_projector(spec, header))])[0]


def load(spec: MemberSpec) -> Allocated:
    with allocations() as allocated:
        LlamaMember(spec).close()
    return allocated


# Against what llama.cpp allocates.


@pytest.mark.parametrize("name", sorted(ARCHITECTURES))
@pytest.mark.parametrize("n_ctx", [16, 256, 1000])
def test_the_cache_of_every_kind_of_memory_is_exact(name: str, n_ctx: int, tmp_path: Path) -> None:
    spec = MemberSpec(name, write_model(tmp_path / "m.gguf", name), n_ctx=n_ctx, threads=1)
    allocated = load(spec)
    assert planned(spec).kv / MIB == pytest.approx(allocated.of("KV") + allocated.of("RS"), abs=0.011)


@pytest.mark.parametrize("kv_type", ["f16", "q8_0", "q4_0"])
def test_the_cache_of_every_kv_type_is_exact(kv_type: KvType, tmp_path: Path) -> None:
    path = write_model(tmp_path / "m.gguf", "llama")
    spec = MemberSpec("llama", path, n_ctx=4096, kv_type=kv_type, threads=1)
    assert planned(spec).kv / MIB == pytest.approx(load(spec).of("KV"), abs=0.006)


def test_a_real_model_with_sliding_windows_is_planned(gemma_file: Path) -> None:
    spec = MemberSpec("gemma", gemma_file, n_ctx=2048, n_batch=256, threads=1)
    plan, allocated = planned(spec), load(spec)
    assert plan.kv / MIB == pytest.approx(allocated.of("KV"), abs=0.011)
    computed = allocated.of("compute") + allocated.of("output")
    assert computed <= plan.compute / MIB <= 3 * computed
    assert any(f"= {plan.weights / MIB:8.2f} MiB" in line for line in allocated.lines if "CPU_Mapped" in line)


def test_the_weights_of_a_pool_are_its_files() -> None:
    for spec in find_pool("tiny").resolve().members:
        plan = planned(spec)
        assert spec.projector is not None
        assert 0.95 < plan.weights / spec.model.stat().st_size <= 1
        assert 0.95 < plan.projector / spec.projector.stat().st_size <= 1
        assert plan.total == plan.weights + plan.projector + plan.kv + plan.compute + plan.tables
        assert plan.kv == 512 * 4 * 2 * 2 * 32 * 2


def test_the_rows_of_logits_are_those_of_the_context() -> None:
    assert memory._OUTPUT_ROWS == _OUTPUTS


def test_larger_images_need_more_memory_to_encode() -> None:
    dynamic, tiled, _ = find_pool("tiny").resolve().members
    small, large = ImageLimits(square=64), ImageLimits(max_pixels=1_600_000)

    def compute(spec: MemberSpec, images: ImageLimits) -> int:
        return planned(replace(spec, images=images)).compute

    assert compute(dynamic, large) > 100 * MIB + compute(dynamic, small)
    assert compute(tiled, large) == compute(tiled, small), "tiles have one size, whatever the image's"


# Against what a process grows by.

_GROWTH = """
import json, sys
from pathlib import Path
import psutil
from macr_local import Prompt, Sampling
from macr_local.config import MemberSpec, find_pool
from macr_local.engine import memory
from macr_local.engine.files import check_model, check_projector
from macr_local.engine.member import LlamaMember

def use(spec, images):
    member = LlamaMember(spec)
    # Words enough for one full batch of a text model: buffers count once they are written to.
    prompt = Prompt.of("a word " * (5 if images else 400), images)
    member.begin(prompt, Sampling(), lambda: False)
    member.accept(member.propose(lambda: 0.5))
    member.propose(lambda: 0.5)
    return member

model, picture = sys.argv[1:]
tiny = find_pool("tiny").resolve().members
specs = [MemberSpec("gemma", Path(model), n_ctx=4096, threads=1)] if model else tiny
images = [] if model else [picture]
# The libraries and what they keep belong to no member.
use(tiny[0], [picture]).close()
parts = [(spec, header := check_model(spec), check_projector(spec, header)) for spec in specs]
for _, header, _ in parts:
    header.tokens.repeated
before = psutil.Process().memory_info().rss
members = [use(spec, images) for spec in specs]
grown = psutil.Process().memory_info().rss - before
print(json.dumps([sum(member.total for member in memory.plan(parts)), grown]))
"""


@pytest.mark.parametrize("which", ["tiny", "gemma"])
def test_the_plan_is_within_a_factor_of_two_of_what_a_process_grows_by(
    which: str, scene: Path, request: pytest.FixtureRequest
) -> None:
    model = str(request.getfixturevalue("gemma_file")) if which == "gemma" else ""
    run = subprocess.run(
        [sys.executable, "-c", _GROWTH, model, str(scene)], capture_output=True, text=True, check=True
    )
    estimate, grown = json.loads(run.stdout)
    assert grown / 2 <= estimate <= grown * 2, f"{estimate / MIB:.1f} MiB planned, {grown / MIB:.1f} grown"


# What does not fit.


def test_a_pool_that_does_not_fit_is_refused_with_every_members_need() -> None:
    pool = [
        memory.MemberMemory("small", 100 * MIB, 0, 20 * MIB, 3 * MIB),
        memory.MemberMemory("large", 5 * GIB, GIB, GIB // 2, GIB // 4),
    ]
    total = sum(member.total for member in pool)
    memory.check(pool, total)
    with pytest.raises(CapacityError) as raised:
        memory.check(pool, total - 1)
    found = raised.value.found
    assert found == (
        "The pool needs about 6.9 GiB of memory and 6.9 GiB are free: "
        "large 6.8 GiB (weights 5.0 GiB, projector 1.0 GiB, KV cache 512.0 MiB, computation 256.0 MiB); "
        "small 123.0 MiB (weights 100.0 MiB, KV cache 20.0 MiB, computation 3.0 MiB)"
    )
    assert "n_ctx" in raised.value.fix


def test_a_context_that_no_machine_has_is_refused_before_anything_is_loaded() -> None:
    spec = find_pool("tiny").resolve()
    huge = replace(spec, members=tuple(replace(member, n_ctx=2_000_000_000) for member in spec.members))
    needs = r"tiny-internvl [\d.,]+ GiB .*KV cache 1,907\.3 GiB"
    with allocations() as allocated, pytest.raises(CapacityError, match=needs):
        Pool.open(huge)
    assert not any("load_tensors" in line for line in allocated.lines)


def test_an_empty_plan_fits_everywhere() -> None:
    memory.check([], 0)


# What there is.


def group(folder: Path, limit: str, used: int, reclaimable: int, version: int = 2) -> None:
    names = ("memory.max", "memory.current", "inactive_file")
    if version == 1:
        names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / names[0]).write_text(f"{limit}\n")
    (folder / names[1]).write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 5\n{names[2]} {reclaimable}\n")


def in_group(root: Path, line: str) -> Path:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(line)
    return root / "sys/fs/cgroup"


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> int:
    real = psutil.virtual_memory()
    monkeypatch.setattr(psutil, "virtual_memory", lambda: real._replace(available=10 * GIB))
    return 10 * GIB


def test_without_groups_there_is_what_the_system_has(tmp_path: Path, free: int) -> None:
    assert memory.available_memory(tmp_path) == free


def test_the_tightest_group_counts(tmp_path: Path, free: int) -> None:
    groups = in_group(tmp_path, "0::/user/app\n")
    group(groups / "user/app", "max", 5 * GIB, 0)
    assert memory.available_memory(tmp_path) == free
    group(groups / "user", str(8 * GIB), 3 * GIB, GIB)
    assert memory.available_memory(tmp_path) == 6 * GIB
    group(groups / "user/app", str(2 * GIB), GIB, 0)
    assert memory.available_memory(tmp_path) == GIB
    group(groups / "user/app", str(2 * GIB), 3 * GIB, 0)
    assert memory.available_memory(tmp_path) == 0
    (groups / "user/app/memory.max").write_text("nonsense")
    assert memory.available_memory(tmp_path) == 6 * GIB


def test_groups_of_version_1_count(tmp_path: Path, free: int) -> None:
    groups = in_group(tmp_path, "3:cpu:/x\n9:hugetlb,memory:/docker/abc\n0::/\n") / "memory"
    group(groups / "docker/abc", str(4 * GIB), GIB, 0, version=1)
    assert memory.available_memory(tmp_path) == 3 * GIB
    group(groups / "docker/abc", str(1 << 63), GIB, 0, version=1)
    assert memory.available_memory(tmp_path) == free


def test_this_machine_has_some_memory() -> None:
    assert 0 < memory.available_memory() <= psutil.virtual_memory().total
