"""What a question costs: counters that add up, and a work ratio of exactly one."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from asking import answer, ask, member, only
from hypothesis import given, settings
from reference import Model
from scripted import ScriptedMember, improvises, reads, says
from worlds import PROMPT, build, run, seated, worlds

from macr_local.errors import DataError
from macr_local.protocol import PromptSize, Work
from macr_local.relay.answer import Answer, collect
from macr_local.relay.confidence import Calibration
from macr_local.relay.controller import Controller
from macr_local.relay.counters import Counters, Ledger
from macr_local.relay.events import BidOpened, Finished, Relayed, Started, Token
from macr_local.settings import RelaySettings

World = tuple[list[Model], RelaySettings]

thorough = settings(max_examples=200, deadline=None)


@thorough
@given(worlds())
def test_counters_add_up_for_every_member(world: World) -> None:
    pool, chosen = world
    members = seated(pool)
    calibrations = {m.name: Calibration(m.mu, m.sigma, chosen.judged) for m in pool}
    events = list(Controller(members, calibrations, chosen).run(PROMPT))
    got = collect(events, chosen)
    assert list(got.counters) == [model.name for model in pool]
    assert got.total.committed == len(only(events, Token)) == only(events, Finished)[0].index
    for one_of_them in members:
        counters = got.counters[one_of_them.name]
        assert counters.committed == sum(t.member == one_of_them.name for t in only(events, Token))
        assert counters.committed + counters.discarded == one_of_them.calls.count("propose")
        assert (counters.prompt_text, counters.prompt_image, counters.images_encoded) == (7, 4, 1)
        assert counters.tokens == 11 + one_of_them.calls.count("propose")
        assert counters.decoded == one_of_them.work.decoded


@thorough
@given(worlds())
def test_nothing_is_decoded_twice_or_in_vain(world: World) -> None:
    pool, chosen = world
    total = collect(run(pool, chosen), chosen).total
    assert total.decoded == total.least
    assert total.work_ratio == 1.0


@pytest.mark.parametrize("relays", [0, 1, 12])
def test_the_work_ratio_is_one_with_few_relays_and_with_many(relays: int) -> None:
    lost = [
        member(name, says(lambda text, name=name: (name, -0.1 - 5 * (len(text) % 3 == 2)))) for name in "ab"
    ]
    got = answer(ask(*lost, max_relays=relays, max_tokens=80))
    assert got.relays == relays
    assert got.total.work_ratio == 1.0


def test_a_prompt_is_read_once_however_many_relays_follow() -> None:
    a, b = (member(name, improvises(seed, ends=0.0)) for name, seed in (("a", 1), ("b", 2)))
    events = ask(a, b, threshold=1.0, max_tokens=60)
    assert answer(events).relays > 5
    assert a.calls.count("begin") == b.calls.count("begin") == 1


def test_what_is_never_needed_is_never_decoded() -> None:
    ledger = Ledger()
    ledger.prefilled(PromptSize(10, 5, 1))
    ledger.ingested(4)
    ledger.branched()
    ledger.proposed()
    ledger.accepted()
    ledger.proposed()
    ledger.accepted()  # the last token of a lost bid
    ledger.dropped()
    ledger.ingested(3)  # words after its last turn
    assert ledger.close(Work(20, 1)) == Counters(10, 5, 0, 2, 7, 1, decoded=20, least=15 + 4 + 1)


def test_a_ratio_above_one_shows_a_prompt_that_was_decoded_again() -> None:
    def again(method: str, me: ScriptedMember) -> None:
        if method == "adopt":
            me._decoded += me.size.cells

    total = answer(ask(member("a", reads(("a", -0.1), ("b", -0.1)), before=again))).total
    assert (total.least, total.decoded) == (11 + 2, 11 + 2 + 11)
    assert total.work_ratio == 24 / 13


def test_counters_of_members_add() -> None:
    one, two = Counters(1, 2, 3, 4, 5, 6, 7, 8), Counters(10, 20, 30, 40, 50, 60, 70, 80)
    assert one + two == Counters(11, 22, 33, 44, 55, 66, 77, 88)
    assert one.tokens == 1 + 2 + 3 + 4
    assert Counters().work_ratio is None


# The answer.


@thorough
@given(worlds())
def test_the_segments_of_an_answer_are_its_text(world: World) -> None:
    pool, chosen = world
    events = run(pool, chosen)
    got = collect(events, chosen)
    assert "".join(segment.text for segment in got.segments) == got.text
    assert [segment.member for segment in got.segments] == [r.winner for r in only(events, Relayed)]
    assert sum(segment.tokens for segment in got.segments) == only(events, Finished)[0].index
    assert got.relays == len(got.segments) - 1
    assert got.handovers == sum(
        a.member != b.member for a, b in zip(got.segments, got.segments[1:], strict=False)
    )
    assert got.rounds == len(only(events, BidOpened))
    assert isinstance(events[0], Started)


def test_an_answer_as_json_names_what_programs_look_for() -> None:
    pool, chosen = build(3)
    chosen = replace(chosen, stop=("STOP",))
    got = collect(run(pool, chosen), chosen).to_dict()
    assert json.loads(json.dumps(got)) == got
    assert {"text", "finish_reason", "segments", "relays", "bids", "counters", "settings"} <= set(got)
    names = {"prompt_text", "prompt_image", "committed", "discarded", "ingested", "images_encoded"}
    assert all(names <= set(counters) for counters in got["counters"]["members"].values())
    assert got["counters"]["total"]["work_ratio"] == 1.0
    assert got["settings"]["sampling"]["temperature"] == chosen.sampling.temperature


def test_events_that_break_off_are_no_answer() -> None:
    pool, chosen = build(3)
    with pytest.raises(DataError, match="before the answer does"):
        collect(run(pool, chosen)[:-1], chosen)


def test_a_controller_asks_any_number_of_questions() -> None:
    pool, chosen = build(5)
    calibrations = {m.name: Calibration(m.mu, m.sigma, chosen.judged) for m in pool}
    asked = Controller(seated(pool), calibrations, chosen, clock=lambda: 0.0)
    first: Answer = collect(asked.run(PROMPT), chosen)
    assert collect(asked.run(PROMPT), chosen) == first
