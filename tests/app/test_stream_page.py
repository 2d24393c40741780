"""The page Residual stream: what its pictures show, the code of each, and what it suggests."""

from __future__ import annotations

import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import gptviz
from gptviz.figures.kit.format import percent
from gptviz.figures.kit.theme import plain_label
from gptviz.interp.reading import embeddings
from gptviz.interp.reading import stream as interp
from gptviz.interp.reading.probes import Probed
from gptviz.runs import fitted
from gptviz.ui.records import stream as page
from gptviz.ui.shell.frame import DEFAULT_PROMPT
from gptviz.ui.views.texts import OWN
from gptviz.ui.widgets import capitalise_text
from tests.app.opening import ROOT, chart, last_value, opened, press, ran, says
from tests.drawn import numbers
from tests.tiny import TinyModel
from tests.waiting import PATIENCE, wait_until

PAGE = "pages/stream.py"
TEXT = "hello you"


@pytest.fixture(autouse=True)
def _writer(tiny_model: TinyModel) -> None:
    tiny_model("writer", text=DEFAULT_PROMPT + TEXT, context_length=16)


def made(at: AppTest) -> dict[str, Any]:
    """What the code of the page makes, by name."""
    (code,) = (one.value for one in at.code)
    return ran(code)


def computed(at: AppTest) -> np.ndarray:
    """The numbers that the code of the page computes."""
    (code,) = (one.value for one in at.code)
    return np.asarray(last_value(code).values, float)


@pytest.mark.parametrize("position", ["all", "4"])
def test_what_is_written_is_drawn_and_computed_by_the_code(position: str) -> None:
    at = opened(PAGE, model="writer", prompt=TEXT, view=page.WRITTEN, position=position)
    drawn = chart(at, "written")["data"]
    shown = computed(at)
    assert shown.shape == (2, 4)

    heights = sorted(
        pair for one in drawn for pair in zip(numbers(one["x"]), numbers(one["y"]), strict=True)
    )
    np.testing.assert_allclose([y for _, y in heights], shown[0], atol=1e-6)
    every = interp.shares(gptviz.load("writer").stream(TEXT), list(TEXT)).values
    np.testing.assert_allclose(
        shown, np.median(every, axis=2) if position == "all" else every[:, :, 4], atol=1e-6
    )
    assert ("Position 4, “o”" in says(at)) == (position == "4")


def test_it_says_what_the_last_token_is_turned_into_and_from_which_part_on() -> None:
    lm = gptviz.load("writer")
    lens = lm.lens(TEXT)
    last = [int(one) for one in lens.top[:, -1, 0]]
    at = opened(PAGE, model="writer", prompt=TEXT)
    out = lm.tokenizer.label(last[-1])
    assert f"“{TEXT[-1]}” goes in, “{out}” comes out:" in says(at)
    settled = next(i for i in range(len(last)) if set(last[i:]) == {last[-1]})
    assert lens.layers[settled].title in says(at).partition("comes out:")[2].partition(".")[0]
    below = chart(at, "written")["layout"]["xaxis"]["ticktext"]
    assert [one.partition("→ ")[2] for one in below] == [
        plain_label(lm.tokenizer.label(one)) for one in last[1:]
    ]
    sizes = interp.shares(lm.stream(TEXT), list(TEXT)).values[0, :, -1]
    assert f"changes it most: it adds {sizes.max():.3g} times as much as was there" in says(at)


def places(at: AppTest) -> dict[int, tuple[float, float]]:
    """Where each position is drawn on the map."""
    tokens = [
        one
        for one in chart(at, "stream map")["data"]
        if "customdata" in one and one.get("text") is not None
    ]
    return {
        int(i): (x, y)
        for one in tokens
        for i, x, y in zip(
            numbers(one["customdata"]).ravel(), numbers(one["x"]), numbers(one["y"]), strict=True
        )
    }


@pytest.mark.parametrize("layer", ["embed", "blocks.1.mlp"])
def test_the_map_is_that_of_the_layer_on_axes_that_all_layers_share(layer: str) -> None:
    at = opened(PAGE, model="writer", prompt=TEXT, layer=layer)
    shown = computed(at)
    drawn = places(at)
    np.testing.assert_allclose([drawn[i] for i in range(len(TEXT))], shown, atol=1e-5)
    seen = gptviz.load("writer").stream(TEXT)
    row = [one.name for one in seen.layers].index(layer)
    by_layer = interp.rows(seen, unit=True)
    picture = interp.maps(by_layer, list(TEXT))[row]
    assert f"hold {percent(sum(picture.explained))} of the variance" in says(at)
    lengths = interp.lengths(seen, list(TEXT)).values
    assert (
        f"is {np.median(lengths[row]):.3g} here, and {np.median(lengths[0]):.3g} after the "
        "embedding" in says(at)
    )
    assert (
        f"it is {embeddings.trustworthiness(by_layer[row], picture)[0]:.2f} (called "
        "trustworthiness)" in says(at)
    )
    layout = chart(at, "stream map")["layout"]
    other = opened(PAGE, model="writer", prompt=TEXT, view=page.MAP, layer="blocks.0.mlp")
    assert chart(other, "stream map")["layout"]["xaxis"]["range"] == layout["xaxis"]["range"]


def when_it_says(*words: str, **asked: str) -> AppTest:
    """The map as soon as it is ready: the page says all these words."""
    at = opened(PAGE, model="writer", prompt=TEXT, view=page.MAP, **asked)

    def is_ready() -> bool:
        said = says(at.run())
        return all(one in said for one in words)

    wait_until(is_ready)
    return at


def test_a_map_by_tsne_comes_when_it_is_ready_with_the_stability_over_seeds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(embeddings, "ITERATIONS", 250)
    at = when_it_says(
        "Stability over", "t-SNE keeps neighbours together", method="t-SNE", seeds="true"
    )
    np.testing.assert_allclose([places(at)[i] for i in range(len(TEXT))], computed(at), atol=1e-5)
    assert len(chart(at, "over seeds")["layout"]["annotations"]) == 5


@pytest.mark.full
def test_a_map_by_umap_is_that_of_its_own_layer_fitted_to_its_picture_by_pca() -> None:
    # In a process of its own: UMAP's compiler and its eleven seconds of imports stay out of the
    # other tests.
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", BY_UMAP], check=True, timeout=PATIENCE, cwd=ROOT
    )


BY_UMAP = """
import numpy as np
import torch
from tests.app.test_stream_page import *
from tests.drawn import numbers

by_layer = interp.rows(gptviz.load("writer").stream(TEXT), unit=True)
pictures = interp.maps(by_layer, list(TEXT))
rows = {"embed": 0, "blocks.1.mlp": 4}
starts = {layer: embeddings.start(embeddings.pca(by_layer[row], 2)[0], 0) for layer, row in rows.items()}
# The first picture compiles UMAP: here, since the page would be run again and again beside it.
of_layer = {layer: embeddings.umap(by_layer[row], starts[layer], 0) for layer, row in rows.items()}
for layer, row in rows.items():
    at = when_it_says("UMAP keeps neighbours together", method="UMAP", layer=layer)
    shown = np.array([places(at)[i] for i in range(len(TEXT))])
    like = pictures[row].points.values
    # Turned, mirrored and resized, and nothing else: the distances are those of UMAP's own picture, in one proportion.
    ours, theirs = (np.linalg.norm(one[:, None] - one[None], axis=-1) for one in (shown, of_layer[layer]))
    proportion = (ours * theirs).sum() / (theirs**2).sum()
    np.testing.assert_allclose(ours, proportion * theirs, atol=1e-3 * ours.max())
    np.testing.assert_allclose(np.linalg.norm(shown - shown.mean(0)), np.linalg.norm(like - like.mean(0)), rtol=1e-3)
    torch.set_num_threads(1)  # as for the page: UMAP's compiler has raised it, and another last bit makes another picture
    np.testing.assert_allclose(computed(at), shown, atol=1e-5)
    assert np.abs(shown - like).max() > 0.01 * np.abs(like).max(), "it is not the picture by PCA"
"""


def test_what_is_suggested_is_true_of_the_text(tiny_model: TinyModel) -> None:
    tiny_model("writer", text=DEFAULT_PROMPT + TEXT, context_length=16)
    at = opened(PAGE, model="writer", prompt=TEXT, view=page.WRITTEN, position="all")
    seen = gptviz.load("writer").stream(TEXT)
    sizes = np.median(interp.shares(seen, list(TEXT)).values[0], axis=1)
    most = {
        "blocks.0.attention": "the attention of block 0",
        "blocks.0.mlp": "the MLP of block 0",
    } | {
        "blocks.1.attention": "the attention of block 1",
        "blocks.1.mlp": "the MLP of block 1",
    }
    writer = capitalise_text(most[seen.writers[int(sizes.argmax())]])
    assert (
        f"{writer} changes a token most: it adds {sizes.max():.3g} times as much as was there."
        in says(at)
    )
    at.button(key="try From tokens to guesses").click().run()
    assert (at.segmented_control(key="view").value, at.select_slider(key="layer").value) == (
        page.MAP,
        "embed",
    )


def test_a_link_to_a_view_that_is_gone_opens_the_map() -> None:
    for view in page.GONE:
        at = opened(PAGE, model="writer", prompt=TEXT, view=view)
        assert at.segmented_control(key="view").value == page.MAP
        assert not at.warning
        assert "view" not in at.query_params or at.query_params["view"] == [page.MAP]


def test_the_pointer_shows_how_long_each_vector_is() -> None:
    at = opened(PAGE, model="writer", prompt=TEXT, layer="blocks.0.mlp")
    (row,) = interp.lengths(gptviz.load("writer").stream(TEXT), list(TEXT)).values[[2]]
    for one in chart(at, "stream map")["data"]:
        if "customdata" in one:
            for i, said in zip(
                numbers(one["customdata"]).ravel(), one["hovertemplate"], strict=True
            ):
                assert f"<br>length {row[int(i)]:.3g}<" in said


def test_a_decoder_beside_an_encoder_shows_its_cross_attention(tiny_pair: TinyModel) -> None:
    tiny_pair()
    at = opened(PAGE, model="pair", prompt="abc", view=page.WRITTEN)
    names = [one["name"] for one in chart(at, "written")["data"]]
    assert "cross-attention" in names
    assert computed(at).shape == (2, 6)


@pytest.mark.parametrize(
    "changes", [{"n_layer": 0}, {"residual": "parallel"}, {"residual": "none"}, {"d_mlp": 0}]
)
def test_every_decoder_has_a_stream(changes: dict[str, Any], tiny_model: TinyModel) -> None:
    tiny_model("writer", text=DEFAULT_PROMPT + TEXT, context_length=16, **changes)
    at = opened(PAGE, model="writer", prompt=TEXT)
    for prompt in (TEXT, "h"):
        at.text_area(key="prompt").set_value(prompt)
        for view in page.VIEWS:
            assert not at.segmented_control(key="view").set_value(view).run().error, (prompt, view)


def probes_page() -> tuple[AppTest, Probed]:
    """The page with the probes of the place in the word, over a text of the reader's, and what the
    library finds.
    """
    own = "Hello You all " * 20
    label = "Place in the word"
    at = opened(
        PAGE, model="writer", prompt=TEXT, view=page.PROBES, label=label, fitted=OWN, own=own
    )
    return at, gptviz.load("writer").probe("word", own)


def test_probes_are_drawn_by_layer_and_computed_by_the_code() -> None:
    at, found = probes_page()
    drawn = [numbers(line["y"]) for line in chart(at, "probes")["data"]]
    np.testing.assert_allclose(drawn, found.labelled().values)
    np.testing.assert_array_equal(made(at)["result"].accuracy, found.accuracy)
    assert found.said in says(at)


def test_probes_that_take_long_say_so_first_and_are_fitted_when_somebody_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gptviz.ui.pages.stream.probes.MOST", 0)
    monkeypatch.setattr("gptviz.ui.shell.subject.asking.LONG", 0)
    at, found = probes_page()
    assert "Fitting probes takes about" in says(at)
    assert not at.get("plotly_chart")
    at.button(key="compute probe").click().run()
    wait_until(lambda: found.said in says(at.run()))


def test_of_addition_the_page_says_where_the_carry_appears_by_place_and_its_direction_is_an_edit() -> (
    None
):
    at = opened(PAGE, model="addition", view=page.PROBES, steer="true")
    assert "can be read after the attention of block 0" in says(at)
    assert [line["name"] for line in chart(at, "probes by place")["data"]] == [
        "place 8",
        "place 9",
        "place 10",
    ]
    found = gptviz.load("addition").label_direction("carry", "1", block=0)
    (slider,) = (one for one in at.slider if one.label == "Strength on every page")
    assert at.selectbox(key="value").value == "1"
    slider.set_value(2.0).run()
    assert at.query_params["edits"] == found.edit(2)
    at.button(key="switch the direction").click().run()
    assert at.query_params["edits"] == f"direction.{found.name}"
    at.button(key="switch the direction").click().run()
    assert "edits" not in at.query_params
    assert not at.warning


def test_labels_may_be_those_of_a_table(tiny_model: TinyModel) -> None:
    tiny_model("writer", text="abcd ")
    table = "text,label\n" + "".join(
        f"{''.join(text)}{end},{end}\n" for end in "ab" for text in product("abcd", repeat=2)
    )
    at = opened(PAGE, model="writer", view=page.PROBES, label="A table of yours", table=table)
    assert gptviz.load("writer").probe("table", table).said in says(at)
    assert "writer: " in says(
        opened(PAGE, model="writer", view=page.PROBES, label="A table of yours")
    )


def test_a_label_that_no_probe_can_be_fitted_to_is_said() -> None:
    at = opened(
        PAGE,
        model="writer",
        prompt=TEXT,
        view=page.PROBES,
        fitted=OWN,
        own="hello you all again and again",
    )
    assert any("of at least two kinds" in info.value for info in at.info)


def test_steering_says_is_or_are_and_the_code_computes_its_numbers() -> None:
    at = opened(PAGE, model="sentences", view=page.STEERING)
    assert "At strength 2 the likeliest next token is “are”" in says(at)
    assert "With it 6 of 6 held-out texts go on as their partners do." in says(at)
    names = made(at)
    drawn = [numbers(line["y"]) for line in chart(at, "steered")["data"]]
    np.testing.assert_allclose(drawn, names["steered"].probability.values, atol=1e-9)
    assert [text.value for text in at.text] == [text.strip() for text in names["steered"].texts]
    np.testing.assert_array_equal(
        numbers(chart(at, "separation")["data"][0]["y"]), names["result"].separation
    )


def test_the_slider_is_an_edit_that_every_page_shows_and_another_direction_takes_its_place() -> (
    None
):
    at = opened(PAGE, model="sentences", view=page.STEERING)
    (slider,) = (one for one in at.slider if one.label == "Strength on every page")
    slider.set_value(3.0).run()
    edit = str(at.query_params["edits"])
    assert edit.startswith("direction.number-")
    assert edit.endswith("=3")
    lens = opened(
        "pages/next_token.py", model="sentences", prompt="The king near the old tree", edits=edit
    )
    assert not lens.warning, [one.value for one in lens.warning]
    assert "are" in says(lens)
    at.selectbox(key="block").set_value("2").run()
    other = str(at.query_params["edits"])
    assert other.startswith("direction.number-")
    assert other != edit
    assert other.endswith("=3")
    assert "At strength 3" in says(at)
    assert not at.warning


def test_a_link_to_steering_finds_the_direction_that_it_asks_for() -> None:
    lists = {
        "toward": "The men near the tree\nThe kings near the tree",
        "away": "The man near the tree\nThe king near the tree",
    }
    found = gptviz.load("sentences").direction(
        *(text.splitlines() for text in lists.values()), block=1, name="number"
    )
    fitted._path(found.name).unlink()
    at = opened(PAGE, model="sentences", view=page.STEERING, edits=found.edit(1), **lists)
    assert not at.warning
    assert "at strength 1 it stays “is”" in says(at)


def test_where_no_texts_fit_the_model_they_are_asked_for() -> None:
    at = opened(PAGE, model="addition", view=page.STEERING)
    assert any("Type texts into both lists" in info.value for info in at.info)
    at = opened(PAGE, model="writer", prompt=TEXT, view=page.STEERING, toward="hey", away="hey")
    assert any("no direction between them" in info.value for info in at.info)


def test_a_direction_is_read_from_its_file_and_taken_home(tmp_path: Path) -> None:
    lm = gptviz.load("sentences")
    found = lm.direction(["The men", "The kings"], ["The man", "The king"], block=1, name="own")
    lm.write_direction(found.name, tmp_path / "plural.gguf")
    at = opened(PAGE, model="sentences", view=page.STEERING)
    at.file_uploader[0].upload("no.gguf", b"no direction").run()
    assert any("The file was not taken: no" in one.value for one in at.error)
    at.file_uploader[0].upload("plural.gguf", (tmp_path / "plural.gguf").read_bytes()).run()
    name = str(at.query_params["vector"])
    assert name.startswith("plural-")
    result = made(at)["result"]
    assert result.said in says(at)
    np.testing.assert_allclose(
        [numbers(line["y"]) for line in chart(at, "steered")["data"]],
        result.probability.values,
        atol=1e-9,
    )
    steered = lm.steer("The king", found.name, max_new_tokens=3)
    assert lm.steer("The king", name, max_new_tokens=3).texts == steered.texts
    press(at, "Back to the texts")
    assert "vector" not in at.query_params
    assert not at.error
