"""The Gradients page as a reader meets it, without a browser."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import gptviz
from gptviz.figures.kit.format import format_signed, percent, power
from gptviz.interp.explaining.learning_step import POINTS
from gptviz.interp.reading import gradients
from gptviz.interp.reading.gradients import compare_untrained
from gptviz.ui.pages.gradients.by_block import DEFAULTS, tries
from tests.app.opening import charts, page_at, says
from tests.drawn import numbers

SENTENCE = "The gradient says how to lower the loss."


page = page_at("pages/gradients.py")


def sizes(**changes: Any) -> dict[str, float]:
    return gradients.reaching(compare_untrained(**changes))


def test_the_page_opens_on_the_lines_with_a_connection_and_without_and_says_what_arrives() -> None:
    at = page()
    assert not at.warning
    for chart in charts(at):
        assert [line["name"] for line in chart["data"]] == [
            "connection past each block (pre-norm)",
            "no connection (none)",
        ]
        low = chart["layout"]["yaxis"]["range"][0]
        assert low < -45, "both are seen to their ends"
    shares = sizes()
    assert (
        "Yes, with a connection past each block; without one it is told nothing about how to "
        "change.** What tells a block how to change (the gradient) comes back from the last block: "
        f"on its way it is multiplied by {power(shares['pre-norm'])} with a connection, by "
        f"{power(shares['none'])} without." in says(at)
    )
    exploded = sizes(std=0.32)["none"]
    assert exploded > 1e3
    grow = "without one the changes that it is told grow without end"
    assert grow in says(page(std="0.32"))


def test_a_line_for_each_residual_is_drawn_twice_over_one_scale_with_words_for_both() -> None:
    at = page(every="true")
    assert not at.warning
    assert [[line["name"] for line in chart["data"]] for chart in charts(at)] == [
        list(gradients.compared_residuals())
    ] * 2
    gradient, stream = charts(at)
    assert gradient["layout"]["yaxis"]["range"] == stream["layout"]["yaxis"]["range"]
    assert gradient["layout"]["yaxis"]["type"] == "log"
    for chart, quantity in zip(
        at.get("plotly_chart"), ("gradient of the stream", "stream"), strict=True
    ):
        assert f"Size of the {quantity} by block" in chart.proto.alt
        for line in json.loads(chart.proto.spec)["data"]:
            ends = [power(size) for size in (line["y"][0], line["y"][-1])]
            assert f"{line['name']} from {' to '.join(ends)}" in chart.proto.alt


def below_the_title(at: AppTest) -> str:
    """The line under the sentence of the page: in the popovers at its top there are captions
    too.
    """
    captions = [one.value for one in at.caption]
    return captions[captions.index(next(one for one in captions if one.startswith(SENTENCE))) + 1]


def test_the_lines_under_the_sentence_are_those_of_real_models() -> None:
    at = page(depth="3", width="16", every="true")
    table = compare_untrained(depth=3, width=16)
    for line, sizes in zip(
        charts(at)[0]["data"], gradients.one_quantity(table, gradients.GRADIENT).values, strict=True
    ):
        assert line["y"] == pytest.approx(sizes)
    for kind, share in gradients.reaching(table).items():
        assert f"{kind}, " in below_the_title(at)
        assert f"**{power(share)}**" in below_the_title(at)


def test_every_control_changes_the_lines() -> None:
    at = page()
    for key, value in {
        "depth": 4,
        "std": 0.16,
        "width": 16,
        "activation": "gelu",
        "shrink": False,
        "seed": 7,
    }.items():
        before = charts(at)
        control = {"activation": at.selectbox, "shrink": at.toggle}.get(key, at.select_slider)
        control(key=key).set_value(value).run()
        assert charts(at) != before, key


def test_the_gradient_of_the_weights_stands_beside_where_asked_for_and_has_no_end() -> None:
    at = page(beside="Gradient of the weights")
    left, right = charts(at)
    assert len(left["data"][0]["x"]) == DEFAULTS["depth"] + 1
    assert len(right["data"][0]["x"]) == DEFAULTS["depth"]
    assert left["layout"]["yaxis"]["range"] == right["layout"]["yaxis"]["range"]


def test_the_buttons_promise_what_happens() -> None:
    assert all(
        offer.state.keys() == {*DEFAULTS, "every"} and offer.state["seed"] == 0 for offer in tries()
    )
    smallest = 2.0**-149
    start = sizes()
    deep = sizes(depth=32)
    assert all(deep[kind] > 0.5 for kind in ("pre-norm", "post-norm", "plain"))
    assert deep["none"] < smallest
    large = sizes(std=0.32)
    assert large["plain"] > 1e6 * start["plain"]
    assert large["none"] > 1e3
    vanished, edge, exploded = (sizes(std=std)["none"] for std in (0.16, 0.24, 0.32))
    assert vanished < 1e-6 < 0.01 < edge < 1 < 1e3 < exploded
    undivided = compare_untrained(std=0.12, shrink=False)
    post = (
        gradients.one_quantity(undivided, gradients.GRADIENT)
        .values[list(gradients.compared_residuals()).index("post-norm")]
        .astype(float)
    )
    assert np.sum(np.diff(post[1:]) > 0) > len(post) / 2
    assert post[1] < 0.5 * post[-1]
    assert gradients.reaching(undivided)["plain"] > 1e3


def test_what_overflows_says_so() -> None:
    at = page(depth="32", std="0.32", activation="relu2", shrink="false", width="128")
    assert "it overflows" in below_the_title(at)


def test_the_lines_that_stay_can_be_told_apart_and_all_decades_are_a_click_away() -> None:
    at = page(every="true")
    low, high = charts(at)[0]["layout"]["yaxis"]["range"]
    assert high - low < 10
    assert "the line “none” runs out of it" in below_the_title(at)
    at.segmented_control(key="scale").set_value("All decades").run()
    low, high = charts(at)[0]["layout"]["yaxis"]["range"]
    assert low < -45
    assert "runs out" not in below_the_title(at)
    assert not [
        control for control in page(std="0.24").segmented_control if control.key == "scale"
    ], "one axis holds all"


def step(**query: str) -> AppTest:
    return page(view="One step", **query)


def test_one_step_shows_the_way_back_to_the_weight_with_the_steepest_slope() -> None:
    at = step(model="induction", prompt="7 3 9 7 3")
    lm = gptviz.load("induction")
    found = lm.learning_step("7 3 9 7 3", "blocks.0.attention.output.weight")  # type: ignore[attr-defined]
    way, around = charts(at)
    np.testing.assert_allclose(numbers(way["data"][0]["customdata"]), found.way_back("7397").values)
    lines = {line["name"]: (numbers(line["x"]), numbers(line["y"])) for line in around["data"]}
    np.testing.assert_allclose(lines["loss"][1], found.curve)
    x, y = lines["tangent"]
    np.testing.assert_allclose(np.diff(y) / np.diff(x), found.slope)
    assert lines["as it is"][1] == pytest.approx([found.loss])
    assert any(
        f"from {found.loss_before:.4f} to {found.loss_after:.4f}" in text.value
        for text in at.markdown
    )
    assert at.selectbox(key="at").value == ", ".join(map(str, found.at))


def test_the_weight_may_be_any_other_and_the_slider_moves_it() -> None:
    at = step(model="ladder-0", part="embed.weight", at="12, 5", moved="3", prompt="ROMEO")
    assert not at.warning
    found = gptviz.load("ladder-0").learning_step("ROMEO", "embed.weight", (12, 5))  # type: ignore[attr-defined]
    lines = {line["name"]: line for line in charts(at)[1]["data"]}
    assert numbers(lines["moved"]["x"]) == pytest.approx([found.weights[POINTS // 2 + 3]])
    assert found.slope == 0, "the text does not have this token, and another matrix guesses"
    assert step(model="ladder-0", part="embed.weight", at="12, 64").warning


@pytest.mark.parametrize(
    ("model", "prompt", "said"),
    [("classifier", "good", "choose a decoder"), ("ladder-0", "R", "longer")],
)
def test_where_there_is_no_step_it_says_why(model: str, prompt: str, said: str) -> None:
    at = step(model=model, prompt=prompt)
    assert any(said in info.value for info in at.info)
    assert not charts(at)


def test_of_an_adapter_its_own_factors_take_the_step() -> None:
    at = step(model="finetune-lora", prompt="KING")
    assert at.selectbox(key="part").value == "blocks.0.mlp.down.lora_b"
    assert all(".lora_" in option for option in at.selectbox(key="part").options)
    assert "the weight goes from" in says(at)
    assert not at.warning
    assert step(model="finetune-lora", prompt="KING", part="embed.weight").warning


def test_what_the_step_writes_into_an_mlp_is_read_as_words() -> None:
    at = step(model="jobs-90")
    at.button(key="try The nurse … he").click().run()
    assert at.query_params["prompt"] == "the nurse said that he"
    lm = gptviz.load("jobs-90")
    found = lm.backward_lens("the nurse said that he", 0)  # type: ignore[attr-defined]
    he, she = (format_signed(found.change[-1, lm.token(word)]) for word in ("he", "she"))
    chances = [percent(each[-1]) for each in (found.probability_before, found.probability_after)]
    assert f"At “that” the step adds most for “he” ({he}) and “she” ({she}) to what" in says(at)
    assert f"with this alone “he” goes from {chances[0]} to {chances[1]}" in says(at)
    drawn = charts(at)[-1]["data"][0]
    np.testing.assert_allclose(
        numbers(drawn["z"]), found.changed_words(lm.tokenizer.label).values, atol=1e-6
    )
    table = at.dataframe[0].value
    assert list(table["Token read"]) == ["the", "nurse", "said", "that"]
    assert table["Asked for"].iloc[-1].startswith("he +")
    code = next(one.value for one in at.code if "backward_lens" in one.value)
    lines = dict[str, Any]()
    exec(code, lines)
    np.testing.assert_array_equal(lines["written"].change, found.change)


def test_a_model_without_mlps_has_no_words_of_a_step() -> None:
    at = step(model="induction", prompt="7 3 9 7 3")
    assert "in words" not in says(at)
    assert "backward_lens" not in "".join(one.value for one in at.code)
