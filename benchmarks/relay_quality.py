"""Does the relay do what its paper says? ``python benchmarks/relay_quality.py``, or with ``-m``.

The embedded pool was trained so that it is known who can know what (docs/relay-quality.md). So it can be told
not only whether the relay answers better than its members, a vote or the surest answer, but why: whether the
leader doubts where it cannot know, and whether a member that knows takes over.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.quality import methods, task
from benchmarks.quality.claims import held_out
from benchmarks.quality.report import as_dict, show
from benchmarks.quality.run import Header, Run, load, save
from benchmarks.quality.summary import with_any
from benchmarks.quality.task import Task
from benchmarks.quality.trial import Ask, Method, attempt, live, recalled, who_knows
from macr_local import Pool
from macr_local.errors import MacrError
from macr_local.settings import Sampling
from training.worlds.tiny.variant import VARIANTS, variant

QUICK = {"scenes": 60, "easy-vqa": 40}
FULL = {"scenes": 1000, "easy-vqa": 600}
SEED = 1
"""Of the sets."""


def questions(options: argparse.Namespace, tasks: str) -> Iterator[Task]:
    """The first questions of a set."""
    count = options.count or (QUICK if options.quick else FULL)[tasks]
    if tasks == "scenes":
        return task.scenes(options.split, SEED, count, variant(options.variant).language)
    return task.easy_vqa("test" if options.split == "test" else "train", SEED, count)


def run(pool: Pool, options: argparse.Namespace, tasks: str, sampling_seed: int) -> Run:
    """Put every question of a set to every method."""
    world = variant(options.variant)
    names = [member.name for member in pool.members]
    settings = replace(
        pool.spec.settings, seed=sampling_seed, sampling=Sampling(temperature=options.temperature)
    )
    chosen = methods.compared(names, settings)
    chosen += methods.windows(settings) if options.windows else []
    chosen += methods.sweep(names, settings) if options.sweep else []
    ask = recalled(pool) if options.windows or options.sweep else live(pool)
    header = Header(
        pool.spec.name,
        options.variant,
        options.training_seed,
        sampling_seed,
        options.temperature,
        tasks,
        options.split,
    )
    outcomes = []
    for number, one in enumerate(questions(options, tasks)):
        _look(ask, chosen[0], one, names)
        for method in chosen:
            outcomes.append(attempt(ask, method, one, names, who_knows(world.blind), world.language))
        if sys.stderr.isatty():
            print(f"\r{tasks}: {number + 1} questions", end="", file=sys.stderr, flush=True)
    calibrations = {name: pool.calibration(name) for name in names}
    shift = asdict(held_out(calibrations, settings.judged))
    return with_any(Run(header, outcomes, shift), names)


def _look(ask: Ask, method: Method, one: Task, names: Sequence[str]) -> None:
    """Let everyone see the picture first: the encoding is kept, and nobody's time shall have it."""
    for name in names:
        ask(one, replace(method, leader=name, settings=replace(method.settings, max_tokens=1)))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a fixed part of both sets, under a minute")
    parser.add_argument("--json", action="store_true", help="everything as JSON, on stdout")
    parser.add_argument("--pool", default="tiny", help="a pool's name or file")
    parser.add_argument("--variant", choices=VARIANTS, default="friendly", help="the world it learnt in")
    parser.add_argument("--training-seed", type=int, default=0, help="it was trained with; a label")
    parser.add_argument("--tasks", choices=FULL, action="append", help="only this set (repeatable)")
    parser.add_argument("--split", choices=("test", "tuning"), default="test")
    parser.add_argument("--count", type=int, help="questions of each set")
    parser.add_argument("--windows", action="store_true", help="other windows and confidences too; greedy")
    parser.add_argument("--sweep", action="store_true", help="every other setting of the relay; greedy")
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--sampling-seed", type=int, action="append", help="of the draws (repeatable)")
    parser.add_argument("--save", type=Path, help="keep every outcome in this file")
    parser.add_argument("--load", type=Path, nargs="+", help="ask nothing; report what was kept")
    options = parser.parse_args(arguments)
    if options.load:
        runs = [kept for path in options.load for kept in load(path)]
    else:
        if options.temperature and (options.windows or options.sweep):
            parser.error("--windows and --sweep recall what was written, so they need temperature 0")
        try:
            with Pool.open(options.pool) as pool:
                runs = [
                    run(pool, options, tasks, seed)
                    for tasks in options.tasks or FULL
                    for seed in options.sampling_seed or [0]
                ]
        except MacrError as error:
            sys.exit(f"relay_quality: {error.found}\n  {error.fix}")
        if options.save:
            save(options.save, runs)
    if options.json:
        print(json.dumps(as_dict(runs), indent=1, allow_nan=False))
    else:
        show(runs)


if __name__ == "__main__":
    main()
