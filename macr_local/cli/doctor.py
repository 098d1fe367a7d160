"""``macr-local doctor``: what this machine has, and whether every member of a pool works on it."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from macr_local.cli.console import has_colours, paint, say, verbose_option, visible
from macr_local.cli.interrupt import Interrupts
from macr_local.errors import ConfigError, EngineError

if TYPE_CHECKING:
    from macr_local.config import PoolSpec
    from macr_local.selftest import Check

FALLBACK = "tiny"
"""The embedded pool that is tested where the default one is not downloaded."""
NO_GPU = (
    "llama.cpp computes on the CPU only: fine for the embedded pool, slow for 8B models. To use a GPU, "
    "install llama-cpp-python with its CUDA, Metal or Vulkan back end (see its README)"
)
PACKAGES = ("llama-cpp-python", "numpy", "pillow", "scipy", "huggingface-hub", "jinja2", "click")

HELP = """Check this machine and test every member of a pool.

Shows versions, devices and memory, loads the pool, and tests of each member that logits are finite, that
it sees images, that bids can be undone and kept without a trace, and how fast it is. Exits with 8 if a
member fails. Without --pool, and with the default pool not downloaded, an embedded pool is tested.
"""


@click.command(help=HELP)
@click.option("--pool", metavar="NAME|FILE", help='A pool\'s name, or FILE.toml#NAME. Default: "default".')
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@verbose_option
def doctor(pool: str | None, as_json: bool) -> None:
    """Check this machine and a pool; see `HELP`."""
    with Interrupts():
        machine = survey()
        if not as_json:
            for line in describe(machine):
                say(line)
        spec, note = _pool(pool)
        if note and not as_json:
            say(f"note       {visible(note)}")
        checks = []
        for check in run_checks(spec):
            checks.append(check)
            if not as_json:
                say(_line(check))
        ok = all(check.ok for check in checks)
        if as_json:
            report = {
                **machine,
                "pool": spec.name,
                "note": note,
                "ok": ok,
                "checks": [asdict(c) for c in checks],
            }
            say(json.dumps(report))
        if not ok:
            failed = ", ".join(dict.fromkeys(check.member for check in checks if not check.ok))
            raise EngineError(
                f"The self-test failed for {failed}", "Do not trust answers of these members here"
            )


def survey() -> dict[str, Any]:
    """Versions, llama.cpp's build, devices and memory (bytes) of this machine."""
    import psutil

    from macr_local import __version__
    from macr_local.engine import library

    memory = psutil.virtual_memory()
    return {
        "macr_local": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: _version(name) for name in PACKAGES},
        "llama_cpp": library.build(),
        "system_info": library.system_info(),
        "devices": [asdict(device) for device in library.devices()],
        "gpu": library.has_gpu(),
        "cores": psutil.cpu_count(logical=False) or psutil.cpu_count(),
        "memory_total": memory.total,
        "memory_available": memory.available,
    }


def describe(machine: dict[str, Any]) -> Iterator[str]:
    """A survey as lines of text."""
    yield f"macr-local {machine['macr_local']}, Python {machine['python']}, {machine['platform']}"
    yield "packages   " + ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
    yield f"engine     {machine['llama_cpp']}: {machine['system_info']}"
    for device in machine["devices"]:
        free = f", {_gib(device['free'])} of {_gib(device['total'])} free" if device["total"] else ""
        yield visible(f"device     {device['name']}: {device['description']} ({device['kind']}{free})")
    available, total = _gib(machine["memory_available"]), _gib(machine["memory_total"])
    yield f"memory     {available} of {total} available, {machine['cores']} cores"
    if not machine["gpu"]:
        yield f"note       {NO_GPU}"


def run_checks(spec: PoolSpec) -> Iterator[Check]:
    """Load a pool and test its members one after the other."""
    from macr_local import Pool
    from macr_local.selftest import check_member

    with Pool.open(spec) as pool:
        for member in pool.members:
            yield from check_member(member, sees_images=member.spec.projector is not None)


def _pool(name: str | None) -> tuple[PoolSpec, str]:
    """The pool to test; where none is named and the default one is absent, an embedded one, and why."""
    from macr_local.config import find_pool, load_pool

    entry = find_pool(name)
    try:
        return entry.resolve(), ""
    except ConfigError as error:
        if name is not None:
            raise
        return load_pool(FALLBACK), f"{error.found}; testing {FALLBACK} instead"


def _line(check: Check) -> str:
    mark = "ok" if check.ok else "FAILED"
    text = visible(f"{check.member} {check.name}: {check.detail}")
    coloured = paint(mark, "32" if check.ok else "31;1") if has_colours(sys.stdout) else mark
    return f"{coloured}{' ' * (11 - len(mark))}{text}"


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"
