"""The Next token page as a reader meets it, without a browser."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

import gptviz
from gptviz.ui import next_token
from gptviz.ui.literal import literal
from tests.app.opening import opened

ROOT = Path(__file__).resolve().parents[2]
PROMPT = "the fox"


def page(**query: str) -> AppTest:
    at = opened("pages/next_token.py", **{"model": "tiny", "prompt": PROMPT} | query)
    assert not at.exception
    return at


def array(values: Any) -> np.ndarray[Any, Any]:
    if isinstance(values, dict):
        return np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"])
    return np.array(values)


def bars(at: AppTest) -> tuple[list[str], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Labels, probabilities before and after, as the chart has them."""
    spec = json.loads(at.get("plotly_chart")[0].proto.spec)
    after, before, cut, _ = (array(trace["y"]) for trace in spec["data"])
    ticks = [
        text.replace("<br>", "").replace("▲", "").replace("<b>", "").replace("</b>", "").strip("\u2068\u2069")
        for text in spec["layout"]["xaxis"]["ticktext"]
    ]
    return ticks, before + cut, after


def strip(at: AppTest) -> dict[str, Any]:
    return json.loads(at.get("bidi_component")[0].proto.bytes)


def logits(text: str = PROMPT) -> torch.Tensor:
    lm = gptviz.load("tiny")
    return lm.model(lm.encode(text)[None])[0].detach().double()


def chosen(at: AppTest) -> int:
    return int(strip(at)["settings"]["selected"])


def test_the_page_opens_on_the_guess_after_the_last_token(tiny_model: Callable[..., Path]) -> None:
    tiny_model()
    at = page()
    assert chosen(at) == len(PROMPT) - 1
    p, ids = torch.softmax(logits()[-1], -1).sort(descending=True, stable=True)
    labels, before, after = bars(at)
    assert labels == [gptviz.load("tiny").tokenizer.label(int(i)) for i in ids[: next_token.SHOWN]]
    np.testing.assert_allclose(before, p[: next_token.SHOWN], rtol=1e-4)
    np.testing.assert_allclose(after, before, rtol=1e-12)


@pytest.mark.parametrize("position", range(len(PROMPT)))
def test_any_position_can_be_asked_for(tiny_model: Callable[..., Path], position: int) -> None:
    tiny_model()
    at = page(position=str(position), temperature="0.5")
    assert chosen(at) == position
    p = torch.softmax(logits()[position], -1)
    hotter = torch.softmax(logits()[position] / 0.5, -1)
    _, before, after = bars(at)
    np.testing.assert_allclose(before, p.sort(descending=True).values[: next_token.SHOWN], rtol=1e-4)
    np.testing.assert_allclose(after, hotter.sort(descending=True).values[: next_token.SHOWN], rtol=1e-3)


@pytest.mark.parametrize("position", ["", "-1"])
def test_no_position_and_minus_one_are_the_last(tiny_model: Callable[..., Path], position: str) -> None:
    tiny_model()
    at = page(position=position)
    assert chosen(at) == len(PROMPT) - 1
    assert not at.warning
    assert "position" not in at.query_params


@pytest.mark.parametrize("position", ["7", "999", "-2", "x", "٣٣٣", "9" * 5000, "1.5", "<script>"])
def test_an_impossible_position_is_named_and_the_last_shown(tiny_model: Callable[..., Path], position: str) -> None:
    tiny_model()
    at = page(position=position)
    assert chosen(at) == len(PROMPT) - 1
    assert any(f"position = “{literal(position[:80])}”" in warning.value for warning in at.warning)
    assert not at.run().warning, "said once"


def test_the_slider_and_a_click_move_the_position_and_the_link(tiny_model: Callable[..., Path]) -> None:
    tiny_model()
    at = page()
    at.slider(key="position slider").set_value(2).run()
    assert chosen(at) == 2
    assert at.query_params["position"] == "2"
    at.slider(key="position slider").set_value(len(PROMPT) - 1).run()
    assert "position" not in at.query_params


def test_another_text_keeps_a_position_it_has_and_else_shows_its_last(tiny_model: Callable[..., Path]) -> None:
    tiny_model()
    at = page(position="4")
    at.text_area(key="prompt").set_value("a lazy").run()
    assert chosen(at) == 4
    at.text_area(key="prompt").set_value("dog").run()
    assert chosen(at) == 2
    assert not at.exception


def test_a_text_of_one_token_has_one_position(tiny_model: Callable[..., Path]) -> None:
    tiny_model()
    at = page(prompt="t")
    assert chosen(at) == 0
    assert not [slider for slider in at.slider if slider.key == "position slider"]


def test_sampling_acts_on_logits_already_there(tiny_model: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    tiny_model()
    runs = []
    compute = next_token.logits_after
    monkeypatch.setattr(next_token, "logits_after", lambda *given: runs.append(given) or compute(*given))
    at = page()
    assert len(runs) == 1
    at.slider(key="temperature").set_value(0.0).run()
    at.select_slider(key="top_k").set_value(3).run()
    at.slider(key="top_p").set_value(0.5).run()
    at.slider(key="position slider").set_value(1).run()
    assert len(runs) == 1


def test_what_is_cut_is_seen_being_cut(tiny_model: Callable[..., Path]) -> None:
    tiny_model()
    at = page(top_k="3")
    spec = json.loads(at.get("plotly_chart")[0].proto.spec)
    assert [note["text"].strip(" →") for note in spec["layout"]["annotations"]] == ["cut by top-k"]
    assert array(spec["data"][2]["y"])[:3].tolist() == [0, 0, 0]
    assert (array(spec["data"][2]["y"])[3:] > 0).all()
    _, before, after = bars(at)
    np.testing.assert_allclose(after, np.r_[before[:3] / before[:3].sum(), np.zeros(len(after) - 3)], rtol=1e-6)


def test_temperature_zero_leaves_one_bar(tiny_model: Callable[..., Path]) -> None:
    tiny_model()
    assert bars(page(temperature="0"))[2].tolist() == [1.0] + [0.0] * (next_token.SHOWN - 1)


def test_a_small_vocabulary_can_be_shown_whole_in_its_own_order(tiny_model: Callable[..., Path]) -> None:
    tiny_model()
    tokenizer = gptviz.load("tiny").tokenizer
    at = page(tokens=next_token.ORDERS[2])
    labels, before, _ = bars(at)
    assert labels == tokenizer.labels()
    np.testing.assert_allclose(before, torch.softmax(logits()[-1], -1), rtol=1e-4)
    at.selectbox(key="tokens").set_value(next_token.ORDERS[1]).run()
    assert sorted(bars(at)[0]) == sorted(tokenizer.labels())
    assert (np.diff(bars(at)[1]) <= 0).all()


def test_entropy_and_perplexity_are_those_of_a_loop(tiny_model: Callable[..., Path]) -> None:
    tiny_model()
    at = page(temperature="0.5", top_k="4")
    before, after = torch.softmax(logits()[-1], -1), torch.softmax(logits()[-1].topk(4).values / 0.5, -1)
    nats = [-sum(x * math.log(x) for x in p.tolist()) for p in (before, after)]
    (said,) = [one.value for one in at.markdown if one.value.startswith("**Entropy**")]
    bits = [value / math.log(2) for value in nats]
    assert f"**Entropy** {bits[0]:.3f} → {bits[1]:.3f} bits" in said
    assert f"{nats[0]:.3f} → {nats[1]:.3f} nats" in said
    assert f"**Perplexity** {math.exp(nats[0]):.2f} → {math.exp(nats[1]):.2f}" in said
    assert f"**Tokens left** {gptviz.load('tiny').tokenizer.vocab_size} → 4" in said


def test_the_true_next_token_is_ranked_where_there_is_one(tiny_model: Callable[..., Path]) -> None:
    tiny_model()
    at = page(position="3")
    p = torch.softmax(logits()[3], -1)
    true = gptviz.load("tiny").tokenizer.id_of("f")
    rank = 1 + sorted(range(len(p)), key=lambda i: -p[i].item()).index(true)
    (said,) = [one.value for one in at.text if one.value.startswith("Really next")]
    assert said.startswith("Really next: f ")
    assert said.endswith(f"rank {rank}")
    (said,) = [one.value for one in page().text if one.value.startswith("Really next")]
    assert "rank" not in said


def test_the_chips_tell_how_likely_the_model_found_each_token(tiny_model: Callable[..., Path]) -> None:
    tiny_model()
    chips = strip(page())["tokens"]
    ids = gptviz.load("tiny").encode(PROMPT).tolist()
    p = torch.softmax(logits(), -1)
    assert chips[0][1] is None
    assert [chip[1] for chip in chips[1:]] == pytest.approx([p[i, ids[i + 1]].item() for i in range(len(ids) - 1)], rel=1e-3)


def test_a_vocabulary_of_gpt2s_size_computes_only_the_position_asked_for(
    tiny_model: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny_model(text="".join(map(chr, range(0x100, 0x100 + 50_257))), context_length=1024, d_model=2, n_head=1, n_layer=1, d_mlp=2)
    shapes = []
    compute = next_token.logits_after

    def watched(*given: Any) -> Any:
        shapes.append(compute(*given).shape)
        return compute(*given)

    monkeypatch.setattr(next_token, "logits_after", watched)
    at = page(prompt="ĀāĂ" * 400, position="1000")
    assert chosen(at) == 1000
    assert shapes == [(1, 50_257)]
    assert len(bars(at)[0]) == next_token.SHOWN
    assert not [one for one in at.selectbox if one.key == "tokens"], "all of them would not fit"
    assert all(chip[1] is None for chip in strip(at)["tokens"])
    at.slider(key="temperature").set_value(0.5).run()
    assert len(shapes) == 1


@pytest.mark.parametrize(
    "prompt", ["", "🦊", "the 🦊", "the quick brown fox jumps over", "\u202e\u0000\ud83d"[:2], "<b>**x**</b>"]
)
def test_any_prompt_opens(tiny_model: Callable[..., Path], prompt: str) -> None:
    tiny_model()
    at = page()
    at.text_area(key="prompt").set_value(prompt).run()
    assert not at.exception
    assert len(bars(at)[0]) == next_token.SHOWN


@pytest.mark.parametrize("button", ["How chanc…", "An open question", "Cut the tail"])
def test_each_try_this_shows_the_end_of_its_text(tiny_model: Callable[..., Path], button: str) -> None:
    tiny_model(context_length=100)
    at = page(position="2")
    at.button(key=f"try {button}").click().run()
    assert not at.exception
    assert at.text_area(key="prompt").value != PROMPT
    assert chosen(at) == len(strip(at)["tokens"]) - 1
    assert "position" not in at.query_params


def test_the_code_shown_computes_the_same_prediction(tiny_model: Callable[..., Path]) -> None:
    tiny_model()
    at = page(position="3", temperature="0.5", top_k="4")
    (code,) = [one.value for one in at.code if "gptviz.load" in one.value]
    computed: dict[str, Any] = {}
    exec(code, computed)
    order = computed["prediction"].order()[: next_token.SHOWN]
    _, before, after = bars(at)
    np.testing.assert_allclose(computed["prediction"].before[order], before, rtol=1e-6)
    np.testing.assert_allclose(computed["prediction"].after[order], after, rtol=1e-6)


def test_no_text_of_a_model_becomes_markdown(tiny_model: Callable[..., Path]) -> None:
    tiny_model(text="**:red[x]$`<b>")
    at = page(prompt=":red[", position="3")
    spoken = [element.value for kind in (at.markdown, at.caption, at.info) for element in kind]
    assert not any(":red[" in value for value in spoken)
    assert any(text.value.startswith("Really next: [") for text in at.text)
