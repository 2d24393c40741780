"""The Positions page as a reader meets it, without a browser."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.app.opening import opened

ROOT = Path(__file__).resolve().parents[2]


def page(**query: str) -> AppTest:
    return opened("pages/positions.py", **query)


def charts(at: AppTest) -> list[dict[str, Any]]:
    return [json.loads(chart.proto.spec) for chart in at.get("plotly_chart")]


def says(at: AppTest) -> str:
    return " ".join(element.value for kind in (at.caption, at.info, at.warning, at.markdown) for element in kind)


@pytest.mark.parametrize("kind", ["learned", "sinusoidal", "rotary", "relative", "alibi", "none"])
def test_the_page_opens_on_every_kind_of_positions(tiny_model: Callable[..., Path], kind: str) -> None:
    tiny_model(positions=kind, d_head=4)
    at = page(model="tiny")
    assert not at.exception
    assert not at.warning or "vocabulary" in at.warning[0].value
    # The model's own and another beside it, a table and a wave; without positions there is nothing of its own to show.
    assert len(charts(at)) == (3 if kind == "none" else 4)
    assert ("no position encoding" in says(at)) == (kind == "none")


def test_every_button_leads_somewhere(tiny_model: Callable[..., Path]) -> None:
    tiny_model(positions="rotary", d_head=4)
    tiny_model("taught", positions="learned")
    labels = [button.label for button in page(model="tiny").button]
    assert len(labels) == 3
    for label in labels:
        at = page(model="tiny")
        before = charts(at), at.selectbox(key="model").value
        next(button for button in at.button if button.label == label).click().run()
        assert not at.exception
        assert (charts(at), at.selectbox(key="model").value) != before


def test_the_slider_chooses_the_wave_that_is_drawn(tiny_model: Callable[..., Path]) -> None:
    tiny_model(positions="learned", d_head=4)
    at = page(model="tiny")
    before = charts(at)[-2:]
    at.select_slider(key="wave").set_value(0).run()
    assert not at.exception
    assert charts(at)[-2:] != before
    assert "A sine that repeats every 6.28 positions." in says(at)


@pytest.mark.parametrize(
    "query", [{"beside": "learned"}, {"wave": "9999"}, {"wave": "two"}, {"table": "<b>"}, {"model": "../../etc/passwd"}]
)
def test_a_link_that_asks_for_what_is_not_there_gets_a_message_and_the_page(
    tiny_model: Callable[..., Path], query: dict[str, str]
) -> None:
    tiny_model(positions="learned", d_head=4)
    at = page(**{"model": "tiny"} | query)
    assert not at.exception
    assert any(f"The link asks for {next(iter(query))}" in warning.value for warning in at.warning)
    assert len(charts(at)) == 4


def test_an_empty_prompt_changes_nothing(tiny_model: Callable[..., Path]) -> None:
    tiny_model()
    at = page(model="tiny")
    before = charts(at)
    at.text_area(key="prompt").set_value("").run()
    assert not at.exception
    assert charts(at) == before


def test_a_model_of_the_smallest_sizes_is_shown(tiny_model: Callable[..., Path]) -> None:
    tiny_model(positions="learned", context_length=1, d_model=1, n_head=1)
    at = page(model="tiny")
    assert not at.exception
    assert len(charts(at)) == 4
