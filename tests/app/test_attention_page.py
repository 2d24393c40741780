"""The Attention page as a reader meets it, without a browser."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import gptviz
from gptviz.ui import attention, frame
from gptviz.ui.literal import literal

ROOT = Path(__file__).resolve().parents[2]
Tiny = Callable[..., Path]


@pytest.fixture
def seed_sized(tiny_model: Tiny) -> Path:
    """As many blocks, heads and positions as the seed's model has."""
    return tiny_model(text=frame.DEFAULT_PROMPT, context_length=64, n_layer=3, n_head=4)


def page(**query: str) -> AppTest:
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120).switch_page("pages/attention.py")
    for key, value in {"model": "tiny", **query}.items():
        at.query_params[key] = value
    return at.run()


def charts(at: AppTest) -> list[dict[str, Any]]:
    assert not at.exception
    return [json.loads(chart.proto.spec) for chart in at.get("plotly_chart")]


def large(at: AppTest) -> np.ndarray:
    """The values of the large head [query, key], as they travel."""
    z = charts(at)[1]["data"][0]["z"]
    return np.frombuffer(base64.b64decode(z["bdata"]), z["dtype"]).reshape([int(size) for size in z["shape"].split(",")])


def outlined(at: AppTest) -> tuple[float, float]:
    """Block and head of the outlined thumbnail."""
    shape = charts(at)[0]["layout"]["shapes"][0]
    return (shape["y0"] + shape["y1"]) / 2, (shape["x0"] + shape["x1"]) / 2


def expected(prompt: str, block: int, head: int) -> np.ndarray:
    values = gptviz.load("tiny").trace(prompt)[f"blocks.{block}.attention.pattern"][0, head].numpy().copy()
    values[np.triu_indices(len(values), 1)] = np.nan
    return values


def test_the_page_opens_on_the_seeds_picture(seed_sized: Path) -> None:
    at = page()
    assert outlined(at) == (2, 2)
    np.testing.assert_allclose(large(at), expected(frame.DEFAULT_PROMPT, 2, 2), atol=1e-6)
    assert not at.warning


def test_a_chosen_head_is_shown_and_outlined(seed_sized: Path) -> None:
    at = page()
    at.select_slider(key="block").set_value(0)
    at.select_slider(key="head").set_value(3).run()
    assert outlined(at) == (0, 3)
    np.testing.assert_allclose(large(at), expected(frame.DEFAULT_PROMPT, 0, 3), atol=1e-6)
    assert "Block 0, head 3" in charts(at)[1]["layout"]["annotations"][0]["text"]


def test_a_click_on_a_thumbnail_sets_the_controls_and_a_cleared_one_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    state: dict[str, Any] = {"block": 2, "head": 2, "glance": SimpleNamespace(selection=SimpleNamespace(points=[]))}
    monkeypatch.setattr(attention.st, "session_state", state)
    attention.pick("glance")
    assert (state["block"], state["head"]) == (2, 2)
    state["glance"].selection.points = [{"customdata": [0, 3]}]
    attention.pick("glance")
    assert (state["block"], state["head"]) == (0, 3)


def test_every_thumbnail_can_be_clicked_for_its_block_and_head(seed_sized: Path) -> None:
    marks = charts(page())[0]["data"][1]
    assert sorted(map(tuple, marks["customdata"])) == [(block, head) for block in range(3) for head in range(4)]


def test_log_colours_change_the_colours_and_no_number(seed_sized: Path) -> None:
    at = page()
    before = large(at)
    colours = charts(at)[1]["data"][0]["colorscale"]
    at.toggle(key="log").set_value(True).run()
    np.testing.assert_array_equal(large(at), before)
    assert charts(at)[1]["data"][0]["colorscale"] != colours


@pytest.mark.parametrize("asked", ["99", "-1", "zwei", "<script>"])
def test_a_block_that_is_not_there_is_named_and_the_page_goes_on(seed_sized: Path, asked: str) -> None:
    at = page(block=asked)
    assert any(literal(asked) in warning.value for warning in at.warning)
    assert outlined(at) == (2, 2)
    at.select_slider(key="head").set_value(1).run()
    assert outlined(at) == (2, 1)


def test_a_link_reopens_block_head_and_prompt(seed_sized: Path) -> None:
    at = page(block="1", head="0", prompt="How now")
    assert outlined(at) == (1, 0)
    np.testing.assert_allclose(large(at), expected("How now", 1, 0), atol=1e-6)


def test_an_empty_prompt_shows_the_default_one_and_says_so(seed_sized: Path) -> None:
    at = page(prompt="H")
    at.text_area(key="prompt").set_value("").run()
    assert any("empty" in info.value for info in at.info)
    np.testing.assert_allclose(large(at), expected(frame.DEFAULT_PROMPT, 2, 2), atol=1e-6)


def test_a_prompt_longer_than_the_context_shows_its_end(seed_sized: Path) -> None:
    text = (frame.DEFAULT_PROMPT * 5)[:300]
    at = page(prompt=text)
    assert any("300" in info.value and "64" in info.value for info in at.info)
    np.testing.assert_allclose(large(at), expected(text[-64:], 2, 2), atol=1e-6)


def test_characters_the_model_lacks_are_named_and_read_as_what_is_said(seed_sized: Path) -> None:
    at = page(prompt="How 🙂 now")
    assert any("🙂" in warning.value for warning in at.warning)
    assert large(at).shape == (9, 9)


def test_one_token_is_a_page_too(seed_sized: Path) -> None:
    at = page(prompt="H")
    np.testing.assert_array_equal(large(at), [[1]])


def test_full_attention_says_its_averages_below_the_picture(tiny_model: Tiny) -> None:
    tiny_model(mask="full")
    at = page(prompt="the dog")
    assert not np.isnan(large(at)).any()
    assert any("spread over" in caption.value for caption in at.caption)


def test_a_model_without_attention_says_so_and_leads_on(tiny_model: Tiny) -> None:
    tiny_model(n_layer=0)
    at = page(prompt="the dog")
    assert charts(at) == []
    assert any("no attention" in info.value for info in at.info)
    assert any("See its guesses" in str(link.proto) for link in at.get("page_link"))


def test_try_this_shows_the_heads_it_names(seed_sized: Path) -> None:
    at = page(block="0", head="0", prompt="How now")
    seen = [np.stack([expected("How now", block, head) for head in range(4)]) for block in range(3)]
    shares = np.array([[np.mean([head[i, i - 1] for i in range(1, 7)]) for head in block] for block in seen])
    at.button(key="try The token before").click().run()
    assert outlined(at) == np.unravel_index(shares.argmax(), shares.shape)
    at.button(key="try The seed's picture").click().run()
    assert outlined(at) == (2, 2)
    np.testing.assert_allclose(large(at), expected(frame.DEFAULT_PROMPT, 2, 2), atol=1e-6)


def test_the_code_behind_the_figure_makes_the_figure(seed_sized: Path) -> None:
    at = page(block="1", head="3", prompt="How now, 'my love'?")
    made: dict[str, Any] = {}
    exec(at.code[0].value, made)
    visible = ~np.isnan(large(at))
    np.testing.assert_allclose(made["pattern"].numpy()[visible], large(at)[visible], atol=1e-6)
