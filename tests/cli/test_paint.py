"""What a stream of events looks like on a terminal, in a pipe, and as JSON."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from macr_local.cli.console import has_colours
from macr_local.cli.paint import JsonPainter, LinesPainter, TextPainter, describe
from macr_local.relay.events import (
    Answered,
    Bid,
    BidOpened,
    Chosen,
    Event,
    Finished,
    MemberFailed,
    Relayed,
    Started,
    Text,
)

MEMBERS = ("a", "b")
STARTED = Started(MEMBERS, {"a": 5, "b": 6}, {"a": 16, "b": 16}, 0.5)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _no_colour_wishes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


def painted(
    events: list[Event], out: io.StringIO | None = None, err: io.StringIO | None = None, **options: bool
) -> tuple[str, str]:
    out, err = out or io.StringIO(), err or io.StringIO()
    painter = TextPainter(out, err, MEMBERS, **options)
    for event in events:
        painter.event(event)
    painter.close()
    return out.getvalue(), err.getvalue()


def test_in_a_pipe_the_answer_is_bare_text_with_a_line_end() -> None:
    out, err = painted([STARTED, Text("a", "one "), Text("b", "two"), Finished("end", 2, 1.0)])
    assert out == "one two\n"
    assert err == "2 tokens, 0 relays, 0 handovers, 1.0 s\n"


def test_an_answer_that_ends_its_line_gets_no_second_line_end() -> None:
    assert painted([Text("a", "one\n"), Finished("end", 1, 1.0)])[0] == "one\n"


def test_the_closing_line_counts_relays_and_changes_of_the_leader() -> None:
    events: list[Event] = [
        BidOpened(0, None, 0, "initiation"),
        Relayed(0, None, "a", 0.1),
        BidOpened(1, "a", 5, "confidence"),
        Relayed(1, "a", "a", 0.1),
        BidOpened(2, "a", 9, "confidence"),
        Relayed(2, "a", "b", 0.1),
        Finished("max_tokens", 12, 2.34),
    ]
    assert painted(events)[1] == "12 tokens, 2 relays, 1 handover, 2.3 s (max_tokens)\n"


def test_on_a_terminal_each_member_has_its_colour_and_the_legend_names_it() -> None:
    out, err = painted([STARTED, Text("a", "x\ny"), Text("b", "z")], Terminal(), Terminal())
    assert out == "\x1b[36mx\x1b[0m\n\x1b[36my\x1b[0m\x1b[33mz\x1b[0m\n"
    assert "\x1b[36m■ a\x1b[0m  \x1b[33m■ b\x1b[0m" in err


def test_plain_is_plain_on_a_terminal_too() -> None:
    out, err = painted([STARTED, Text("a", "x"), Finished("end", 1, 1.0)], Terminal(), Terminal(), plain=True)
    assert "\x1b" not in out + err
    assert "■" not in err


@pytest.mark.parametrize(
    ("variables", "terminal", "colours"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "0"}, True, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
        ({"TERM": "dumb"}, True, False),
    ],
)
def test_colours_follow_the_terminal_and_the_usual_variables(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], terminal: bool, colours: bool
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert has_colours(Terminal() if terminal else io.StringIO()) is colours
    assert not has_colours(Terminal(), plain=True)


def test_control_characters_of_a_model_reach_no_terminal() -> None:
    nasty = "a\x1b[2Jb\x07c\x9b1md\r\ne\tf\x00\x7f"
    out, err = painted([Text("a", nasty), MemberFailed("b", "bad \x1b]0;title\x07")], Terminal(), Terminal())
    for code in ("36", "33"):
        out = out.replace(f"\x1b[{code}m", "")
    assert out.replace("\x1b[0m", "") == "a[2Jbc1md\ne\tf\n"
    assert "b dropped out: bad ]0;title" in err


def test_thoughts_are_shown_on_stderr_and_only_when_asked_for() -> None:
    events: list[Event] = [Text("a", "hm", thought=True), Text("a", "yes"), Finished("end", 2, 1.0)]
    assert painted(events)[1].count("hm") == 0
    out, err = painted(events, thoughts=True)
    assert out == "yes\n"
    assert err.startswith("hm\n")


def test_a_warning_in_the_middle_starts_on_a_line_of_its_own() -> None:
    both = Terminal()
    painted([Text("a", "one"), MemberFailed("b", "no room"), Text("a", "two")], both, both, plain=True)
    assert both.getvalue() == "one\nmacr-local: warning: b dropped out: no room\ntwo\n"


def test_in_a_file_the_answer_is_whole_whatever_is_said_beside_it() -> None:
    events: list[Event] = [
        Text("a", "one "),
        MemberFailed("b", "no room"),
        Text("a", "hm", thought=True),
        Text("a", "two"),
    ]
    for err in (io.StringIO(), Terminal()):
        assert painted(events, err=err, thoughts=True)[0] == "one two\n"
    assert painted(events, thoughts=True)[1] == "macr-local: warning: b dropped out: no room\nhm\n"


def test_notes_are_told_on_stderr() -> None:
    started = Started(MEMBERS, {}, {}, 0.1, notes=("a: photo.png was reduced",))
    assert (
        painted([started, Finished("end", 1, 1.0)])[1].splitlines()[0]
        == "macr-local: a: photo.png was reduced"
    )


def test_the_status_line_is_gone_before_the_answer_and_absent_in_a_pipe() -> None:
    for err, shown in ((Terminal(), True), (io.StringIO(), False)):
        painter = TextPainter(io.StringIO(), err, MEMBERS)
        painter.status("loading a ...")
        painter.event(STARTED)
        painter.close()
        assert ("loading a ..." in err.getvalue()) is shown
        assert "loading" not in err.getvalue().rpartition("\x1b[K")[2]


@pytest.mark.parametrize(
    ("chosen", "line"),
    [
        (Chosen("b", 3, votes=2), "b is chosen: 2 of 3 answers agree"),
        (
            Chosen("a", 3, votes=1, tied=True),
            "a is chosen: 1 of 3 answers agree, a tie that pool order decides",
        ),
        (Chosen("b", 2), "b is chosen: the surest of 2 answers"),
        (Chosen("a", 1), "a is chosen: the surest of 1 answer"),
    ],
)
def test_a_choice_is_told_before_the_answer_and_what_others_said_only_when_asked(
    chosen: Chosen, line: str
) -> None:
    answers: list[Event] = [
        Answered("a", "It is red.\nAnswer: red", "", "red", "end", 9, -0.2, 0.5),
        Answered("b", "", "", None, "end", 1, -0.1, None),
    ]
    events = [STARTED, *answers, chosen, Text(chosen.member, "red"), Finished("end", 9, 1.0)]
    out, err = painted(events)
    assert out == "red\n"
    assert err.splitlines()[0] == f"macr-local: {line}"
    assert (
        "macr-local: a answers (z 0.50): red\nmacr-local: b answers: nothing\n"
        in painted(events, verbose=True)[1]
    )
    assert "a has answered ..." in painted(events, err=Terminal())[1]


def test_verbose_tells_who_bid_what() -> None:
    events: list[Event] = [
        STARTED,
        BidOpened(1, "a", 5, "confidence", -2.0, -0.5),
        Bid(1, "a", b"x y", (1, 2), (-0.5, -0.5), -0.5, 0.25),
        Bid(1, "b", b"z", (1,), (-9.0,), -9.0, None, bound=-3.0),
        Relayed(1, "a", "a", 0.25),
    ]
    err = painted(events, verbose=True)[1]
    assert "a 5+16, b 6+16" in err
    assert "round 1 at token 5: confidence, z -0.50" in err
    assert "a bids z 0.25: 'x y'" in err
    assert "b: pruned at z <= -3.00" in err
    assert describe(Text("a", "x")) == ""


class _Answer:
    def __init__(self, count: int) -> None:
        self.count = count

    def to_dict(self) -> dict[str, Any]:
        return {"events": self.count}


def test_json_is_one_object_after_the_end_and_nothing_after_a_failure() -> None:
    for events, text in (([STARTED, Finished("end", 1, 1.0)], '{"events": 2}\n'), ([STARTED], "")):
        out = io.StringIO()
        painter = JsonPainter(out, lambda seen: _Answer(len(seen)))  # type: ignore[arg-type,return-value]
        for event in events:
            painter.event(event)
        assert out.getvalue() == ""
        painter.close()
        assert out.getvalue() == text


def test_json_lines_come_one_by_one() -> None:
    out = io.StringIO()
    painter = LinesPainter(out, lambda event: {"event": type(event).__name__})
    painter.event(STARTED)
    assert json.loads(out.getvalue()) == {"event": "Started"}
    painter.event(Text("a", "x"))
    painter.close()
    assert len(out.getvalue().splitlines()) == 2
