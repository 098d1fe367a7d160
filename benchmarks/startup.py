"""How long the command line takes until it says something: ``python -m benchmarks.startup``."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from benchmarks.report import table, verdict

RUNS = 11
TARGET = 0.3
"""Seconds for the help, so that it feels immediate."""
COMMANDS = {
    "python, nothing else": ["-c", "pass"],
    "macr-local --help": ["-m", "macr_local", "--help"],
    "macr-local ask --help": ["-m", "macr_local", "ask", "--help"],
    "import macr_local": ["-c", "import macr_local"],
}


def main() -> None:
    seconds: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(RUNS):
        for name, arguments in COMMANDS.items():
            began = time.perf_counter()
            subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
            seconds[name].append(time.perf_counter() - began)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    table(
        ["seconds", "median", "least"],
        [[name, f"{medians[name]:.3f}", f"{min(values):.3f}"] for name, values in seconds.items()],
    )
    verdict({f"macr-local --help in less than {TARGET} s": medians["macr-local --help"] < TARGET})


if __name__ == "__main__":
    main()
