"""Runs on the tiny pool: what is kept, what is asked again, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from macr_local import Pool
from macr_local.cli.main import cli
from macr_local.errors import DataError
from macr_local.evaluation.item import Item
from macr_local.evaluation.method import methods
from macr_local.evaluation.run import read, trace_path
from macr_local.evaluation.runner import Evaluation, Plan, Progress
from macr_local.evaluation.selection import Selection
from macr_local.relay.trace import read_trace
from macr_local.settings import RelaySettings, Sampling
from macr_local.tiny.scenes.examination import examination


def scene_items(count: int) -> list[Item]:
    items = []
    for one in islice(examination("tuning", 3, count), count):
        png = BytesIO()
        one.image.save(png, "PNG")
        items.append(
            Item(
                id=f"{one.number}/a b",
                where=f"scene {one.number}",
                question=one.question.text,
                images=(png.getvalue(),),
                answer=one.answer,
                answer_type="text",
                groups={"family": (one.question.family,)},
                row={"n": one.number, "odd": float("nan")},
            )
        )
    return items


@dataclass
class Scenes:
    """A data set in memory."""

    all: list[Item]
    name: str = "scenes"
    version: int = 1

    def items(self) -> Iterator[Item]:
        return iter(self.all)

    def ids(self) -> Iterator[str]:
        return (item.id for item in self.all)

    def identity(self) -> Mapping[str, Any]:
        return {"version": self.version}


@pytest.fixture(scope="module")
def items() -> list[Item]:
    return scene_items(6)


QUIET = Plan(ending="")


def asked(
    pool: Pool,
    data: Scenes,
    out: Path,
    names: tuple[str, ...] = ("macr",),
    plan: Plan = QUIET,
    settings: RelaySettings | None = None,
    stop_after: int | None = None,
) -> list[Progress]:
    """Evaluate, perhaps until some answers are there; what was told of it."""
    seen: list[Progress] = []
    chosen = methods(names, [member.name for member in pool.members])
    evaluation = Evaluation(pool, data, chosen, settings or pool.spec.settings, plan, out)

    def told(progress: Progress) -> None:
        seen.append(progress)
        if stop_after is not None and len(seen) > stop_after:
            evaluation.stop()

    evaluation.run(told)
    return seen


def lines(out: Path, method: str = "macr") -> list[dict[str, Any]]:
    path = out / "scenes" / method / "answers.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def plain(out: Path, method: str = "macr") -> list[tuple[str, int, str]]:
    return sorted((row["item"]["id"], row["seed"], row["text"]) for row in lines(out, method))


def test_each_method_answers_each_item_once(tiny: Pool, items: list[Item], tmp_path: Path) -> None:
    seen = asked(tiny, Scenes(items), tmp_path, ("macr", "io:tiny-qwen3vl", "vote"))
    assert [progress.done for progress in seen] == list(range(19))
    assert {progress.total for progress in seen} == {18}
    for method in ("macr", "single_tiny-qwen3vl", "vote"):
        assert [row["item"]["id"] for row in lines(tmp_path, method)] == [item.id for item in items]
        assert all(row["text"] and not row["error"] for row in lines(tmp_path, method))


def test_an_answer_is_the_pool_s_own(tiny: Pool, items: list[Item], tmp_path: Path) -> None:
    from macr_local import Prompt, Relay

    asked(tiny, Scenes(items), tmp_path)
    relay = Relay(tiny)
    for item, row in zip(items, lines(tmp_path), strict=True):
        answer = relay.ask(Prompt.of(item.question, list(item.images)))
        assert row["text"] == answer.text
        assert row["relays"] == answer.relays
        total = sum(each["committed"] + each["discarded"] for each in row["counters"].values())
        assert total == answer.total.committed + answer.total.discarded


def test_a_trace_of_each_answer_can_be_read(tiny: Pool, items: list[Item], tmp_path: Path) -> None:
    asked(tiny, Scenes(items), tmp_path)
    for row in lines(tmp_path):
        trace = read_trace(trace_path(tmp_path / "scenes" / "macr", row["item"]["id"], 0))
        assert trace.complete
        assert trace.header.question == row["item"]["question"]


def test_the_same_again_asks_nothing(tiny: Pool, items: list[Item], tmp_path: Path) -> None:
    asked(tiny, Scenes(items), tmp_path)
    before = (tmp_path / "scenes" / "macr" / "answers.jsonl").read_bytes()
    seen = asked(tiny, Scenes(items), tmp_path)
    assert [(p.done, p.resumed) for p in seen] == [(6, 6)]
    assert (tmp_path / "scenes" / "macr" / "answers.jsonl").read_bytes() == before


@pytest.mark.parametrize("after", [0, 1, 3, 5])
def test_a_stopped_run_goes_on_to_the_answers_of_one_that_was_not(
    tiny: Pool, items: list[Item], tmp_path: Path, after: int
) -> None:
    hot = replace(tiny.spec.settings, sampling=Sampling(temperature=1.0))
    plan = Plan(seeds=(0, 1), ending="")
    asked(tiny, Scenes(items), tmp_path / "straight", plan=plan, settings=hot)
    asked(tiny, Scenes(items), tmp_path / "stopped", plan=plan, settings=hot, stop_after=after)
    assert len(lines(tmp_path / "stopped")) == after
    asked(tiny, Scenes(items), tmp_path / "stopped", plan=plan, settings=hot)
    assert plain(tmp_path / "stopped") == plain(tmp_path / "straight")


def test_a_torn_last_line_is_asked_again(tiny: Pool, items: list[Item], tmp_path: Path) -> None:
    asked(tiny, Scenes(items), tmp_path)
    path = tmp_path / "scenes" / "macr" / "answers.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    assert asked(tiny, Scenes(items), tmp_path)[0].resumed == 5
    assert plain(tmp_path) == sorted(plain(tmp_path))
    assert len(lines(tmp_path)) == 6


def test_a_damaged_line_is_named(tiny: Pool, items: list[Item], tmp_path: Path) -> None:
    asked(tiny, Scenes(items), tmp_path)
    path = tmp_path / "scenes" / "macr" / "answers.jsonl"
    rows = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([rows[0], rows[1][:50], *rows[2:]]) + b"\n")
    with pytest.raises(DataError, match=r"answers.jsonl, line 2 is damaged"):
        asked(tiny, Scenes(items), tmp_path)


def test_seeds_are_asked_apart_and_greedy_ones_would_be_alike(
    tiny: Pool, items: list[Item], tmp_path: Path
) -> None:
    hot = replace(tiny.spec.settings, sampling=Sampling(temperature=1.5), max_tokens=40)
    asked(tiny, Scenes(items), tmp_path, plan=Plan(seeds=(0, 1, 2), ending=""), settings=hot)
    texts = {seed: [text for _, at, text in plain(tmp_path) if at == seed] for seed in (0, 1, 2)}
    assert texts[0] != texts[1] != texts[2]


def test_a_bad_item_is_kept_as_failed_and_asked_again(tiny: Pool, items: list[Item], tmp_path: Path) -> None:
    broken = replace(items[1], images=(b"no picture at all",))
    nothing = replace(items[2], problem="it has no question")
    data = Scenes([items[0], broken, nothing, *items[3:]])
    asked(tiny, data, tmp_path)
    errors = {row["item"]["id"]: row["error"] for row in lines(tmp_path)}
    assert [bool(error) for error in errors.values()] == [False, True, True, False, False, False]
    assert errors[items[2].id] == "it has no question"
    seen = asked(tiny, Scenes(items), tmp_path)
    assert (seen[0].resumed, seen[-1].done) == (4, 6)
    assert sum(not record.error for record in read(tmp_path / "scenes" / "macr")) == 6


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"settings": {"window": 3}}, "settings.window 2, not 3"),
        ({"settings": {"threshold": -1.0}}, "settings.threshold -0.3, not -1.0"),
        ({"plan": Plan(ending="Be brief.")}, "asked.ending"),
        ({"version": 2}, "data.version 1, not 2"),
    ],
)
def test_a_run_goes_on_only_as_it_began(
    tiny: Pool, items: list[Item], tmp_path: Path, change: dict[str, Any], named: str
) -> None:
    asked(tiny, Scenes(items[:2]), tmp_path)
    settings = replace(tiny.spec.settings, **change.get("settings", {}))
    data = Scenes(items[:2], version=change.get("version", 1))
    with pytest.raises(DataError, match=named):
        asked(tiny, data, tmp_path, plan=change.get("plan", QUIET), settings=settings)
    assert len(lines(tmp_path)) == 2


def test_more_items_and_seeds_may_be_asked_later(tiny: Pool, items: list[Item], tmp_path: Path) -> None:
    few = Plan(selection=Selection(limit=2), ending="")
    asked(tiny, Scenes(items), tmp_path, plan=few)
    first = {row["item"]["id"] for row in lines(tmp_path)}
    asked(tiny, Scenes(items), tmp_path, plan=replace(few, selection=Selection(limit=4), seeds=(0, 7)))
    assert first < {row["item"]["id"] for row in lines(tmp_path)}
    assert len(lines(tmp_path)) == 8


def test_shards_together_are_the_whole(tiny: Pool, items: list[Item], tmp_path: Path) -> None:
    for part in (1, 2, 3, 4):
        asked(tiny, Scenes(items), tmp_path, plan=Plan(selection=Selection(shard=(part, 4)), ending=""))
    records = list(read(tmp_path / "scenes" / "macr"))
    assert sorted(record.item.id for record in records) == sorted(item.id for item in items)
    assert len(list((tmp_path / "scenes" / "macr").glob("answers-*of4.jsonl"))) == 4


def test_a_folder_that_cannot_be_written_is_one_clear_line(
    tiny: Pool, items: list[Item], tmp_path: Path
) -> None:
    (tmp_path / "scenes").write_text("a file, where a folder is to be")
    with pytest.raises(DataError, match=r"scenes.* cannot be written \("):
        asked(tiny, Scenes(items), tmp_path)


def test_a_full_disk_ends_a_run_with_what_was_written(
    tiny: Pool, items: list[Item], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from macr_local import linefile

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    asked(tiny, Scenes(items), tmp_path, stop_after=2)
    with monkeypatch.context() as patch:
        patch.setattr(linefile.os, "fsync", full)
        with pytest.raises(DataError, match=r"No space left on device.*goes on where it stopped"):
            asked(tiny, Scenes(items), tmp_path)
    assert len(lines(tmp_path)) == 2
    assert asked(tiny, Scenes(items), tmp_path)[0].resumed == 2


@pytest.mark.parametrize("size", [100, 3000])
def test_a_disk_that_is_full_in_the_middle_of_a_trace_is_one_clear_line(
    size: int, tiny: Pool, items: list[Item], tmp_path: Path
) -> None:
    resource = pytest.importorskip("resource")  # not on Windows
    asked(tiny, Scenes(items), tmp_path, stop_after=1)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        with pytest.raises(DataError, match=r"traces.*jsonl cannot be written \(.*goes on where it stopped"):
            asked(tiny, Scenes(items), tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert asked(tiny, Scenes(items), tmp_path)[0].resumed == 1


def test_two_items_of_one_id_are_refused(tiny: Pool, items: list[Item], tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f'Two items of scenes have the id "{items[0].id}"'):
        asked(tiny, Scenes([items[0], items[0]]), tmp_path)
    assert not list(tmp_path.iterdir())  # nothing that would bind a run on the mended data


def test_a_data_set_without_a_question_is_refused(tiny: Pool, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="scenes holds no question"):
        asked(tiny, Scenes([]), tmp_path)


def test_two_data_sets_of_one_name_are_refused_before_anything_is_loaded(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.jsonl").write_text('{"question": "what?"}\n')
    args = ["eval", *(str(tmp_path / one / "mine.jsonl") for one in ("a", "b", "a"))]
    given = CliRunner().invoke(
        cli, [*args, "--pool", "tiny", "--strategy", "macr", "--out", str(tmp_path / "o")]
    )
    assert given.exit_code == 2
    assert '2 data sets have the name "mine"' in given.stderr
    assert not (tmp_path / "o").exists()
