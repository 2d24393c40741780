"""The view Weights of a task of the page Circuit, without a browser."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import gptviz
from gptviz.interp.explaining.weight_circuit import WeightCircuit, ends
from gptviz.interp.explaining.weight_circuit import weight_circuit as compute
from gptviz.language_model import LanguageModel, weight_circuits
from gptviz.ui.records.circuit import WEIGHTS
from tests.app.opening import chart, opened, page_at, says
from tests.waiting import wait_until

PROMPT = "The keys to the new cabinet"
asked = page_at(
    "pages/circuit.py", model="sentences-sparse", prompt=PROMPT, view=WEIGHTS, part="agreement"
)


def page(**query: str) -> AppTest:
    """The page once the weights are found."""
    at = asked(**query)
    wait_until(lambda: "answer the questions" in says(at.run()))
    return at


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short search, with a few questions."""
    monkeypatch.setattr(weight_circuits, "compute_circuit", partial(compute, steps=250))


def found() -> tuple[LanguageModel, WeightCircuit]:
    lm = gptviz.load("sentences-sparse", device="cpu")
    return lm, lm.weight_circuit("agreement")


def test_the_page_says_how_few_weights_answer_and_what_they_keep() -> None:
    said = says(page())
    _, circuit = found()
    assert f"{len(circuit.weights):,} weights of {circuit.of:,}" in said
    assert "agreement" in said


def test_a_line_is_a_weight_that_the_text_uses_and_a_place_lists_its_row_and_column() -> None:
    at = page(lines="20")
    lm, circuit = found()
    seen = set(lm.encode(PROMPT).tolist())
    likely = lm.model(lm.encode(PROMPT)[None])[0, -1].topk(2).indices.tolist()
    used = [
        weight
        for weight in circuit.weights
        if (weight.matrix != "embed.weight" or weight.row in seen)
        and (weight.matrix != "positions.table.weight" or weight.row < len(lm.encode(PROMPT)))
        and (weight.matrix != "head.unembed.weight" or weight.row in seen | set(likely))
    ]
    drawn: Any = chart(at, "weights of a task")
    assert len(drawn["data"][-2]["hovertext"]) == min(len(used), 20)
    place = ends(circuit.weights[-1], lm.model.config)[0].name
    tables = [table.value for table in page(place=place).dataframe]
    listed = {title: len(table) for table in tables for title in table.columns[:1]}
    both = [ends(weight, lm.model.config) for weight in circuit.weights]
    assert listed.get("It reads", 0) == sum(target.name == place for _, target in both)
    assert listed.get("It writes", 0) == sum(source.name == place for source, _ in both)


def test_the_numbers_are_all_weights_with_what_goes_without_each() -> None:
    from gptviz.ui.pages.circuit import weights

    lm, circuit = found()
    array = weights.number_weights(lm, circuit)
    assert array.values.shape == (len(circuit.weights), 2)
    assert np.allclose(array.values[:, 0], [weight.value for weight in circuit.weights])


def test_a_model_without_questions_has_no_such_view() -> None:
    at = opened("pages/circuit.py", model="generator", prompt="ROMEO:")
    assert "View" not in [control.label for control in at.main.get("button_group")]
    assert not at.exception
