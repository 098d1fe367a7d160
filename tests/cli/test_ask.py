"""``ask`` on the embedded pool that relays often."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from macr_local import Pool, Prompt, Relay
from macr_local.cli.program import cli
from macr_local.errors import CalibrationError
from macr_local.relay.answer import collect
from macr_local.relay.events import Finished, Text
from macr_local.relay.trace import decode, read_trace
from macr_local.strategies import STRATEGIES

QUESTION = "how many white circles are there?"
MEMBERS = ["tiny-qwen3vl", "tiny-internvl", "tiny-minicpmv"]


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MACR_LOCAL_MODELS", "MACR_LOCAL_POOL", "MACR_LOCAL_DEBUG", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("platformdirs.user_config_path", lambda *_, **__: tmp_path / "config")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.chdir(tmp_path)


def ask(*args: str | Path, **more: Any) -> Result:
    return CliRunner().invoke(cli, ["ask", "--pool", "tiny", *map(str, args)], **more)


def answer(*args: str | Path, **more: Any) -> dict[str, Any]:
    result = ask("--json", *args, **more)
    assert result.exit_code == 0, result.stderr
    (line,) = result.stdout.splitlines()
    value: dict[str, Any] = json.loads(line)
    return value


def test_stdout_holds_the_answer_and_nothing_else(tiny: Pool, scene: Path) -> None:
    expected = Relay(tiny).ask(Prompt.of(QUESTION, str(scene)))
    result = ask(scene, QUESTION)
    assert result.exit_code == 0
    assert result.stdout == expected.text + "\n"
    tokens = sum(segment.tokens for segment in expected.segments)
    assert result.stderr.startswith(f"{tokens} tokens, {expected.relays} relay")
    assert expected.relays > 0


def test_json_is_the_whole_answer(tiny: Pool, scene: Path) -> None:
    expected = Relay(tiny).ask(Prompt.of(QUESTION, str(scene))).to_dict()
    found = answer(scene, QUESTION)
    timeless = {key for key in expected if key not in ("seconds", "counters")}
    assert {key: found[key] for key in timeless} == {
        key: json.loads(json.dumps(expected[key])) for key in timeless
    }
    assert list(found["counters"]["members"]) == MEMBERS


def test_json_lines_are_the_events(scene: Path) -> None:
    result = ask("--jsonl", scene, QUESTION)
    events = [decode(json.loads(line)) for line in result.stdout.splitlines()]
    assert isinstance(events[-1], Finished)
    text = "".join(event.text for event in events if isinstance(event, Text) and not event.thought)
    assert text == answer(scene, QUESTION)["text"]
    assert result.stderr == ""


def test_a_trace_holds_the_same_answer_and_what_it_was_asked_with(
    tmp_path: Path, tiny: Pool, scene: Path
) -> None:
    path = tmp_path / "trace.jsonl"
    result = ask("--trace", path, "--window", "4", scene, QUESTION)
    trace = read_trace(path)
    assert trace.complete
    assert collect(trace, trace.header.settings).text + "\n" == result.stdout
    assert (trace.header.question, trace.header.members) == (QUESTION, tuple(MEMBERS))
    assert trace.header.settings.window == 4
    assert trace.header.calibrations == {m: tiny.calibration(m).at(4) for m in MEMBERS}
    assert trace.header.images == (Prompt.of(QUESTION, str(scene)).images[0].sha256,)


def test_a_trace_that_cannot_be_written_is_refused_before_anything_is_loaded(
    tmp_path: Path, scene: Path
) -> None:
    result = ask("--trace", tmp_path / "no" / "folder", scene, QUESTION)
    assert result.exit_code == 4
    assert "cannot be written: No such file" in result.stderr


def test_an_image_can_come_from_stdin(scene: Path) -> None:
    from_stdin = ask("-", QUESTION, input=scene.read_bytes())
    assert from_stdin.stdout == ask(scene, QUESTION).stdout


def test_what_came_from_stdin_is_named_in_an_error() -> None:
    result = ask("-", QUESTION, input=b"not an image")
    assert result.exit_code == 3
    assert "<stdin>" in result.stderr


def test_one_member_can_answer_alone(scene: Path) -> None:
    for leader in MEMBERS:
        found = answer("--strategy", "single", "--leader", leader, scene, QUESTION)
        assert [segment["member"] for segment in found["segments"]] == [leader]
    first = answer("--strategy", "single", scene, QUESTION)
    assert [segment["member"] for segment in first["segments"]] == MEMBERS[:1]


@pytest.mark.parametrize("strategy", ["vote", "best-of"])
def test_a_choice_shows_every_answer_to_programs_and_one_to_people(scene: Path, strategy: str) -> None:
    found = answer("--strategy", strategy, scene, QUESTION)
    assert [told["member"] for told in found["answers"]] == MEMBERS
    for told in found["answers"]:
        alone = answer("--strategy", "single", "--leader", told["member"], scene, QUESTION)
        assert (told["text"], told["tokens"]) == (alone["text"], alone["segments"][0]["tokens"])
    taken = found["chosen"]["member"]
    assert found["text"] == found["answers"][MEMBERS.index(taken)]["text"]
    assert found["counters"]["total"]["work_ratio"] == 1.0
    result = ask("--strategy", strategy, scene, QUESTION)
    assert result.stdout == found["text"] + "\n"
    assert f"macr-local: {taken} is chosen" in result.stderr


@pytest.mark.parametrize("strategy", ["vote", "best-of"])
def test_a_trace_of_a_choice_gives_its_answer_again(tmp_path: Path, scene: Path, strategy: str) -> None:
    path = tmp_path / "trace.jsonl"
    lines = ask("--jsonl", "--trace", path, "--strategy", strategy, scene, QUESTION)
    trace = read_trace(path)
    assert [decode(json.loads(line)) for line in lines.stdout.splitlines()] == list(trace)
    again = collect(trace, trace.header.settings)
    expected = answer("--strategy", strategy, scene, QUESTION)
    assert json.loads(json.dumps(again.to_dict())) == {
        **expected,
        "seconds": again.seconds,
        "counters": again.to_dict()["counters"],
    }


def test_the_surest_answer_needs_calibrations_and_a_vote_does_not(scene: Path) -> None:
    asked = ("--window", "400", scene, QUESTION)  # longer than any reference answer
    refused = ask("--strategy", "best-of", *asked)
    assert (refused.exit_code, refused.stdout) == (CalibrationError.exit_code, "")
    assert "windows of 400 tokens" in refused.stderr
    assert [told["z"] for told in answer("--strategy", "vote", *asked)["answers"]] == [None] * 3


def test_members_can_be_chosen(scene: Path) -> None:
    chosen = [MEMBERS[2], MEMBERS[0]]
    found = answer("--members", f"{chosen[0]}, {chosen[1]}", scene, QUESTION)
    assert list(found["counters"]["members"]) == chosen


def test_options_reach_the_relay(scene: Path) -> None:
    found = answer(
        "--max-tokens", "7", "--seed", "3", "--temperature", "0.5", "--no-prune", "--bids", "parallel",
        "--initiation", MEMBERS[1], "--stop", "###", scene, QUESTION,
    )  # fmt: skip
    settings = found["settings"]
    assert found["finish_reason"] == "max_tokens"
    assert (settings["max_tokens"], settings["seed"], settings["prune"], settings["bids"]) == (
        7,
        3,
        False,
        "parallel",
    )
    assert (settings["sampling"]["temperature"], settings["stop"]) == (0.5, ["###"])
    assert found["segments"][0]["member"] == MEMBERS[1]


def test_every_strategy_can_be_named() -> None:
    result = CliRunner().invoke(cli, ["ask", "--help"])
    assert f"[{'|'.join(STRATEGIES)}]" in result.stdout


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["--json", "--jsonl"], 2, "--json and --jsonl exclude each other"),
        (["--leader", "tiny-qwen3vl"], 2, "--initiation"),
        (["--threshold", "low"], 2, "'low' is not a valid float"),
        (["--window", "0"], 4, "window is 0\n  Use 1 or more"),
        (["--initiation", "nobody"], 4, '"nobody"'),
        (["--members", "tiny-qwen"], 4, 'Perhaps "tiny-qwen3vl" is meant'),
        (["--members", ","], 4, "at least one"),
        (["--pool", "tinny"], 4, 'Perhaps "tiny" is meant'),
        (["absent.png"], 3, "absent.png"),
    ],
)
def test_a_mistake_gives_one_error_and_its_exit_code(
    scene: Path, args: list[str], code: int, message: str
) -> None:
    images = [] if args == ["absent.png"] else [scene]
    result = ask(*args, *images, QUESTION)
    assert result.exit_code == code
    assert result.stdout == ""
    assert message in result.stderr
    assert sum("rror: " in line for line in result.stderr.splitlines()) == 1


def test_a_prompt_that_does_not_fit_is_refused_with_its_size(scene: Path) -> None:
    result = ask(scene, "how many? " * 400)
    assert result.exit_code == 6
    assert "512" in result.stderr


def test_without_downloads_the_default_pool_says_how_to_go_on(scene: Path) -> None:
    result = CliRunner().invoke(cli, ["ask", str(scene), QUESTION])
    assert result.exit_code == 4
    assert "  Download them: macr-local download default" in result.stderr
    assert "--pool tiny" in result.stderr


def test_verbose_tells_what_happens_on_stderr(scene: Path) -> None:
    result = ask("--verbose", scene, QUESTION)
    assert "round 0" in result.stderr
    assert " bids z " in result.stderr
    assert result.stdout == ask(scene, QUESTION).stdout
