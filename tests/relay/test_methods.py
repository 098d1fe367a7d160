"""Methods of several calls: what is asked in each, what an answer costs, and where one may be stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from asking import answer, one, only
from scripted import END, Choice, ScriptedMember, reads

from macr_local.errors import ConfigError, EngineError
from macr_local.prompt import Prompt
from macr_local.protocol import PromptSize
from macr_local.relay.confidence import Calibration
from macr_local.relay.events import Answered, Bid, BidOpened, Event, Finished, MemberFailed, Started, Token
from macr_local.settings import RelaySettings, Sampling
from macr_local.strategies import ALONE, STRATEGIES, WORDS, Case, Prompts, strategy
from macr_local.strategies.ddcot import is_uncertain, pairs
from macr_local.strategies.prompts import builtin, load

QUESTION = "how many red things are there? {graph}"
PROMPT = Prompt(QUESTION, ending='End with "Answer: ".')
LABELS = Prompts({name: f"<{name}> {text}" for name, text in builtin().texts.items()})


class Talker(ScriptedMember):
    """Answers each prompt with what it is told to, word by word; keeps what it was asked."""

    def __init__(self, name: str, replies: Sequence[str] | Callable[[str], str], **more: object) -> None:
        super().__init__(name, reads((END, -0.1)), **more)  # type: ignore[arg-type]
        self.asked: list[Prompt] = []
        self._replies = replies

    def begin(self, prompt: Prompt, sampling: Sampling, cancelled: Callable[[], bool]) -> None:
        super().begin(prompt, sampling, cancelled)
        said = self._replies(prompt.text) if callable(self._replies) else self._replies[len(self.asked)]
        self.asked.append(prompt)
        words = [(f" {word}" if i else word, -0.1) for i, word in enumerate(said.split(" ")) if said]
        self.script = reads(*words, (END, -0.1))


def ask(
    method: str,
    *members: ScriptedMember,
    cancelled: Callable[[], bool] = lambda: False,
    prompts: Prompts = LABELS,
    **chosen: object,
) -> Iterator[Event]:
    settings = RelaySettings(**{"window": 2, "max_tokens": 20, **chosen})  # type: ignore[arg-type]
    calibration = Calibration(-0.5, 0.5, settings.judged)
    case = Case(members, lambda _: calibration, settings, None, PROMPT, cancelled, prompts)
    return strategy(method)(case)


def texts(member: Talker) -> list[str]:
    return [prompt.text for prompt in member.asked]


# Plans.


def test_a_chain_of_thought_is_one_call() -> None:
    member = Talker("m", ["so it is 2"])
    assert answer(ask("cot", member)).text == "so it is 2"
    assert texts(member) == [LABELS.fill("cot.answer", question=QUESTION) + f"\n{PROMPT.ending}"]


def test_a_scene_graph_is_asked_for_without_an_ending_and_used_as_it_is_written() -> None:
    member = Talker("m", ['{"broken": {question}', "two"])
    given = answer(ask("ccot", member))
    assert given.text == "two"
    graph, final = texts(member)
    assert graph == LABELS.fill("ccot.graph", question=QUESTION)
    assert final.endswith(f"\n{PROMPT.ending}")
    assert '{"broken": {question}' in final
    assert QUESTION in final
    assert [(told.step, told.text, told.final) for told in given.answers] == [
        ("scene graph", '{"broken": {question}', None)
    ]


def test_duty_distinct_thought_takes_two_calls() -> None:
    member = Talker("m", ["1. how many? two", "2"])
    assert answer(ask("ddcot", member)).text == "2"
    assert "1. how many? two" in texts(member)[1]


def test_the_original_looks_only_at_what_is_uncertain_and_splits_without_the_image(tmp_path: Path) -> None:
    split = "Q1: what is red?\nA1: Uncertain\nQ2: what is two?\nA2: a number\nQ3: how many?"
    member = Talker("m", [split, "a circle", "one of them", "1"])
    given = answer(ask("ddcot-original", member, max_tokens=99))
    assert given.text == "1"
    first, look, again, final = texts(member)
    assert first == LABELS.fill("ddcot-original.split", question=QUESTION)
    assert (look, again) == tuple(
        LABELS.fill("ddcot-original.look", step=step) for step in ("what is red?", "how many?")
    )
    known = "Q1: what is red?\nA1: a circle\nQ2: what is two?\nA2: a number\nQ3: how many?\nA3: one of them"
    assert known in final
    assert [told.step for told in given.answers] == ["sub-questions", "sub-question 1", "sub-question 3"]


def test_a_split_that_cannot_be_read_is_not_lost() -> None:
    member = Talker("m", ["I would first look at the colors", "1"])
    assert answer(ask("ddcot-original", member)).text == "1"
    assert "I would first look at the colors" in texts(member)[1]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("**Q1:** a?\n**A1:** b", [("a?", "b")]),
        ("q 1. a?\na 1. b\nQ2) c?", [("a?", "b"), ("c?", "")]),
        ("Q1: a?\nQ1: again?\nA1: b\nA9: stray", [("a?", "b")]),
        ("A question? Q1 is in the middle: no", []),
        ("", []),
    ],
)
def test_questions_and_answers_are_read_from_their_lines(text: str, found: list[tuple[str, str]]) -> None:
    assert pairs(text) == found


def test_an_empty_or_evasive_answer_is_uncertain() -> None:
    evasive = ("", "Uncertain.", "It cannot be determined", "not provided", "there is insufficient detail")
    assert all(map(is_uncertain, evasive))
    assert not is_uncertain("two circles")


def test_a_role_play_has_three_parts() -> None:
    member = Talker("m", ["I say 1", "no, 2", "it is 2"])
    given = answer(ask("roleplay", member))
    assert given.text == "it is 2"
    proponent, opponent, mediator = texts(member)
    assert proponent == LABELS.fill("roleplay.proponent", question=QUESTION)
    assert opponent == LABELS.fill("roleplay.opponent", question=QUESTION, proposal="I say 1")
    assert "I say 1" in mediator
    assert "no, 2" in mediator
    assert [told.step for told in given.answers] == ["proponent", "opponent"]


def test_steps_are_counted_and_not_committed() -> None:
    member = Talker("m", ["a b c", "d e"], prompt=PromptSize(5, 3, 1))
    happened = list(ask("ccot", member))
    end = one(happened, Finished)
    counted = end.counters["m"]
    assert (counted.committed, counted.discarded) == (3, 4)  # each with its end token
    assert (counted.prompt_text, counted.prompt_image) == (10, 6)
    assert counted.work_ratio == 1.0
    assert end.index == 3
    assert len(only(happened, Token)) == 3
    assert len(only(happened, Started)) == 1


def test_a_step_that_is_cut_off_is_used_as_far_as_it_goes() -> None:
    member = Talker("m", ["a b c d e", "two"])
    given = answer(ask("ccot", member, max_tokens=2))
    assert given.text == "two"
    assert given.answers[0].text == "a b"
    assert given.answers[0].reason == "max_tokens"


# One who cannot go on.


def test_a_question_cancelled_in_a_step_has_no_answer_and_keeps_its_count() -> None:
    member = Talker("m", ["a b c d", "two"])
    happened = list(ask("ccot", member, cancelled=lambda: member.calls.count("propose") == 2))
    end = one(happened, Finished)
    assert (end.reason, end.index) == ("cancelled", 0)
    assert (end.counters["m"].committed, end.counters["m"].discarded) == (0, 2)
    assert only(happened, Token) == []
    assert len(member.asked) == 1


def test_a_deadline_is_of_the_question_not_of_a_call() -> None:
    member = Talker("m", ["a b", "two"])
    end = one(list(ask("ccot", member, deadline=1e-9)), Finished)
    assert end.reason == "deadline"


@pytest.mark.parametrize("method", sorted(ALONE))
def test_a_member_that_fails_fails_the_question(method: str) -> None:
    def before(call: str, member: ScriptedMember) -> None:
        if call == "propose" and member.calls.count("propose") == 3:
            raise EngineError("it broke")

    member = Talker("m", lambda _: "a b c d", before=before)
    with pytest.raises(EngineError, match="it broke"):
        list(ask(method, member))


@pytest.mark.parametrize("method", sorted(ALONE))
def test_a_method_of_one_asks_only_the_leader(method: str) -> None:
    members = [Talker("m0", lambda _: "no"), Talker("m1", lambda _: "yes")]
    case = Case(
        members,
        lambda _: Calibration(-0.5, 0.5, 2),
        RelaySettings(window=2, max_tokens=9),
        "m1",
        PROMPT,
        bool,
    )
    given = answer(strategy(method)(case))
    assert given.text == "yes"
    assert list(given.counters) == ["m1"]
    assert members[0].calls == []
    with pytest.raises(ConfigError, match='no member "m9"'):
        list(strategy(method)(replace(case, leader="m9")))


# The vote of the paper, and the debate.


def test_the_papers_vote_gives_each_member_a_method_of_its_own() -> None:
    members = [Talker("m0", ["graph", "one"]), Talker("m1", ["steps", "two"]), Talker("m2", ["two"])]
    given = answer(ask("vote-paper", *members))
    assert given.text == "two"
    assert given.chosen is not None
    assert (given.chosen.member, given.chosen.votes) == ("m1", 2)
    assert [[text.split(" ")[0] for text in texts(m)] for m in members] == [
        ["<ccot.graph>", "<ccot.answer>"],
        ["<ddcot.steps>", "<ddcot.answer>"],
        ["how"],
    ]
    assert {name: (c.committed, c.discarded) for name, c in given.counters.items()} == {
        "m0": (0, 4),
        "m1": (2, 2),
        "m2": (0, 2),
    }


def test_members_of_a_debate_read_what_the_others_said_last() -> None:
    members = [
        Talker("m0", ["g1", "one", "g2", "two", "g3", "2"]),
        Talker("m1", ["s1", "one", "s2", "one", "s3", "two"]),
        Talker("m2", ["three", "three", "three"]),
    ]
    happened = list(ask("hdmad", *members))
    given = answer(happened)
    assert given.text == "2"
    assert [len(member.asked) for member in members] == [6, 6, 3]
    second, third = texts(members[2])[1:]
    assert (
        second
        == LABELS.fill(
            "hdmad.context",
            question=QUESTION,
            own="three",
            others="<hdmad.other> (1) g1\none\n<hdmad.other> (2) s1\none",
        )
        + f"\n{PROMPT.ending}"
    )
    assert "(1) g2\ntwo" in third
    assert "(2) s2\none" in third
    graph = texts(members[0])[2]
    assert graph.startswith("<ccot.graph> <hdmad.context> how")
    assert PROMPT.ending not in graph
    assert [told.step for told in given.answers if told.member == "m2"] == ["round 1", "round 2", ""]
    assert len(only(happened, Started)) == 1
    counted = given.counters["m1"]
    assert (counted.committed, counted.discarded) == (0, 12)
    assert given.counters["m0"].committed == 2
    assert {count.work_ratio for count in given.counters.values()} == {1.0}
    assert given.counters["m2"].prompt_text == 3 * 7


def test_a_member_that_fails_in_a_debate_keeps_its_last_word() -> None:
    def before(call: str, member: ScriptedMember) -> None:
        if call == "begin" and member.calls.count("begin") == 2:
            raise EngineError("m2 broke")

    members = [
        Talker("m0", ["g", "one"] * 3),
        Talker("m1", ["s", "two"] * 3),
        Talker("m2", ["two"], before=before),
    ]
    happened = list(ask("hdmad", *members))
    assert one(happened, MemberFailed).member == "m2"
    given = answer(happened)
    assert given.text == "two"
    assert given.chosen is not None
    assert (given.chosen.among, given.chosen.votes) == (3, 2)
    assert "(2) two" in texts(members[0])[4]


def test_a_debate_that_is_cancelled_counts_what_was_said_before() -> None:
    members = [Talker("m0", ["g", "one"] * 3), Talker("m1", ["s", "two"] * 3), Talker("m2", ["two"] * 3)]
    happened = list(ask("hdmad", *members, cancelled=lambda: members[2].calls.count("begin") == 2))
    given = answer(happened)
    assert (given.finish_reason, given.text) == ("cancelled", "two")
    assert given.counters["m0"].prompt_text == 3 * 7
    assert given.counters["m1"].committed == 2


# Temperature decoding.


def doubting(*draws: tuple[str, float]) -> ScriptedMember:
    """Doubts its second token; what it draws then is one of these."""

    def script(cache: tuple[bytes, ...]) -> Sequence[Choice]:
        match len(cache):
            case 0:
                return [Choice(b"a", -0.1)]
            case 1:
                return [Choice(text.encode(), logprob) for text, logprob in draws]
            case _:
                return [Choice(END, -0.1, is_end=True)]

    return ScriptedMember("m", script)


def test_a_doubtful_member_goes_on_with_its_surest_draw() -> None:
    member = doubting((" b", -1.5), (" c", -1.0), (" d", -1.9))
    happened = list(ask("tdh", member, window=1, draws=20, sampling=Sampling()))
    (opened,) = only(happened, BidOpened)
    assert opened.reason == "confidence"
    bids = only(happened, Bid)
    assert len(bids) == 20
    assert {bid.text for bid in bids} == {b" b", b" c", b" d"}
    assert answer(happened).text == "a c"
    assert one(happened, Finished).counters["m"].work_ratio == 1.0


def test_draws_differ_by_seed_and_agree_with_themselves() -> None:
    def drawn(seed: int) -> list[bytes]:
        member = doubting((" b", -1.5), (" c", -1.5), (" d", -1.5))
        return [bid.text for bid in only(list(ask("tdh", member, window=1, draws=9, seed=seed)), Bid)]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_pruned_draws_change_no_answer() -> None:
    for seed in range(20):
        pair = [
            list(ask("tdh", doubting((" b", -2), (" c", -1)), window=1, seed=seed, prune=prune))
            for prune in (True, False)
        ]
        assert answer(pair[0]).text == answer(pair[1]).text
        written = [end.counters["m"].discarded for end in (one(each, Finished) for each in pair)]
        assert written[0] <= written[1]


# The words.


def test_every_text_belongs_to_a_method_that_says_so() -> None:
    assert {name.partition(".")[0] for name in builtin().texts} == {
        t for each in WORDS.values() for t in each
    }
    assert set(WORDS) <= set(STRATEGIES)


def test_what_is_filled_in_is_not_filled_again() -> None:
    prompts = Prompts({"x.y": "{a} {b} {c}"})
    assert prompts.fill("x.y", a="{b}", b="{a}") == "{b} {a} {c}"


def test_own_words_take_the_place_of_the_packages(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('[cot]\nanswer = "Denk nach. {question}"\n', "utf-8")
    member = Talker("m", ["2"])
    list(ask("cot", member, prompts=load(path)))
    assert member.asked[0].question == f"Denk nach. {QUESTION}"
    assert load(path).texts["ccot.graph"] == builtin().texts["ccot.graph"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[cot]\nanswer = "think"', 'mine.toml: "cot.answer" has no place for question. Write {question}'),
        ('[cot]\nanswr = "{question}"', 'has "cot.answr", which no method asks'),
        ("[cot]\nanswer = 3", "is no file of prompts"),
        ('answer = "{question}"', "is no file of prompts"),
        ("[cot", "is no file of prompts"),
        ('[cot]\nanswer = "  "', '"cot.answer" is no text'),
    ],
)
def test_words_that_cannot_be_used_are_refused(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert said in str(caught.value)


def test_a_file_of_words_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml cannot be read \(No such file"):
        load(tmp_path / "none.toml")


def test_answers_of_a_step_are_told_in_order() -> None:
    told = only(ask("ccot", Talker("m", ["graph", "two"])), Answered)
    assert [(event.member, event.step) for event in told] == [("m", "scene graph")]
