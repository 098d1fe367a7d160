"""Votes and the surest answer on real models, against a count by hand over members that were asked alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest

from macr_local import Answer, Pool, Prompt, Relay, RelaySettings, Sampling
from macr_local.relay.events import Token
from tests.oracles.questions import scenes

NUMBERS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
WARM = Sampling(temperature=1.0)


def alone(pool: Pool, settings: RelaySettings, prompt: Prompt) -> list[tuple[str, float, int]]:
    """Each member's text, mean log-probability and tokens when nobody else is asked."""
    found = []
    for member in pool.members:
        relay = Relay(pool, settings, strategy="single", leader=member.name)
        text = relay.ask(prompt).text
        with relay.stream(prompt) as stream:
            logprobs = [event.logprob for event in stream if isinstance(event, Token)]
        found.append((text, fmean(logprobs), len(logprobs)))
    return found


def vote_by_hand(texts: Iterable[str]) -> int:
    """The first that ends like most others do; the tiny pool ends with "Answer: word"."""
    ends = [text.rsplit("Answer:", 1)[-1].strip().lower().rstrip(".") for text in texts]
    ends = [str(NUMBERS.index(end)) if end in NUMBERS else end for end in ends]
    return ends.index(Counter(ends).most_common(1)[0][0])


def asked(tiny: Pool, folder: Path, sampling: Sampling) -> Iterator[tuple[RelaySettings, Prompt]]:
    """Questions, each with a seed of its own."""
    for seed, question in enumerate(scenes(16, folder)):
        settings = replace(tiny.spec.settings, sampling=sampling, seed=seed)
        yield settings, Prompt.of(question.text, str(question.picture))


def costs(given: Answer, tiny: Pool, written: list[tuple[str, float, int]], taken: int) -> None:
    """Every member's tokens are there, once, and the prompt, once."""
    for place, member in enumerate(tiny.members):
        counters, tokens = given.counters[member.name], written[place][2]
        kept = tokens if place == taken else 0
        assert (counters.committed, counters.discarded) == (kept, tokens - kept)
        assert counters.prompt_image == 16
        assert (counters.ingested, counters.work_ratio) == (0, 1.0)


@pytest.mark.parametrize("sampling", [Sampling(), WARM], ids=["greedy", "warm"])
def test_a_vote_is_the_count_of_what_members_say_alone(
    tiny: Pool, tmp_path: Path, sampling: Sampling
) -> None:
    taken = []
    for settings, prompt in asked(tiny, tmp_path, sampling):
        written = alone(tiny, settings, prompt)
        given = Relay(tiny, settings, strategy="vote").ask(prompt)
        assert [told.text for told in given.answers] == [text for text, _, _ in written]
        taken.append(vote_by_hand(text for text, _, _ in written))
        assert given.text == written[taken[-1]][0]
        assert [segment.member for segment in given.segments] == [tiny.members[taken[-1]].name]
        costs(given, tiny, written, taken[-1])
    assert len(set(taken)) > 1, "questions that one member decides tell nothing"


@pytest.mark.parametrize("sampling", [Sampling(), WARM], ids=["greedy", "warm"])
def test_the_surest_answer_is_the_one_that_is_surest_alone(
    tiny: Pool, tmp_path: Path, sampling: Sampling
) -> None:
    taken = []
    for settings, prompt in asked(tiny, tmp_path, sampling):
        written = alone(tiny, settings, prompt)
        given = Relay(tiny, settings, strategy="best-of").ask(prompt)
        history = [tiny.calibration(member.name).at(settings.judged) for member in tiny.members]
        z = [(mean - own.mu) / own.sigma for (_, mean, _), own in zip(written, history, strict=True)]
        assert [told.z for told in given.answers] == pytest.approx(z)
        taken.append(z.index(max(z)))
        assert given.text == written[taken[-1]][0]
        costs(given, tiny, written, taken[-1])
    assert len(set(taken)) > 1, "questions that one member decides tell nothing"


@pytest.mark.parametrize("strategy", ["vote", "best-of"])
def test_the_same_question_has_the_same_answer_again(tiny: Pool, scene: Path, strategy: str) -> None:
    prompt = Prompt.of("how many white circles are there?", str(scene))
    settings = replace(tiny.spec.settings, sampling=WARM, seed=5)
    first, second = (Relay(tiny, settings, strategy=strategy).ask(prompt) for _ in range(2))
    assert replace(second, seconds=0, counters={}) == replace(first, seconds=0, counters={})
    assert Relay(tiny).ask(prompt).text == Relay(tiny).ask(prompt).text


@pytest.mark.parametrize("strategy", ["vote", "best-of"])
def test_a_cancel_after_the_first_answer_leaves_it_to_be_taken(
    tiny: Pool, scene: Path, strategy: str
) -> None:
    relay = Relay(tiny, strategy=strategy)
    with relay.stream(Prompt.of("how many white circles are there?", str(scene))) as stream:
        happened = [next(stream), next(stream)]
        stream.cancel()
        happened += stream
    names = [type(event).__name__ for event in happened]
    assert names[:5] == ["Started", "Answered", "Answered", "Answered", "Chosen"]
    assert [event.reason for event in happened[1:4]] == ["end", "cancelled", "cancelled"]  # type: ignore[union-attr]
    assert happened[-1].reason == "cancelled"  # type: ignore[union-attr]
    assert relay.ask("what shape is this?").finish_reason != "cancelled"
