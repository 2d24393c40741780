"""Prompts with known answers: which head each answer needs and since when, against a loop over
heads and over snapshots.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import gptviz
from gptviz.figures.kit.format import percent
from gptviz.interp.units.unit import heads_and_mlps
from gptviz.language_model import LanguageModel
from gptviz.runs import checkpoints
from gptviz.text.datasets.sentences import Sentences
from gptviz.ui.shell.subject.models import model_key
from gptviz.ui.views import contrasts as view
from gptviz.ui.views.contrasts import ContrastQuestion
from tests.tiny import TinyModel

KEY = model_key("sentences", "cpu")


@pytest.fixture(scope="module")
def lm() -> LanguageModel:
    return gptviz.load("sentences")


def guess(lm: LanguageModel, prompt: str) -> torch.Tensor:
    return lm.trace(prompt, ["logits"])["logits"][0, -1].softmax(-1)


def test_each_task_has_a_question_that_the_model_answers(lm: LanguageModel) -> None:
    found = view.answered_questions(KEY)
    assert [one.contrast for one in found] == list(Sentences().contrasts())
    for one in found:
        assert lm.tokenizer.label(int(guess(lm, one.prompt).argmax())) == one.contrast.right
    assert view.chosen_question(found, found[2].prompt) == found[2]
    assert view.chosen_question(found, "another") == found[0]


@pytest.mark.parametrize(
    "question", view.answered_questions(KEY), ids=lambda one: one.contrast.part
)
def test_the_head_that_an_answer_needs_is_that_of_a_loop_and_the_sentence_says_what_is_lost(
    question: ContrastQuestion, lm: LanguageModel
) -> None:
    heads = [one for one in heads_and_mlps(lm.model.config) if one.is_head]
    without = {head: guess(lm.edited(head.name), question.prompt) for head in heads}
    worst = min(heads, key=lambda head: float(without[head][question.right]))
    found = view.needed_head(KEY, question)
    assert found is not None
    assert found.head == worst
    before = float(guess(lm, question.prompt)[question.right])
    after = float(without[worst][question.right])
    assert (found.before, found.after) == pytest.approx((before, after), abs=1e-5)
    said = view.loss_of_head(KEY, question, found).replace("\\", "")
    assert (
        f"Without {worst.title}, “{question.contrast.right}” goes from {percent(before)} to "
        f"{percent(after)}" in said
    )
    leads = int(without[worst].argmax())
    assert (
        f"“{lm.tokenizer.label(leads)}” leads with {percent(float(without[worst].max()))}" in said
    ) == (leads != question.right)


def test_a_head_has_appeared_where_from_then_on_the_answer_is_right_with_it_and_wrong_without_it(
    lm: LanguageModel,
) -> None:
    steps = sorted(checkpoints.snapshots(checkpoints.find("sentences")))
    models = {step: gptviz.load("sentences", step=step) for step in steps}
    for question in view.answered_questions(KEY)[:2]:
        needed = view.needed_head(KEY, question)
        assert needed is not None

        def shares(
            step: int, head: str = needed.head.name, question: ContrastQuestion = question
        ) -> tuple[torch.Tensor, torch.Tensor]:
            return guess(models[step], question.prompt), guess(
                models[step].edited(head), question.prompt
            )

        def is_needed(step: int, question: ContrastQuestion = question) -> bool:
            now, without = shares(step)
            return int(now.argmax()) == question.right != int(without.argmax())

        since = next(
            step
            for step in steps
            if all(map(is_needed, [later for later in steps if later >= step]))
        )
        found = view.find_appearance(replace(KEY, step=steps[3]), question, needed.head)
        assert found is not None, "the same whatever step is looked at"
        assert (found.step, found.before) == (since, steps[steps.index(since) - 1])
        now, without = shares(steps[steps.index(since) - 1])
        assert (found.right, found.without) == pytest.approx(
            (float(now[question.right]), float(without[question.right])), abs=1e-5
        )
        offer = view.when_it_appeared(KEY, question.prompt, lambda head: {"unit": head.name})
        assert offer is not None
        assert (offer.state["step"], offer.state["prompt"]) == (str(since), question.prompt)
        assert offer.query == {"unit": needed.head.name}
        assert f"from step {since:,} on" in offer.notice
        assert (
            f"had {percent(found.right)} with it and {percent(found.without)} without it"
            in offer.notice
        )


def test_a_model_that_knows_no_answer_is_asked_nothing(tiny_model: TinyModel) -> None:
    assert view.answered_questions(model_key("sentences", "cpu", step=0)) == ()
    assert view.answered_questions(model_key("addition", "cpu")) == ()
    # Its card says that it learned sentences, but its tokens are letters.
    tiny_model("letters", card={"source": {"kind": "task", "task": "sentences", "settings": {}}})
    assert view.known_contrasts(gptviz.load("letters")) == ()
    tiny_model("odd", card={"source": {"kind": "task", "task": "nothing"}})
    assert view.known_contrasts(gptviz.load("odd")) == ()
