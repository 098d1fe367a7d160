"""The same question with the same seed is the same answer, however it is computed, and costs what it must."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from macr_local import Answer, Pool, Prompt, Relay, RelaySettings, Sampling
from macr_local.relay import events
from macr_local.relay.events import Event
from tests.oracles import questions
from tests.oracles.questions import Asked

WARM = Sampling(temperature=1.0)
BOTH = pytest.mark.parametrize("sampling", [Sampling(), WARM], ids=["greedy", "warm"])


def happened(pool: Pool, asked: Asked, settings: RelaySettings) -> list[Event]:
    with Relay(pool, settings).stream(Prompt.of(asked.text, asked.picture)) as stream:
        return list(stream)


def decisions(happened: list[Event]) -> list[Event]:
    """What was decided and written: neither times, nor counters, nor how far a lost bid came."""
    kinds = (events.BidOpened, events.Relayed, events.Token, events.Text)
    return [event for event in happened if isinstance(event, kinds)]


def ask(pool: Pool, asked: Asked, settings: RelaySettings) -> Answer:
    return Relay(pool, settings).ask(Prompt.of(asked.text, asked.picture))


@pytest.fixture(scope="module")
def scene_questions(tmp_path_factory: pytest.TempPathFactory) -> list[Asked]:
    return questions.scenes(8, tmp_path_factory.mktemp("scenes"))


def test_a_seed_settles_a_sampled_answer(tiny: Pool, scene_questions: list[Asked]) -> None:
    settings = replace(tiny.spec.settings, sampling=WARM)
    for asked in scene_questions[:3]:
        first, again, other = (
            decisions(happened(tiny, asked, replace(settings, seed=seed))) for seed in (7, 7, 8)
        )
        assert first == again
        assert first != other


FRESH = """
import json, sys
from macr_local import Pool, Prompt, Relay, Sampling
from macr_local.relay.events import Token
from dataclasses import replace
with Pool.open("tiny") as pool:
    settings = replace(pool.spec.settings, sampling=Sampling(temperature=1.0), seed=7)
    with Relay(pool, settings).stream(Prompt.of(sys.argv[1], sys.argv[2])) as stream:
        print(json.dumps([[e.member, e.id, e.logprob, e.z] for e in stream if isinstance(e, Token)]))
"""


def test_a_later_question_is_answered_as_in_a_fresh_process(tiny: Pool, scene_questions: list[Asked]) -> None:
    first, second = scene_questions[:2]
    settings = replace(tiny.spec.settings, sampling=WARM, seed=7)
    happened(tiny, first, settings)
    here = [
        [event.member, event.id, event.logprob, event.z]
        for event in happened(tiny, second, settings)
        if isinstance(event, events.Token)
    ]
    done = subprocess.run(
        [sys.executable, "-c", FRESH, second.text, str(second.picture)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == here
    assert done.stderr == ""


@BOTH
def test_bids_side_by_side_decide_as_bids_in_turn(
    sampling: Sampling, tiny: Pool, scene_questions: list[Asked]
) -> None:
    settings = replace(tiny.spec.settings, sampling=sampling)
    for asked in scene_questions:
        in_turn = happened(tiny, asked, replace(settings, bids="turn", prune=False))
        parallel = happened(tiny, asked, replace(settings, bids="parallel"))
        assert decisions(parallel) == decisions(in_turn)
        bids = [[event for event in one if isinstance(event, events.Bid)] for one in (in_turn, parallel)]
        assert bids[0] == bids[1]


@BOTH
def test_pruning_saves_tokens_and_changes_nothing_else(
    sampling: Sampling, tiny: Pool, scene_questions: list[Asked]
) -> None:
    settings = replace(tiny.spec.settings, sampling=sampling)
    written = {True: 0, False: 0}
    for asked in scene_questions:
        both = {prune: happened(tiny, asked, replace(settings, prune=prune)) for prune in (True, False)}
        assert decisions(both[True]) == decisions(both[False])
        for prune, one in both.items():
            written[prune] += sum(len(event.tokens) for event in one if isinstance(event, events.Bid))
    print(f"bid tokens: {written[True]} pruned, {written[False]} whole")
    assert written[True] < written[False]


@BOTH
@pytest.mark.parametrize("relays", [0, 1, None], ids=["no relay", "one relay", "ten relays and more"])
def test_nothing_is_decoded_twice_or_in_vain(
    relays: int | None, sampling: Sampling, tiny: Pool, scene_questions: list[Asked]
) -> None:
    """With a threshold that every window falls below, a round follows every bid."""
    threshold = 1e9 if relays is None else tiny.spec.settings.threshold
    settings = replace(tiny.spec.settings, sampling=sampling, threshold=threshold, max_relays=relays)
    for asked in scene_questions[:3]:
        prompt = Prompt.of(asked.text, asked.picture)
        answer = Relay(tiny, settings).ask(prompt)
        assert answer.relays >= 10 if relays is None else answer.relays == relays
        assert answer.total.work_ratio == 1.0
        for member in tiny.members:
            counters = answer.counters[member.name]
            size = member.prepare(prompt)
            assert (counters.prompt_text, counters.prompt_image) == (size.text, size.image)
            assert counters.work_ratio == 1.0
            others = counters.ingested + counters.committed + counters.discarded
            unread = size.cells - counters.reused
            assert unread <= counters.decoded <= unread + others
            assert counters.images_encoded <= 1


def test_answers_follow_the_pixels_and_not_the_path(tiny: Pool, tmp_path: Path) -> None:
    """The same question about three images that lie, one after the other, in the same file."""
    pictures = [one.picture.read_bytes() for one in questions.easy_vqa(12)]
    question = "what color is the shape?"
    relay = Relay(tiny)

    def answer(path: Path) -> str:
        return relay.ask(Prompt.of(question, path)).text

    apart: dict[str, bytes] = {}
    for number, data in enumerate(pictures):
        path = tmp_path / f"{number}.png"
        path.write_bytes(data)
        apart.setdefault(answer(path), data)
    assert len(apart) >= 3
    one = tmp_path / "one.png"
    for expected, data in list(apart.items())[:3]:
        one.write_bytes(data)
        assert answer(one) == expected


def test_eight_threads_on_one_pool_get_the_answers_of_one(tiny: Pool, scene_questions: list[Asked]) -> None:
    settings = replace(tiny.spec.settings, sampling=WARM)
    alone = [ask(tiny, asked, settings) for asked in scene_questions]
    with ThreadPoolExecutor(8) as threads:
        together = list(threads.map(lambda asked: ask(tiny, asked, settings), scene_questions))
    assert [answer.segments for answer in together] == [answer.segments for answer in alone]
    assert len({answer.text for answer in alone}) > 3
