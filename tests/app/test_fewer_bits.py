"""“With fewer bits” on the page Size and cost, without a browser: its numbers are those of the
edited model.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

import gptviz
from gptviz.interp.changing.fewer_bits import by_block, errors
from gptviz.machine.memory import in_bytes
from gptviz.ui.pages.costs import fewer_bits
from gptviz.ui.records.costs import BITS
from tests.app.opening import chart, page_at, payload, ran, says
from tests.drawn import numbers
from tests.tiny import TinyModel

PROMPT = "the fox"
UP = "blocks.1.mlp.up.weight"
pytestmark = pytest.mark.usefixtures("tiny_saved")
page = page_at("pages/costs.py", model="tiny", prompt=PROMPT, view=BITS)


def metrics(at: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in at.metric}


def cells(at: AppTest) -> Any:
    return numbers(chart(at, "matrix errors")["data"][0]["z"]).T


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ({}, "4bit.g32"),
        ({"bits": "2 bits", "scale": "each row"}, "2bit.row"),
        ({"bits": "Q8_0"}, "Q8_0"),
    ],
)
def test_the_numbers_are_those_of_the_library(address: dict[str, str], kind: str) -> None:
    at = page(**address)
    assert not at.warning
    lm = gptviz.load("tiny")
    found = lm.fewer_bits(kind, PROMPT)
    assert found.divergence is not None
    assert found.loss is not None
    shown = metrics(at)
    assert (
        f"**With 32 bits for each number this model takes {in_bytes(found.weight.float32)}, with "
        in says(at)
    )
    assert f" {in_bytes(found.weight.kept)}.**" in says(at)
    sizes = numbers(chart(at, "memory with fewer bits")["data"][0]["x"])
    assert sizes.tolist() == [found.weight.float32, found.weight.kept]
    assert float(shown["Guesses move by"].split()[0].replace("·", "")) >= 0
    assert (
        shown["Loss over the prompt, nats per token"]
        == f"{found.loss[0]:.3f} → {found.loss[1]:.3f}"
    )
    table = by_block(errors(lm.model, lm.edited(f"weights={kind}").model))
    assert table is not None
    np.testing.assert_allclose(cells(at), table.values, rtol=1e-5)
    assert f"{found.matrices[0].name} loses most" in says(at)
    before, after = (numbers(bars["x"]) for bars in chart(at, "before and after")["data"])
    moved = lm.edited(f"weights={kind}").trace(PROMPT)["logits"][0, -1].double().softmax(-1)
    assert float(after.max()) == pytest.approx(float(moved.max()), abs=1e-6)
    assert before.shape == after.shape


def test_one_matrix_alone_is_rounded_and_the_code_gives_the_same() -> None:
    at = page(matrix=UP, bits="3 bits", scale="each row")
    assert f"{UP} loses most" in says(at)
    (code,) = [one.value for one in at.code if "by_block" in one.value]
    names = ran(code)
    assert [one.name for one in names["found"] if one.relative] == [UP]
    assert len(names["moved"]) == len(PROMPT)


def test_the_button_shows_the_model_so_on_every_page_and_another_one_takes_it_back() -> None:
    at = (
        page(bits="3 bits", edits="blocks.0.mlp,weights=Q4_0")
        .button(key="keep the bits")
        .click()
        .run()
    )
    assert at.query_params["edits"] == "weights=3bit.g32,blocks.0.mlp"
    assert "All matrices are rounded to 3 bits a number" in says(at)
    other = page_at("pages/next_token.py", model="tiny", prompt=PROMPT)(
        edits="weights=3bit.g32,blocks.0.mlp"
    )
    logits = (
        gptviz.load("tiny")
        .edited("weights=3bit.g32", "blocks.0.mlp")
        .trace(PROMPT)["logits"][0, -1]
    )
    np.testing.assert_allclose(payload(other, "ledger")[1]["logits"], logits, atol=1e-5)
    at.button(key="take the bits away").click().run()
    assert at.query_params["edits"] == "blocks.0.mlp"


def test_a_model_that_has_the_edit_is_compared_with_the_whole_one() -> None:
    at = page(edits="weights=Q4_0")
    plain = page(bits="Q4_0")
    bars, others = (chart(one, "memory with fewer bits")["data"][0]["x"] for one in (at, plain))
    np.testing.assert_array_equal(numbers(bars), numbers(others))
    np.testing.assert_array_equal(cells(at), cells(plain))
    assert at.selectbox(key="bits").value == "Q4_0"


def test_compare_gets_the_whole_model_and_the_one_with_fewer_bits() -> None:
    at = page(edits="blocks.0.mlp")
    (link,) = [one for one in at.main.get("page_link") if "Compare it" in one.proto.label]
    asked = parse_qs(link.proto.query_string)
    assert (asked["edits"], asked["b_edits"]) == (
        ["blocks.0.mlp"],
        ["weights=4bit.g32,blocks.0.mlp"],
    )


def test_a_large_model_is_quantised_only_when_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fewer_bits, "MOST_AT_ONCE", 10)
    assert "Choose a number of bits" in says(page())
    assert "loses most" in says(page(bits="8 bits"))


def test_a_model_that_cannot_be_rounded_is_named_and_the_page_stays(tiny_model: TinyModel) -> None:
    from gptviz.runs import checkpoints

    tiny_model("broken")
    lm = gptviz.load("broken")
    with torch.no_grad():
        lm.model.embed.weight[0, 0] = 3e38
    checkpoints.save("broken", lm.model, lm.tokenizer, {}, replace=True)
    at = page(model="broken", bits="Q4_0")
    assert "embed.weight: it has numbers that are too large for float16" in says(at)
    assert "Weight" not in metrics(at)


@pytest.mark.parametrize("kind", ["classifier", "pair"])
def test_other_kinds_of_models_have_the_section_too(
    kind: str, tiny_classifier: TinyModel, tiny_pair: TinyModel
) -> None:
    (tiny_classifier if kind == "classifier" else tiny_pair)("other")
    at = page(model="other", prompt="", bits="2 bits")
    assert "loses most" in says(at)
    assert "Guesses move by" not in metrics(at)
