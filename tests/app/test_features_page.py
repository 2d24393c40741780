"""The Features page as a reader meets it, without a browser."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import gptviz
from gptviz.figures.kit.format import percent
from gptviz.interp.dictionaries.superposition import KEPT, SPARSITIES
from gptviz.language_model import dictionaries
from gptviz.ui.pages.features import superposition
from gptviz.ui.pages.features.features import PARTS, first_usual
from gptviz.ui.records.features import SUPERPOSITION
from gptviz.ui.views.texts import OWN
from tests.app.opening import chart, opened, page_at, says
from tests.drawn import numbers
from tests.tiny import TinyModel
from tests.waiting import wait_until

TEXT = "a cab bed " * 40

page = page_at("pages/features.py")


@pytest.fixture
def fitted(tiny_model: TinyModel) -> str:
    """The name of the dictionary of a tiny model, which is called mine."""
    tiny_model("mine", text="abcdefg ", context_length=32)
    return str(gptviz.load("mine").fit_dictionary(1, 20, k=3, steps=60, text=TEXT).name)


def features(at: AppTest) -> list[int]:
    return [int(one) for one in at.dataframe[0].value["feature"]]


def test_a_feature_is_shown_with_what_makes_it_active_and_what_writes_it(fitted: str) -> None:
    lm = gptviz.load("mine")
    at = page(model="mine", text=OWN, own=TEXT, prompt="a cab", by="Effect")
    activity = lm.activity(f"dictionary.{fitted}", TEXT, 4_096)
    assert features(at) == activity.ranked("effect")
    first = features(at)[0]
    often = percent(float(activity.active[first]))
    assert f"(feature {first})" in says(at)
    assert f"feature {first} is active at {often} of the tokens." in says(at)
    words = at.dataframe[0].value["Most at"].tolist()
    for feature, word in zip(features(at), words, strict=True):
        row, place = activity.places(feature)[0]
        strongest = lm.tokenizer.label(int(activity.rows[row][place]))
        assert word == (strongest if activity.largest[feature] > 0 else "")
    (said,) = (one.value for one in at.markdown if one.value.startswith("**It notices"))
    beside = [f"“{word}” ({one})" for one, word in zip(features(at), words, strict=True)]
    said = said.replace("\\", "")
    assert sum(one in said for one in beside[1:]) == min(2, len({*words} - {words[0], ""}))
    name = f"dictionary.{fitted}.feature.{first}"
    for key, expected in (
        ("written_by", lm.written_by("a cab", name).values),
        ("nearest_features", lm.nearest_features(name).values),
    ):
        (bars,) = chart(at, f"feature {key}")["data"]
        np.testing.assert_allclose(
            numbers(bars["x"]),
            expected[np.argsort(-np.abs(expected), kind="stable")][:PARTS],
            rtol=1e-5,
        )
    before, after = chart(at, "feature steered")["data"]
    assert (before["name"], after["name"]) == ("before", "after")
    next(button for button in at.button if button.key == "switch feature").click().run()
    assert str(at.query_params["edits"]).strip("[]'") == name


def test_features_are_sorted_by_what_they_do_at_a_token_and_on_the_prompt(fitted: str) -> None:
    lm = gptviz.load("mine")
    activity = lm.activity(f"dictionary.{fitted}", TEXT, 4_096)
    token = lm.tokenizer.id_of("c")
    at = page(model="mine", text=OWN, own=TEXT, prompt="a cab", by="At a token", at="c")
    order = features(at)
    assert order == np.argsort(-activity.by_token[:, token], kind="stable").tolist()
    on_prompt = lm.features("a cab")
    at = page(model="mine", text=OWN, own=TEXT, prompt="a cab")
    count = len(on_prompt.axes[1].labels)
    assert sorted(features(at)[:count]) == sorted(int(one) for one in on_prompt.axes[1].labels)


def test_a_dictionary_is_measured_when_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dictionaries, "MOST_MEASURED", 512)
    at = page(model="sentences")
    assert "of the loss" not in says(at)
    next(button for button in at.button if button.label == "Measure it").click().run()
    wait_until(lambda: "of the loss" in says(at.run()))
    quality = gptviz.load("sentences").dictionary_quality()
    assert f"and {percent(quality.recovered)} of the loss" in says(at)
    (losses,) = [
        table.value["loss (nats)"] for table in at.dataframe if "loss (nats)" in table.value
    ]
    assert losses.tolist() == quality.labelled().values.tolist()


def test_a_model_without_a_dictionary_offers_to_fit_one(tiny_model: TinyModel) -> None:
    tiny_model("mine")
    at = page(model="mine")
    (said,) = (one.value for one in at.markdown if "no list of patterns yet" in one.value)
    assert re.search(r"Make one here \(about .+\), or look at the patterns of sentences\.", said)
    assert "Fit a dictionary" in [button.label for button in at.button]
    at.button(key="patterns of the example").click().run()
    assert at.selectbox(key="model").value == "sentences"
    assert gptviz.load("sentences").dictionaries()


def test_a_folder_of_saelens_opens_from_the_page_and_one_that_is_none_is_refused(
    tiny_model: TinyModel, fitted: str, tmp_path: Path
) -> None:
    folder = tmp_path / "theirs"
    gptviz.load("mine").write_dictionary(fitted, folder)
    tiny_model("other", text="abcdefg ", context_length=32, seed=1)

    def drop(at: AppTest, name: str, only: str = "") -> AppTest:
        files = [
            (f"{name}/{path.name}", path.read_bytes(), "application/octet-stream")
            for path in sorted(folder.iterdir())
            if path.name.endswith(only)
        ]
        return at.file_uploader[0].set_value(files).run()

    at = page(model="other", text=OWN, own=TEXT, prompt="a cab")
    drop(at, "half", only=".json")
    assert "The folder was not taken" in at.error[0].value
    assert not gptviz.load("other").dictionaries()
    drop(at, "../../theirs")
    assert not at.error
    (name,) = gptviz.load("other").dictionaries()
    assert name.startswith("theirs-")
    assert f"The dictionary {name} has" in says(at)
    # one more stands beside it, and is the one that is shown
    drop(at, "more")
    assert str(at.selectbox(key="dictionary").value).startswith("more-")


def test_the_page_opens_on_a_feature_that_is_not_for_massive_vectors() -> None:
    largest = np.array([25_300.0, 20.0, 30.0, 0.0])
    assert first_usual([0, 2, 1, 3], largest) == 2
    assert first_usual([1, 0, 2, 3], largest) == 1
    assert first_usual([3, 0], np.zeros(4)) == 3


def test_the_toy_is_drawn_as_it_was_trained() -> None:
    at = page(view=SUPERPOSITION, sparsity="0%")
    toy = superposition.train_toys(superposition.USUAL)
    lines = [line for line in chart(at, "toy arrows")["data"] if line["name"] == "features"]
    ends = np.array([[numbers(line["x"])[1], numbers(line["y"])[1]] for line in lines])
    np.testing.assert_allclose(ends, toy.arrows[SPARSITIES.index(0.0)].T, atol=1e-6)
    kept = np.flatnonzero(toy.lengths.values[SPARSITIES.index(0.0)] >= KEPT) + 1
    assert f"two dimensions keep the features {', '.join(map(str, kept))}.**" in says(at)
    at = page(view=SUPERPOSITION, sparsity="98%")
    assert "keep all five features" in says(at)
    assert "finds them again" in says(at)


def test_what_is_no_feature_is_refused_in_words(fitted: str) -> None:
    lm = gptviz.load("mine")
    for name, message in {
        "blocks.0.attention.head.1": "is no feature",
        f"dictionary.{fitted}.feature.20": "counted from 0 to 19",
        "dictionary.gone.feature.1": "no dictionary gone",
    }.items():
        for asked in (lm.promoted, lm.nearest_features, lambda name: lm.written_by("a cab", name)):
            with pytest.raises(ValueError, match=message):
                asked(name)


def test_a_transcoder_is_shown_as_any_dictionary() -> None:
    at = opened("pages/features.py", model="sentences", dictionary="sentences-mlp-1")
    assert not at.exception
    said = [
        text.value for text in at.caption if "128 features of the output of the MLP" in text.value
    ]
    assert len(said) == 1


def test_all_dictionaries_stand_side_by_side_once_they_are_measured() -> None:
    at = opened("pages/features.py", model="sentences")
    next(one for one in at.button if one.label == "Measure all").click().run()
    wait_until(lambda: "sentences-mlp-2" in tables(at.run()))


def tables(at: AppTest) -> str:
    return " ".join(str(table.value) for table in at.dataframe)
