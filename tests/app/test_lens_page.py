"""The page Logit lens: what it sends to the grid, the cell that was opened, and what it
suggests.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import gptviz
from gptviz.components.kit import unpack
from gptviz.components.lens_grid import LensCell
from gptviz.figures.kit.format import percent
from gptviz.interp.reading.lens import MOST_LED, leaders, settled_layers
from gptviz.language_model.core import decode_answer, special_tokenizer
from gptviz.machine import job
from gptviz.ui.pages.lens import grid
from gptviz.ui.shell.frame import DEFAULT_PROMPT
from gptviz.ui.views.texts import OWN
from gptviz.ui.widgets import visit
from tests.app.opening import chart, charts, opened, ran, says, views
from tests.drawn import numbers
from tests.tiny import TinyModel

PAGE = "pages/lens.py"
TEXT = "hello you"


def sent(at: AppTest) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The payload of the grid."""
    return unpack(max((view.proto.bytes for view in views(at)), key=len))


def course(at: AppTest) -> Any:
    """What the tokens of the open cell come to from layer to layer, by the code of the page."""
    (code,) = (one.value for one in at.code if "course" in one.value)
    return ran(code)["course"]


@pytest.fixture(autouse=True)
def _writer(tiny_model: TinyModel) -> None:
    tiny_model("writer", text=DEFAULT_PROMPT + TEXT, context_length=16)


def test_the_grid_has_what_the_head_reads_after_every_layer_and_its_code_computes_it() -> None:
    header, arrays = sent(opened(PAGE, model="writer", prompt=TEXT))
    made = ran(header["code"])
    seen = made["result"]
    np.testing.assert_allclose(arrays["probability"], seen.probability, atol=1e-6)
    np.testing.assert_allclose(arrays["entropy"], seen.entropy, atol=1e-6)
    np.testing.assert_array_equal(arrays["rank"], seen.rank)
    np.testing.assert_allclose(arrays["really"], seen.true_probability, atol=1e-6)
    lm = gptviz.load("writer")
    own = lm.model(lm.encode(TEXT)[None])[0].softmax(-1)
    names = [lm.tokenizer.label(i) for i in own.argmax(-1).tolist()]
    assert [header["names"][i] for i in arrays["top"][-1, :, 0]] == names
    np.testing.assert_allclose(
        arrays["probability"][-1, :, 0], own.max(-1).values.detach(), atol=1e-6
    )
    assert header["tokens"] == [*TEXT.replace(" ", "␣")]
    assert header["true"] == [*TEXT.replace(" ", "␣")[1:], None]
    assert [layer["name"] for layer in header["layers"]][-1] == "blocks.1.mlp"


@pytest.mark.parametrize("model", ["writer", "sentences", "shakespeare"])
def test_the_answer_says_what_the_layer_before_would_guess_and_that_all_later_ones_agree(
    model: str,
) -> None:
    prompt = {} if model == "sentences" else {"prompt": TEXT}
    at = opened(PAGE, model=model, **prompt)
    lm = gptviz.load(model)
    seen = lm.lens(at.text_area(key="prompt").value)
    top = [int(token) for token in seen.top[:, -1, 0]]
    name = lm.tokenizer.label
    first = next(i for i in range(len(top)) if len(set(top[i:])) == 1)
    said = says(at).replace("\\", "")
    assert f"“{name(top[-1])}”" in said
    assert percent(float(seen.probability[-1, -1, 0])) in said
    if first:
        before = seen.layers[first - 1].title
        assert f"After {before} it would guess “{name(top[first - 1])}”" in said
        assert seen.layers[first].title in said
    else:
        assert "After every layer it would guess" in said


@pytest.mark.parametrize("n_layer", [12, 13])
def test_a_deep_model_opens_on_how_its_final_guess_comes_up_from_block_to_block(
    tiny_model: TinyModel, n_layer: int
) -> None:
    tiny_model("deep", text=DEFAULT_PROMPT + TEXT, context_length=16, n_layer=n_layer)
    header, arrays = sent(opened(PAGE, model="deep", prompt=TEXT))
    assert (header["declared"]["colour"]["usual"] == "final") == (n_layer > 12)
    assert len(header["layers"]) == (1 + n_layer if n_layer > 12 else 1 + 2 * n_layer)
    np.testing.assert_allclose(arrays["final"][-1], arrays["probability"][-1, :, 0], atol=1e-6)


def test_the_last_cell_is_open_and_the_link_and_the_grid_open_others() -> None:
    for cell in (
        {},
        {"layer": "blocks.9.mlp", "position": "0"},
        {"layer": "embed", "position": "-1"},
        {"layer": "embed"},
    ):
        assert "After the MLP of block 1, at position 8" in says(
            opened(PAGE, model="writer", prompt=TEXT, **cell)
        )
    at = opened(PAGE, model="writer", prompt=TEXT, layer="blocks.0.attention", position="3")
    assert "After the attention of block 0, at position 3" in says(at)
    assert len(charts(at)[1]["data"]) == len(course(at).ids)
    of = sent(at)[0]["of"]
    at.session_state["remembered on this page"] = {"lens cell": (of, LensCell(0, 1))}
    at.run()
    assert any("After the embedding, at position 1" in text.value for text in at.markdown)
    at.text_area(key="prompt").set_value("how").run()
    assert any("After the MLP of block 1, at position 2" in text.value for text in at.markdown), (
        "it belongs to another text"
    )


def test_a_token_of_the_readers_choice_is_followed_in_the_figure_and_in_the_code() -> None:
    at = opened(PAGE, model="writer", prompt=TEXT, follow="w")
    followed = course(at)
    lm = gptviz.load("writer")
    assert followed.ids[0] == lm.token("w")
    on_top = charts(at)[1]["data"][-1]
    assert on_top["name"] == "w"
    np.testing.assert_allclose(numbers(on_top["y"]), followed.probability.values[0], atol=1e-6)


def test_another_page_forgets_what_was_opened() -> None:
    at = opened(PAGE, model="writer", prompt=TEXT)
    at.session_state[visit._VISIT] = {"lens cell": ("", LensCell(0, 0))}
    at.switch_page("pages/attention.py").run()
    assert visit._VISIT not in at.session_state


def test_an_encoder_decoder_is_shown_over_its_own_answer_with_its_cross_attention(
    tiny_pair: TinyModel,
) -> None:
    tiny_pair()
    at = opened(PAGE, model="pair", prompt="abc")
    header, arrays = sent(at)
    lm = gptviz.load("pair")
    answer, ended = decode_answer(lm, "abc")
    read = [special_tokenizer(lm).start, *answer][: lm.model.config.context_length]
    assert header["tokens"] == [lm.tokenizer.label(i) for i in read]
    assert "blocks.0.cross_attention" in [layer["name"] for layer in header["layers"]]
    assert (header["true"][-1] is not None) == (
        ended or len(answer) == lm.model.config.context_length
    )
    made = ran(header["code"])
    np.testing.assert_allclose(arrays["probability"], made["result"].probability, atol=1e-6)


def test_what_is_suggested_is_true_of_the_text(tiny_model: TinyModel) -> None:
    tiny_model("writer", text=DEFAULT_PROMPT + TEXT, context_length=16, n_layer=4)
    at = opened(PAGE, model="writer", prompt=TEXT)
    seen = gptviz.load("writer").lens(TEXT)
    answer = percent(float(seen.probability[-1, -1, 0]))
    assert any(
        answer in text.value and seen.layers[int(settled_layers(seen)[-1])].title in text.value
        for text in at.markdown
    )
    at.button(key="try Right and wrong").click().run()
    assert sent(at)[0]["asked"] == {"colour": "rank"}
    share = (seen.rank[-1, :-1] == 1).mean()
    assert any(
        f"at {percent(share)} of the positions in the last row" in caption.value
        for caption in at.caption
    )


def test_a_large_model_is_read_after_every_block_until_more_is_asked_for(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grid, "MOST", 0)
    tiny_model("writer", text=DEFAULT_PROMPT + TEXT, context_length=16)
    at = opened(PAGE, model="writer", prompt=TEXT)
    header, arrays = sent(at)
    assert [layer["name"] for layer in header["layers"]] == [
        "embed",
        "blocks.0.mlp",
        "blocks.1.mlp",
    ]
    made = ran(header["code"])
    np.testing.assert_allclose(arrays["probability"], made["result"].probability, atol=1e-6)
    at.segmented_control(key="rows").set_value(grid.SUBLAYERS).run()
    assert len(sent(at)[0]["layers"]) == 5
    within = opened(PAGE, model="writer", prompt=TEXT, layer="blocks.0.attention", position="3")
    assert len(sent(within)[0]["layers"]) == 5, "a link to a cell within a block shows its row"
    assert any(
        "After the attention of block 0, at position 3" in text.value for text in within.markdown
    )
    within.segmented_control(key="rows").set_value(grid.BLOCKS).run()
    assert len(sent(within)[0]["layers"]) == 3


def test_the_end_of_a_long_text_is_shown_and_said(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grid, "MOST_POSITIONS", 5)
    tiny_model("writer", text=DEFAULT_PROMPT + TEXT, context_length=16)
    at = opened(PAGE, model="writer", prompt=TEXT)
    header, arrays = sent(at)
    assert header["tokens"] == [*TEXT[-5:].replace(" ", "␣")]
    assert header["first"] == 4
    assert arrays["entropy"].shape == (5, 5)
    assert any("the last 5 are shown" in caption.value for caption in at.caption)
    made = ran(header["code"])
    np.testing.assert_allclose(arrays["probability"], made["result"].probability, atol=1e-6)


def test_a_fitted_lens_is_fitted_in_sight_then_read_and_measured_beside_the_grid(
    tiny_model: TinyModel,
) -> None:
    tiny_model("writer", text=DEFAULT_PROMPT + TEXT, context_length=16)
    own = {"fitted": OWN, "own": TEXT * 20}
    at = opened(PAGE, model="writer", prompt=TEXT, kind="tuned", **own)
    while going := [one for one in job._begun.values() if one.is_active]:
        going[0].wait()
    at.run()
    header, arrays = sent(at)
    made = ran(header["code"])
    np.testing.assert_allclose(arrays["probability"], made["result"].probability, atol=1e-6)
    assert "kind='tuned'" in header["code"]
    lm = gptviz.load("writer")
    lens = lm.fitted_lens("tuned", TEXT * 20)
    assert f"{lens.compare_lenses(lm.model, 'tuned')} {lens.support}" in says(at)
    drawn = [line["y"] for line in chart(at, "lens KL")["data"]]
    np.testing.assert_allclose([numbers(line) for line in drawn], lens.measured[:, 0], atol=1e-6)
    at.segmented_control(key="kind").set_value("logit").run()
    assert not any("foretells" in text.value for text in at.markdown)
    np.testing.assert_array_equal(sent(at)[1]["probability"][-1], arrays["probability"][-1])


def test_a_lens_is_read_from_a_file_and_its_layers_are_the_rows(
    tiny_model: TinyModel, tmp_path: Path
) -> None:
    tiny_model("writer", text=DEFAULT_PROMPT + TEXT, context_length=16)
    lm = gptviz.load("writer")
    lm.write_lens(tmp_path / "own.pt", "jacobian", TEXT * 20)
    at = opened(PAGE, model="writer", prompt=TEXT, kind="Jacobian", from_file="true")
    assert not views(at)
    at.file_uploader[0].upload("no.pt", b"no lens at all").run()
    assert any("The file was not taken: no" in one.value for one in at.error)
    at.file_uploader[0].upload("own.pt", (tmp_path / "own.pt").read_bytes()).run()
    while going := [one for one in job._begun.values() if one.is_active]:
        going[0].wait()
    at.run()
    assert not at.error
    header, arrays = sent(at)
    assert [layer["name"] for layer in header["layers"]] == ["blocks.0.mlp", "blocks.1.mlp"]
    seen = lm.lens(TEXT, kind="jacobian", fitted_to=TEXT * 20, blocks_only=True)
    np.testing.assert_allclose(arrays["probability"], seen.probability[1:], atol=1e-6)
    np.testing.assert_array_equal(ran(header["code"])["result"].probability, arrays["probability"])
    again = opened(
        PAGE,
        model="writer",
        prompt=TEXT,
        kind="Jacobian",
        from_file="true",
        lens=at.query_params["lens"],
    )
    np.testing.assert_array_equal(sent(again)[1]["probability"], arrays["probability"])
    gone = opened(PAGE, model="writer", prompt=TEXT, kind="Jacobian", from_file="true", lens="gone")
    assert any("no lens gone on this machine" in one.value for one in gone.info)


def test_tokens_of_a_cell_change_places_and_the_page_says_what_that_makes_of_the_guess() -> None:
    prompt = "The king near the old tree"
    at = opened(PAGE, model="sentences", prompt=prompt)
    assert at.selectbox(key="swap with").label == "Swap “is” with…"
    at.selectbox(key="swap with").set_value("are").run()
    assert at.query_params["edits"] == gptviz.load("sentences").swap("blocks.2.mlp", "is", "are")
    assert "in place of “is” (100 %)" in says(at)
    assert "Tokens “is” and “are” change places in the stream after the MLP of block 2." in says(at)
    header, arrays = sent(at)
    assert header["names"][arrays["top"][-1, -1, 0]] == "are"
    (slider,) = (one for one in at.slider if one.label == "Strength of the swap")
    slider.set_value(0.25).run()
    assert "0.25 of the way. The final guess at position 5 stays “is”" in says(at)
    (slider,) = (one for one in at.slider if one.label == "Strength of the swap")
    slider.set_value(0.0).run()
    assert "edits" not in at.query_params
    assert at.selectbox(key="swap with").value == at.selectbox(key="follow").value
    other = opened(PAGE, model="sentences", prompt=prompt, edits="swap.blocks.1.mlp.100.101=1")
    assert at.selectbox(key="swap with")
    assert not other.warning


def test_tokens_that_led_after_any_layer_have_a_line_and_the_rest_is_named() -> None:
    at = opened(PAGE, model="sentences", prompt="The king near the old tree")
    lm = gptviz.load("sentences")
    led = [lm.tokenizer.label(token) for token in leaders(lm.lens("The king near the old tree"), 5)]
    named = [line["name"] for line in chart(at, "lens cell lines")["data"] if line["showlegend"]]
    assert named[:0:-1] == led[:MOST_LED]
    said = next(caption.value for caption in at.caption if "In colour" in caption.value)
    assert all(f"“{token}”" in said for token in led[MOST_LED:])
    assert len(led) > MOST_LED
