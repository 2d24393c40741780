"""The Embeddings page as a reader meets it, without a browser."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

import gptviz
from gptviz.figures.kit.format import percent
from gptviz.interp.reading import embeddings
from gptviz.interp.reading.waves import accuracy, powers, used_frequencies
from gptviz.runs import checkpoints
from gptviz.text import CharTokenizer
from gptviz.text.datasets.tasks import Modular
from gptviz.text.tokenizers.padded import PaddedTokenizer
from gptviz.ui.pages.embeddings import token_map
from gptviz.ui.records.embeddings import WAVES
from gptviz.ui.views import projections
from gptviz.ui.widgets import escape_markdown, in_quotes
from tests.app.conftest import clear_caches
from tests.app.opening import chart, last_value, opened, page_at, says
from tests.command_line import printed_elsewhere
from tests.drawn import numbers
from tests.tiny import TinyModel, scrambled, tiny
from tests.waiting import PATIENCE, wait_until

pytestmark = pytest.mark.usefixtures("tiny_saved")
page = page_at("pages/embeddings.py")


def until_ready(at: AppTest) -> AppTest:
    """Rerun the page, as its timer would, until nothing is being computed any more."""
    wait_until(lambda: not any("Computing" in info.value for info in at.run().info))
    return at


@pytest.mark.full
def test_the_page_opens_on_pca_without_loading_umap() -> None:
    printed_elsewhere("""
import sys
from streamlit.testing.v1 import AppTest
from tests.command_line import printed_elsewhere
at = AppTest.from_file("app.py", default_timeout=300).switch_page("pages/embeddings.py")
at.query_params["model"] = "tiny"
at.run()
assert not at.exception, at.exception
assert any("PCA keeps" in caption.value for caption in at.caption)
assert not {"sklearn", "umap", "numba"} & set(sys.modules)
""")


def test_another_method_another_seed_and_another_dimension_are_other_pictures() -> None:
    at = page(model="tiny", token="o")
    pictures = [chart(at, "map")]
    rows = embeddings.vectors(gptviz.load("tiny").model, "embedding").astype(np.float64)
    along = np.linalg.svd(rows - rows.mean(0), compute_uv=False) ** 2
    kept = along[:2].sum() / along.sum()
    assert (
        f"{percent(kept)} of the variance. The other {percent(1 - kept)} is not in the picture."
        in says(at)
    )
    at.segmented_control(key="method").set_value("t-SNE").run()
    pictures.append(chart(until_ready(at), "map"))
    assert "keeps neighbours together" in says(at)
    assert "trustworthiness" in says(at)
    at.segmented_control(key="seed").set_value("1").run()
    pictures.append(chart(until_ready(at), "map"))
    at.segmented_control(key="dimensions").set_value("3-D").run()
    pictures.append(chart(until_ready(at), "map"))
    assert len({json.dumps(picture) for picture in pictures}) == 4
    assert {trace["type"] for trace in pictures[-1]["data"]} == {"scatter3d"}


@pytest.mark.parametrize("carried", [[5], 5])  # Streamlit gives either
def test_a_click_on_a_point_of_a_sample_chooses_its_own_token(
    carried: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embeddings, "MOST_PLACED", 12)

    def clickable(
        *_: object, on_select: Callable[[], None] | None = None, **_others: object
    ) -> None:
        def click() -> None:
            assert on_select is not None
            st.session_state["map"] = SimpleNamespace(
                selection=SimpleNamespace(points=[{"customdata": carried}])
            )
            on_select()

        if on_select is not None:
            st.button("click", key="click", on_click=click)

    monkeypatch.setattr(st, "plotly_chart", clickable)
    at = until_ready(page(model="tiny", method="t-SNE"))
    at.button(key="click").click().run()
    names = at.selectbox(key="token").options
    assert (
        at.selectbox(key="token").value
        == names[embeddings.sample(len(names), 12, 0)[5]]
        != names[5]
    )


def test_pca_stands_in_until_a_slow_projection_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    plain = embeddings.project

    def slow(*args: Any, **others: Any) -> embeddings.Projection:
        if args[2] == "t-SNE":
            assert release.wait(60)
        return plain(*args, **others)

    monkeypatch.setattr(embeddings, "project", slow)
    monkeypatch.setattr(projections, "PATIENCE", 0.0)
    at = page(model="tiny", method="t-SNE")
    assert "Computing t-SNE" in says(at)
    assert "PCA keeps" in says(at)
    release.set()
    assert "t-SNE keeps" in says(until_ready(at))


def test_the_neighbours_shown_are_those_of_the_chosen_token() -> None:
    lm = gptviz.load("tiny")
    at = page(model="tiny", token="q")
    names = lm.tokenizer.labels()
    rows = embeddings.vectors(lm.model, "embedding").astype(np.float64)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    cosine = unit @ unit[names.index("q")]
    best = [names[i] for i in np.argsort(-cosine)[1:9]]
    assert [
        label.strip("\u2068\u2069")
        for label in chart(at, "neighbours")["layout"]["yaxis"]["ticktext"]
    ] == best
    quoted = ", ".join(in_quotes(name) for name in best[:3])
    assert f"To the model “q” looks most like {quoted}." in says(at)
    between = f"The cosine between the vectors of “q” and {in_quotes(best[0])}"
    assert f"{between} is {np.sort(cosine)[-2]:.2f}" in says(at)


def test_a_tied_model_says_that_its_two_matrices_are_one(tiny_model: TinyModel) -> None:
    tiny_model(tied=True)
    tiny_model("free")
    assert page(model="tiny").segmented_control(key="space").options == ["embedding = unembedding"]
    assert page(model="free").segmented_control(key="space").options == ["embedding", "unembedding"]


def test_the_tokens_of_the_prompt_are_ringed_and_an_empty_prompt_rings_the_default_one() -> None:
    at = page(model="tiny", prompt="fox of")

    def ringed() -> int:
        return sum(
            len(numbers(trace["x"]))
            for trace in chart(at, "map")["data"]
            if trace.get("name") == "in the prompt"
        )

    assert ringed() == len(set("fox of"))
    at.text_area(key="prompt").set_value("").run()
    assert any("empty" in info.value for info in at.info)
    assert ringed() > 4


def test_what_is_said_of_vowels_and_capitals_is_computed_or_not_offered(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny_model(text="aeiou bcdfg ABCDE")
    labels = gptviz.load("tiny").tokenizer.labels()
    where = {
        group: [labels.index(letter) for letter in group] for group in ("aeiou", "bcdfg", "ABCDE")
    }
    for together in ("aeiou", "ABCDE", ""):
        rows = np.random.default_rng(0).normal(size=(len(labels), 16)).astype(np.float32)
        for group in ("aeiou", "ABCDE"):
            rows[where[group]] = rows[where["bcdfg"]] * 1.01  # each beside a consonant
        if together:
            rows[where[together]] = 3 + 0.1 * rows[where[together]]
        monkeypatch.setattr(embeddings, "vectors", lambda model, space, rows=rows: rows)
        clear_caches()
        said = {button.label for button in page(model="tiny", token="b").button}
        assert (
            said & {"Vowels", "Capitals apart"}
            == {"aeiou": {"Vowels"}, "ABCDE": {"Capitals apart"}, "": set()}[together]
        )


def test_too_few_tokens_for_a_method_are_shown_by_pca_and_said(tiny_model: TinyModel) -> None:
    tiny_model(text="ab", d_model=3, n_head=1)
    at = until_ready(page(model="tiny", method="UMAP"))
    assert "UMAP needs at least 4 tokens; this vocabulary has 2. PCA is shown instead." in says(at)
    assert "too few tokens" in says(at)


def test_what_went_wrong_with_a_projection_is_never_markup(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = "[a](http://b) **bold** $y$"
    plain = embeddings.project

    def fails(*args: Any, **others: Any) -> embeddings.Projection:
        if args[2] == "UMAP":
            raise ValueError(hostile)
        return plain(*args, **others)

    monkeypatch.setattr(embeddings, "project", fails)
    monkeypatch.setattr(projections, "PATIENCE", PATIENCE)
    tiny_model()
    at = page(model="tiny", method="UMAP")
    assert f"{escape_markdown(hostile)}. PCA is shown instead." in [
        warning.value for warning in at.warning
    ]


def test_a_sample_is_called_one_and_says_whether_the_token_is_in_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(embeddings, "MOST_PLACED", 10)
    at = until_ready(page(model="tiny", method="t-SNE"))
    assert f"A sample of 10 of the {len(at.selectbox(key='token').options)} tokens." in says(at)
    shown = {text for trace in chart(at, "map")["data"] for text in trace.get("hovertext", [])}
    assert len(shown) == 10
    for name in ("a", "o", "e", "z"):
        at.selectbox(key="token").set_value(name).run()
        assert ("not among them" in says(at)) == (name not in shown)


def test_of_a_large_vocabulary_it_says_how_many_tokens_are_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(embeddings, "MOST_PLACED", 10)
    at = page(model="tiny", token="z")
    whole = len(at.selectbox(key="token").options)
    shown = {text for trace in chart(at, "map")["data"] for text in trace.get("hovertext", [])}
    assert 10 <= len(shown) < whole
    assert "z" in shown
    assert f"Drawn are {len(shown)} of the {whole} tokens" in says(at)


@pytest.mark.parametrize("n_tokens", [65, 300, 5_000])
def test_the_way_back_to_a_step_depends_on_the_snapshots_alone_and_is_bounded(
    n_tokens: int,
) -> None:
    every = tuple(range(0, 360, 10))
    assert token_map.way_back(every, None, n_tokens) == (None,)
    longest = token_map.way_back(every, 0, n_tokens)
    for step in every:
        way = token_map.way_back(every, step, n_tokens)
        assert (way[0], way[-1]) == (None, step)
        assert list(way[1:]) == sorted(way[1:], reverse=True)
        assert set(way[:-1]) <= set(longest), (
            "what leads to one step is on the way to every earlier one"
        )
    assert len(longest) - 2 <= max(1, token_map.MOST_CARRIED // n_tokens)
    assert (len(longest) == len(every) + 1) == (n_tokens == 65), (
        "of a small vocabulary every snapshot"
    )


@pytest.mark.full
def test_a_vocabulary_of_262_144_tokens_has_its_map_and_its_neighbours(home: Path) -> None:
    size = 262_144
    tokenizer = PaddedTokenizer(CharTokenizer("".join(map(chr, range(0x100, 0x2100)))), size)
    checkpoints.save(
        "large",
        scrambled(tiny(vocab_size=size, d_model=8, n_head=2, n_layer=1, d_mlp=2)),
        tokenizer,
        {},
    )
    at = opened("pages/embeddings.py", model="large", prompt="ĀāĂ", token="ă")
    assert at.selectbox(key="token").value == "ă"
    assert sum(chart.proto.ByteSize() for chart in at.get("plotly_chart")) < 20_000_000


def test_the_pictures_of_all_seeds_stand_side_by_side_with_how_far_they_agree(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embeddings, "ITERATIONS", 250)
    tiny_model()
    at = page(model="tiny", method="t-SNE", seeds="true")
    # the tour says "Stability over seeds" at once
    wait_until(lambda: "Stability over 5 seeds" in says(at.run()))
    rows = embeddings.vectors(gptviz.load("tiny").model, "embedding")
    names = [str(i) for i in range(len(rows))]
    agree = embeddings.stability(
        [
            np.asarray(embeddings.project(rows, names, "t-SNE", seed=seed).points.values)
            for seed in range(5)
        ]
    )
    assert (
        f"{percent(agree.kept)} are among its nearest in another (by chance: "
        f"{percent(agree.by_chance)})" in says(at)
    )
    drawn = chart(at, "over seeds")
    assert [note["text"] for note in drawn["layout"]["annotations"]] == [
        f"seed {i}" for i in range(5)
    ]
    assert not [
        c
        for c in page(model="tiny", method="PCA", seeds="true").get("plotly_chart")
        if c.proto.id.endswith("-over seeds")
    ]


def test_the_page_opens_at_the_last_token_of_the_prompt_until_one_is_chosen(
    tiny_model: TinyModel,
) -> None:
    tiny_model()
    at = page(model="tiny", prompt="the fox")
    assert at.selectbox(key="token").value == "x"
    at.text_area(key="prompt").set_value("the dog").run()
    assert at.selectbox(key="token").value == "g"
    at.selectbox(key="token").set_value("q").run()
    at.text_area(key="prompt").set_value("the fox").run()
    assert at.selectbox(key="token").value == "q"


def test_of_sums_on_a_clock_the_waves_are_those_of_the_model_and_the_code_computes_them() -> None:
    at = page(model="modular", view=WAVES)
    at.session_state["embeddings numbers"] = True
    lm = gptviz.load("modular")
    assert isinstance(lm.task, Modular)
    expected = powers(lm.model, lm.task)
    np.testing.assert_allclose(
        at.run().dataframe[-1].value.iloc[:, -1], expected.values.ravel(), atol=1e-9
    )
    (code,) = (one.value for one in at.code)
    np.testing.assert_allclose(last_value(code).values, expected.values, atol=1e-9)
    few = used_frequencies(expected)
    assert (
        f"are made of {len(few)} of {len(expected.axes[1].labels)} frequencies: "
        f"{', '.join(map(str, few))}" in says(at)
    )
    assert f"Of all sums it gets {percent(accuracy(lm.model, lm.task))} right" in says(at)
    with pytest.raises(ValueError, match="has not learned sums on a clock"):
        gptviz.load("shakespeare").waves()
