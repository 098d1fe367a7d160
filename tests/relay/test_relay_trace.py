"""Traces: events to JSON lines and back."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import Model
from worlds import build, run, worlds

from macr_local.errors import DataError
from macr_local.relay import events
from macr_local.relay.answer import collect
from macr_local.relay.confidence import Calibration
from macr_local.relay.events import Event
from macr_local.relay.trace import TraceHeader, TraceWriter, decode, encode, read_trace
from macr_local.settings import RelaySettings, Sampling

HEADER = TraceHeader(
    settings=RelaySettings(
        window=3, stop=("END", "。"), deadline=2.5, sampling=Sampling(temperature=0.7, top_k=40)
    ),
    members=("a", "b"),
    question="what is \udce9 <|im_end|>\n\u2028?",
    calibrations={"a": Calibration(-0.1, 0.25, 3)},
    images=("ab" * 32,),
    think=False,
    versions={"macr-local": "0.1.0"},
)

any_event = st.one_of([st.builds(kind) for kind in get_args(Event)])


@settings(max_examples=300)
@given(any_event)
def test_every_event_comes_back_as_it_was_from_what_is_json(event: Event) -> None:
    line = json.dumps(encode(event), allow_nan=False)
    assert repr(decode(json.loads(line))) == repr(event)  # repr tells 0.0 from -0.0, and knows nan


@settings(max_examples=60, deadline=None)
@given(worlds())
def test_a_trace_gives_the_same_answer_as_the_stream(world: tuple[list[Model], RelaySettings]) -> None:
    pool, chosen = world
    happened = run(pool, chosen)
    assert [decode(json.loads(json.dumps(encode(event)))) for event in happened] == happened
    answer = collect(happened, chosen)
    assert json.loads(json.dumps(answer.to_dict(), allow_nan=False))["text"] == answer.text


def test_a_trace_that_is_read_equals_what_was_written(tmp_path: Path) -> None:
    path, happened = tmp_path / "one.trace", run(*build(5))
    with TraceWriter(path, HEADER) as writer:
        for event in happened:
            writer.write(event)
            assert read_trace(path).events[-1] == event  # each line is handed on at once
    trace = read_trace(path)
    assert trace.header == HEADER
    assert list(trace) == happened
    assert trace.complete
    assert collect(trace, trace.header.settings) == collect(happened, trace.header.settings)


def test_two_runs_of_one_question_have_the_same_trace() -> None:
    files = [io.BytesIO(), io.BytesIO()]
    for file in files:
        writer = TraceWriter(file, HEADER)
        for event in run(*build(5)):
            writer.write(event)
        writer.close()
    assert files[0].getvalue() == files[1].getvalue()
    assert not files[0].closed


def test_bytes_stand_as_text_where_they_are_text() -> None:
    whole = events.Token("a", 0, 7, "é".encode(), -0.5)
    assert encode(whole)["text"] == "é"
    assert encode(events.Token("a", 0, 7, "é".encode()[:1], -0.5))["text"] == {"base64": "ww=="}
    assert decode(encode(events.Token("a", 0, 7, "é".encode()[:1], -0.5))).text == b"\xc3"  # type: ignore[union-attr]


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "one.trace"
    with TraceWriter(path, HEADER) as writer:
        for event in run(*build(5)):
            writer.write(event)
    return path


def test_a_torn_last_line_is_left_out(written: Path) -> None:
    data = written.read_bytes()
    whole = read_trace(written)
    last = len(data) - data[:-1].rindex(b"\n") - 1
    for cut in range(1, last + 1):
        written.write_bytes(data[:-cut])
        torn = read_trace(written)
        assert torn.events == (whole.events if cut == 1 else whole.events[:-1])
        assert torn.complete is (cut == 1)


def test_a_damaged_line_inside_is_named(written: Path) -> None:
    lines = written.read_bytes().split(b"\n")
    for damage in (
        b'{"type":"Tok',
        b'{"type":"Nonsense"}',
        b'{"type":"Token"}',
        b"7",
        b"\xff",
        b'{"type":["Token"]}',
        b'{"type":"Token","member":"a","index":0,"id":7,"text":"x","logprob":NaN}',
    ):
        written.write_bytes(b"\n".join([*lines[:3], damage, *lines[4:]]))
        with pytest.raises(DataError, match="line 4 is damaged"):
            read_trace(written)


def test_a_damaged_first_line_is_named(written: Path) -> None:
    written.write_bytes(written.read_bytes().replace(b'"window":3', b'"window":-3', 1))
    with pytest.raises(DataError, match="line 1 is damaged"):
        read_trace(written)


def test_a_later_version_is_refused(written: Path) -> None:
    written.write_bytes(written.read_bytes().replace(b'{"macr_trace":1', b'{"macr_trace":2', 1))
    with pytest.raises(DataError, match=r"version 2.*newer"):
        read_trace(written)


@pytest.mark.parametrize("data", [b"", b"\n", b"hello\n", b"[1]\n", b'{"a": 1}\n', b"\xff\xfe", b"7"])
def test_what_is_no_trace_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "other"
    path.write_bytes(data)
    with pytest.raises(DataError, match="not a trace"):
        read_trace(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"missing\.trace: No such file"):
        read_trace(tmp_path / "missing.trace")
