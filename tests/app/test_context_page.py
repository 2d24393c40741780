"""The page Context: its numbers are those of the model, its code computes them, and what it says
and suggests is true of it.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

import gptviz
from gptviz.figures.kit.format import percent
from gptviz.interp.explaining import context_use as interp
from gptviz.settings.fields import info_of
from gptviz.settings.kinds import HowLeftOut
from gptviz.ui.pages.context import left_out as context
from gptviz.ui.shell.frame import DEFAULT_PROMPT
from tests.app.opening import opened, page_at, ran, says
from tests.tiny import TinyModel

PAGE = "pages/context.py"
TEXT = "hello you all"


page = page_at(PAGE, model="writer", prompt=TEXT)


@pytest.fixture(autouse=True)
def writer(tiny_model: TinyModel) -> None:
    tiny_model("writer", text=DEFAULT_PROMPT + TEXT, context_length=40)


@pytest.mark.parametrize("how", info_of(HowLeftOut).choices)
def test_the_code_computes_what_is_shown_for_the_text_and_the_models_own_guess(
    how: HowLeftOut,
) -> None:
    at = page(how=how)
    use = ran(at.code[0].value)["result"]
    rise = use.left_out.rise
    mean = use.by_window.mean
    losses = use.loss
    lm = gptviz.load("writer")
    ids = lm.encode(TEXT).tolist()
    ids.append(int(lm.model(lm.encode(TEXT)[None])[0, -1].argmax()))
    np.testing.assert_allclose(rise, interp.left_out(lm.model, ids, how).rise, atol=1e-6)
    np.testing.assert_allclose(mean, interp.by_window(lm.model, ids).mean, atol=1e-6)
    np.testing.assert_allclose(losses, interp.losses(lm.model, ids), atol=1e-6)
    guess, place = np.unravel_index(np.nanargmax(rise), rise.shape)
    labels = [lm.tokenizer.label(i) for i in ids]
    largest = (
        f"“{labels[guess]}” at position {guess} is guessed {rise[guess, place]:.2f} nats worse "
        f"without “{labels[place]}”"
    )
    assert f"{largest} at position {place}." in says(at)
    assert use.by_window.sentence in says(at)
    assert context.answer(use, tuple(labels), labels[-1])[0].replace("\\", "") in says(at)
    assert f"Reading only the last token the mean loss is {mean[0]:.2f} nats" in says(at)
    early = losses[1:7].mean()
    late = losses[7:].mean()
    assert (
        f"In the first half of the text the mean loss is {early:.2f} nats, in the second "
        f"{late:.2f}." in says(at)
    )


@pytest.mark.parametrize("model", ["sentences", "shakespeare", "writer", "induction", "addition"])
def test_the_sentence_says_what_the_guess_gets_from_fewer_tokens_than_it_needs(model: str) -> None:
    query = {"prompt": TEXT} if model == "writer" else {}
    at = opened(PAGE, model=model, **query)
    use = ran(at.code[0].value)["result"]
    lm = gptviz.load(model)
    kept = len(use.ids) - 1 - use.by_window.windows[-1]
    (said,) = (one.value for one in at.markdown if "With only" in one.value or "alone" in one.value)

    def chance(number: int) -> str:
        ids = [*use.ids[:kept], *use.ids[:-1][kept:][-number:]]
        logits = lm.model(torch.tensor([ids]))[0, -1].float().detach()
        return percent(float(logits.softmax(-1)[use.ids[-1]]))

    said = said.split("**")[1].replace("\\", "")
    few = re.search(r"only the last (\d+) of", said)
    assert f"{chance(int(few[1]) if few else 1)} instead of {chance(10**6)}" in said
    rise = use.left_out.rise[-1]
    if few is not None and np.nanmax(rise) > 0:
        token = use.ids[use.left_out.places[int(np.nanargmax(rise))]]
        assert f"“{lm.tokenizer.label(token)}”" in said.split("needs most is")[1]
    assert "The largest rise of loss" in says(at)


def test_of_a_long_text_the_end_is_measured_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(context, "MOST_READ", 6)
    monkeypatch.setattr(context, "FEWEST_READ", 2)
    at = page(prompt="ohell you all")
    assert "Only the last 6 tokens of the prompt are measured." in says(at)
    use = ran(at.code[0].value)["result"]
    assert len(use.ids) == 7
    assert use.left_out.rise.shape == (7, 6)


def test_a_prompt_of_one_token_has_nothing_earlier_that_could_be_missed_but_itself() -> None:
    at = page(prompt="h")
    assert ran(at.code[0].value)["result"].left_out.rise.shape == (2, 1)


def test_the_same_text_twice_is_a_click_away() -> None:
    at = page(prompt="hell you")
    at.button(key="try The same text twice").click().run()
    assert at.text_area(key="prompt").value == "hell you\nhell you"


def test_over_the_data_held_out_the_loss_by_position_is_that_of_the_code() -> None:
    at = opened(PAGE, model="induction", prompt="5 9 2 7 5 9")
    loss = ran(at.code[0].value)["over_data"].values[1:]
    lm = gptviz.load("induction")
    np.testing.assert_allclose(
        loss, interp.by_position(lm.model, [row.tolist() for row in lm.rows(most=8_192)]).values[1:]
    )
    quarter = len(loss) // 4
    assert (
        f"{loss[:quarter].mean():.2f} nats in the first quarter of the positions, "
        f"{loss[-quarter:].mean():.2f}" in says(at)
    )


def test_rows_that_training_read_too_are_not_said_to_be_new() -> None:
    at = opened(PAGE, model="jobs-90")
    assert "although it was trained on equal ones" in says(at)
