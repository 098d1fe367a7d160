"""easy-VQA as training data: what is known of each image, and worked answers that end right."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from training.worlds.easy_vqa import records
from training.worlds.easy_vqa.chain import chain
from training.worlds.easy_vqa.records import COLORS, KINDS, SHAPES
from training.worlds.easy_vqa.world import LABELLED, MIX, EasyVqaWorld
from training.worlds.world import ARCHITECTURES


@pytest.fixture(scope="module")
def world() -> EasyVqaWorld:
    return EasyVqaWorld()


def test_attributes_agree_with_every_question_that_is_asked() -> None:
    for question in records.questions("test"):
        facts = records.attributes("test")[question.image]
        truth = facts.get(question.attribute)
        if truth is None:
            continue
        if question.yes_no:
            there = truth == question.named(question.attribute)
            assert question.answer == ("yes" if there != question.negated else "no"), question
        else:
            assert question.answer == truth


def test_the_known_colors_are_the_colors_of_the_pixels() -> None:
    rgb = {"red": (255, 0, 0), "green": (0, 255, 0), "blue": (0, 0, 255), "black": (0, 0, 0)}
    pixels = records.images("test").astype(int)
    checked = 0
    for image, facts in records.attributes("test").items():
        if facts.get("color") in rgb:
            checked += 1
            assert (np.abs(pixels[image] - rgb[facts["color"]]).max(-1) <= 40).sum() > 9, (image, facts)
    assert checked > 300


def test_a_worked_answer_ends_with_the_data_set_s_answer_whatever_the_first_look_said() -> None:
    rng = Random(3)
    slips = 0
    for question in records.questions("train")[:2000]:
        text = chain(question, records.attributes("train")[question.image], rng, (1, 1, 1))
        if text is None:
            continue
        reasoning, answer = text.split("\nAnswer: ")
        assert answer == question.answer
        slips += ", no, the " in reasoning or " says no, the " in reasoning or " and no, the " in reasoning
    assert 100 < slips < 400


def test_lessons_follow_the_member_s_mix_and_name_what_they_ask_about(world: EasyVqaWorld) -> None:
    for member in ARCHITECTURES:
        stage = world.plan(member).stages[-1]
        rng = Random(1)
        pictures = [picture for _ in range(20) for picture in world.lessons(member, stage, rng)]
        about_color = sum("color" in lesson.own[0].text for p in pictures for lesson in p.lessons)
        share = about_color / sum(len(picture.lessons) for picture in pictures)
        wanted = sum(MIX[member][kind] for kind in KINDS if kind.endswith("color"))
        assert abs(share - wanted) < 0.1
        for picture in pictures:
            assert picture.labels["color"][0] in range(-100, len(COLORS))
            assert picture.labels["shape"][0] in range(-100, len(SHAPES))


def test_the_vision_stage_uses_no_more_labels_than_the_member_may_see(world: EasyVqaWorld) -> None:
    for member in ARCHITECTURES:
        for attribute, most in LABELLED[member].items():
            assert 0 < len(world._known(member, attribute)) <= most


def test_the_exam_is_balanced_and_seeded(world: EasyVqaWorld) -> None:
    exam = world.exam(40, seed=2)
    assert len(exam) == 40
    assert [item[1:] for item in exam] == [item[1:] for item in world.exam(40, seed=2)]
    assert [item[1:] for item in exam] != [item[1:] for item in world.exam(40, seed=3)]
    assert sum(answer in ("yes", "no") for _, _, answer in exam) == 20
