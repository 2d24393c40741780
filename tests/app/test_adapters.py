"""LoRA adapters on the pages: the slider from base to tuned, which is an edit of the address, and what is said of them."""

from __future__ import annotations

import numpy as np
import pytest

import gptviz
from gptviz.runs import checkpoints
from gptviz.ui.shell.subject.models import model_key
from tests.app.opening import page_at, payload, says

pytestmark = pytest.mark.usefixtures("home")
page = page_at("pages/next_token.py", model="finetune-lora", prompt="KING")


def logits(*edits: str) -> np.ndarray:
    return np.asarray(gptviz.load("finetune-lora").edited(*edits).trace("KING")["logits"][0, -1])


def test_the_slider_is_an_edit_from_the_base_to_the_tuned_model_and_beyond() -> None:
    at = page()
    assert "LoRA adapter on pretrain, rank 4" in says(at)
    np.testing.assert_allclose(payload(at, "ledger")[1]["logits"], logits(), atol=1e-5)
    slider = at.slider(key="strength of the adapter")
    assert (slider.value, slider.min, slider.max) == (1.0, 0.0, 2.0)
    slider.set_value(0.5).run()
    assert at.query_params["edits"] == "adapter=0.5"
    np.testing.assert_allclose(payload(at, "ledger")[1]["logits"], logits("adapter=0.5"), atol=1e-5)
    at.slider(key="strength of the adapter").set_value(0.0).run()
    base = np.asarray(gptviz.load("pretrain").trace("KING")["logits"][0, -1])
    np.testing.assert_array_equal(logits("adapter=0"), base)
    np.testing.assert_allclose(payload(at, "ledger")[1]["logits"], base, atol=1e-5)
    at.slider(key="strength of the adapter").set_value(1.0).run()
    assert "edits" not in at.query_params


def test_a_link_may_go_further_than_the_slider_and_the_other_edits_stay() -> None:
    at = page(edits="adapter=3,blocks.0.mlp")
    assert at.slider(key="strength of the adapter").value == 3.0
    np.testing.assert_allclose(payload(at, "ledger")[1]["logits"], logits("adapter=3", "blocks.0.mlp"), atol=1e-5)
    at.slider(key="strength of the adapter").set_value(1.0).run()
    assert at.query_params["edits"] == "blocks.0.mlp"


def test_a_strength_that_is_none_is_named_and_left_out() -> None:
    at = page(edits="adapter=lots")
    assert "the strength of an adapter is a number from -10 to 10" in says(at)
    assert at.slider(key="strength of the adapter").value == 1.0


def test_a_model_without_an_adapter_has_no_slider_and_names_the_edit() -> None:
    at = page(model="pretrain", edits="adapter=0.5")
    assert not [one for one in at.slider if one.key == "strength of the adapter"]
    assert "this model is no LoRA adapter" in says(at)


def test_the_key_of_an_adapter_changes_with_its_base() -> None:
    before = model_key("finetune-lora", "cpu")
    opened = checkpoints.load(checkpoints.find("shakespeare"))
    checkpoints.save("pretrain", opened.model, opened.tokenizer, {}, replace=True)
    assert model_key("finetune-lora", "cpu") != before
