"""What is known of each easy-VQA image."""

from __future__ import annotations

import numpy as np

from macr_local.evaluation.datasets import easy_vqa_records as records


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
