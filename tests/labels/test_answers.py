"""The labelling process: both answers are kept, and answers about one item combine."""

from __future__ import annotations

import numpy as np
import pytest

import ruleout as ro


def test_answers_are_truthful_and_keep_the_question() -> None:
    y = np.arange(200) % 7
    asked = ro.propose(200, 7, seed=1)
    answers = ro.answer(asked, y)
    assert answers.asked == asked
    assert answers.yes.tolist() == asked.excluded[np.arange(200), y].tolist()
    assert len(answers) == 200
    assert answers.no == asked[~answers.yes]


def test_every_answer_rules_something_out_but_never_the_truth() -> None:
    y = np.arange(200) % 7
    answers = ro.answer(ro.propose(200, 7, seed=2), y)
    ruled_out = answers.ruled_out
    assert not ruled_out.excluded[np.arange(200), y].any()
    assert (ruled_out.sizes > 0).all()
    flipped = ruled_out[answers.yes].excluded
    assert np.array_equal(flipped, answers.asked[answers.yes].candidates)


def test_answers_about_one_item_combine() -> None:
    asked = ro.LabelSets([[1, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 0]])
    answers = ro.answer(asked, y=[3, 0], items=[0, 0, 1])
    items, sets, rates = answers.per_item()
    assert items.tolist() == [0, 1]
    assert sets.to_lists() == [[0, 1, 2], [1, 2, 3]]
    assert rates == pytest.approx([(2 + 2) / 12 * (6 / 12), 6 / 12])


def test_contradicting_answers_are_named() -> None:
    asked = ro.LabelSets([[1, 0, 0], [0, 1, 1]])
    answers = ro.Answers(asked, np.array([False, False]), np.array([4, 4]))
    with pytest.raises(ro.LabelError, match="item 4 rule out every class"):
        answers.per_item()
