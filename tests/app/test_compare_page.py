"""The page Compare as a reader meets it, without a browser: both sides, their difference, and the
way back from a link.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

import gptviz
from gptviz.figures.kit.format import brief, percent
from gptviz.interp import compare
from gptviz.labelled_array import Float64Array
from gptviz.runs import checkpoints
from gptviz.runs.imports import import_model
from gptviz.ui.pages.compare.views import SHOWN
from tests import command_line
from tests.app.conftest import with_snapshots
from tests.app.opening import button, chart, opened, page_at, ran, says
from tests.drawn import numbers
from tests.tiny import TinyModel

PROMPT = "the fox"


@pytest.fixture
def trained(tiny_model: TinyModel) -> Path:
    """A model with snapshots of the steps 0, 1 and 16."""
    return with_snapshots(tiny_model(positions="rotary"))


page = page_at("pages/compare.py", model="tiny", prompt=PROMPT)


def bars(at: AppTest) -> dict[str, float]:
    (trace,) = chart(at, "differences")["data"]
    return dict(zip(trace["y"], numbers(trace["x"]).tolist(), strict=True))


def test_a_model_with_snapshots_is_compared_with_an_earlier_step_of_its_training(
    trained: Path,
) -> None:
    at = page()
    assert "They differ in the step of training" in says(at)
    a, b = (gptviz.load("tiny", step=step).side(PROMPT) for step in (None, 1))
    found = compare.chosen(compare.next_token(a, b), SHOWN)
    assert found.difference is not None
    np.testing.assert_allclose([*bars(at).values()], found.difference.values, atol=1e-6)
    first, second = chart(at, "pairs")["data"]
    np.testing.assert_allclose(numbers(first["x"]), found.a.values, atol=1e-6)
    np.testing.assert_allclose(numbers(second["x"]), found.b.values, atol=1e-6)


def test_a_model_without_snapshots_is_compared_with_one_other_token(tiny_model: TinyModel) -> None:
    tiny_model()
    at = page()
    assert "They differ in the prompt" in says(at)
    other = at.text_area(key="b_prompt").placeholder
    assert len(other) == len(PROMPT)
    assert sum(x != y for x, y in zip(other, PROMPT, strict=True)) == 1


def test_the_code_opens_b_with_its_step_its_edits_and_its_prompt(trained: Path) -> None:
    at = page(compared="Attention", b_prompt="the dog", b_step="1", b_edits="blocks.0.mlp")
    (code,) = [one.value for one in at.code if "compare." in one.value]
    at.session_state["compare numbers"] = True
    at.run()
    table = ran(code)["result"].table()
    shown = at.dataframe[-1].value
    np.testing.assert_allclose(
        shown.iloc[:, -1].to_numpy(float), table.values.ravel()[: len(shown)], atol=1e-6
    )
    assert "B − A" in set(shown["side"])


@pytest.mark.parametrize(
    ("view", "key", "asked"),
    [
        ("Attention", "attention", {}),
        ("Logit lens", "lens", {}),
        ("Logit lens", "lens", {"compared_lens": "entropy"}),
        ("Heads", "scores", {}),
    ],
)
def test_both_sides_have_one_scale_and_the_difference_one_around_zero(
    view: str, key: str, asked: dict[str, str], trained: Path
) -> None:
    at = page(compared=view, **asked)
    a, b, difference = (
        chart(at, f"{key} {which}")["data"][0] for which in ("A", "B", "difference")
    )
    assert (a["zmin"], a["zmax"]) == (b["zmin"], b["zmax"])
    assert max(np.nanmax(numbers(one["z"])) for one in (a, b)) <= a["zmax"] + 1e-6
    assert difference["zmin"] == -difference["zmax"] < 0
    np.testing.assert_allclose(
        numbers(difference["z"]), numbers(b["z"]) - numbers(a["z"]), atol=1e-6
    )
    assert np.nanmax(np.abs(numbers(difference["z"]))) == pytest.approx(difference["zmax"])


def test_swapping_flips_every_sign_and_swapping_again_brings_everything_back(trained: Path) -> None:
    at = page(b_prompt="a dog", b_step="1", b_edits="blocks.0.attention.head.1")
    before = bars(at)
    scale = chart(at, "pairs")["layout"]["xaxis"]["range"]
    at.button(key="swap sides").click().run()
    assert (at.query_params["step"], at.query_params["prompt"]) == ("1", "a dog")
    assert at.query_params["edits"] == "blocks.0.attention.head.1"
    assert at.query_params["b_prompt"] == PROMPT
    assert bars(at) == {token: -value for token, value in before.items()}
    assert chart(at, "pairs")["layout"]["xaxis"]["range"] == pytest.approx(scale), (
        "one scale for both"
    )
    at.button(key="swap sides").click().run()
    assert bars(at) == before


def test_a_link_reopens_both_sides(trained: Path, tiny_model: TinyModel) -> None:
    tiny_model("other", seed=3)
    at = page(
        step="1", b_model="other", b_prompt="a dog", b_edits="blocks.1.mlp", compared="Logit lens"
    )
    assert not at.warning
    assert "A: tiny after 1 step · B: other, 1 edit" in says(at).replace("**", "")
    assert "They differ in the model, the step of training, the edits and the prompt" in says(at)


def test_the_same_model_with_the_same_text_has_no_difference_at_all(trained: Path) -> None:
    at = page(b_step="last", b_prompt=PROMPT)
    assert "every difference is 0" in says(at)
    assert set(bars(at).values()) == {0.0}


def test_texts_of_other_lengths_and_models_of_other_shapes_say_why_there_is_no_difference(
    trained: Path, tiny_model: TinyModel
) -> None:
    assert "A has 7 tokens and B has 3 tokens" in says(page(compared="Attention", b_prompt="fox"))
    tiny_model("deeper", n_layer=3)
    at = page(compared="Logit lens", b_model="deeper")
    assert "A has 5 layers and B has 7 layers" in says(at)
    assert {"A", "B"} <= {c.proto.id.split()[-1] for c in at.get("plotly_chart")}
    tiny_model("letters", text="the foxy cat")
    at = page(b_model="letters")
    assert "The vocabularies differ" in says(at)
    assert page(b_model="letters", compared="Embeddings").get("plotly_chart")


def test_an_edit_or_a_model_that_there_is_not_is_named(trained: Path) -> None:
    at = page(b_edits="blocks.9.mlp,blocks.0.mlp")
    assert "blocks.9.mlp: there is no block 9" in says(at)
    assert "tiny, 1 edit" in says(at)
    assert "b_model = “nobody”" in says(page(b_model="nobody"))


def test_a_suggestion_sets_b_and_what_it_says_is_true(
    trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = list[tuple[int, tuple[int, ...]]]()
    distribution = compare.distribution

    def counted(side: compare.Side) -> Float64Array:
        read.append((id(side.model), side.ids))
        return distribution(side)

    monkeypatch.setattr(compare, "distribution", counted)
    at = page()
    assert len(read) == len(set(read)) >= 3, (
        "B, and what is suggested: each is read once; A gives more than this"
    )
    at.button(key="try Without its strongest head").click().run()
    edit = str(at.query_params["b_edits"])
    lm = gptviz.load("tiny")
    found = compare.next_token(lm.side(PROMPT), lm.edited(edit).side(PROMPT))
    np.testing.assert_allclose(
        [*bars(at).values()], compare.chosen(found, SHOWN).difference.values, atol=1e-6
    )  # type: ignore[union-attr]


TWINS = {
    "model": "jobs-90",
    "b_model": "jobs-10",
    "compared": "Answers",
    "prompt": "the nurse said that",
}


def test_twins_answer_with_the_shares_in_their_data() -> None:
    at = page(**TWINS)
    task = gptviz.load("jobs-90", device="cpu").task
    assert task is not None
    sentences, words = task.questions()
    first, second, *shares = chart(at, "answers")["data"]
    for drawn, marks, name in zip((first, second), shares[:2], ("jobs-90", "jobs-10"), strict=True):
        lm = gptviz.load(name, device="cpu")
        np.testing.assert_allclose(
            numbers(drawn["x"]), lm.answers(sentences, words).values[:, 0], atol=1e-6
        )
        counted = [row[0] for row in lm.shares_in_data(sentences, words)]
        np.testing.assert_allclose(numbers(marks["x"]), [share.value for share in counted])
        reach = numbers(marks["x"]) + numbers(marks["error_x"]["array"])
        np.testing.assert_allclose(reach, [share.interval[1] for share in counted])
    differs = numbers(second["x"]) - numbers(first["x"])
    assert f"After “{sentences[int(np.abs(differs).argmax())]}” A and B differ most" in says(at)
    # Who is alike in the data is alike in the vectors: in A a nurse is said of as a teacher is, in
    # B as a pilot.
    assert "A: nearest to “nurse” are “teacher”" in says(at).replace("**", "")
    assert "B: nearest to “nurse” are “pilot”" in says(at).replace("**", "")
    of_a, of_b = [
        one.value.count("the nurse said that she was")
        for one in at.code
        if "the nurse said that" in one.value
    ][:2]
    assert of_a > of_b


def test_a_model_with_a_twin_leads_to_it() -> None:
    at = page(model="jobs-90", prompt="the nurse said that", b_model="sentences")
    (notice,) = [one for one in says(at).splitlines() if "jobs-10" in one and "she" in one]
    lm, other = (gptviz.load(name, device="cpu") for name in ("jobs-90", "jobs-10"))
    assert percent(float(lm.answers(["the nurse said that"], ["she"]).values[0, 0])) in notice
    assert percent(float(other.answers(["the nurse said that"], ["she"]).values[0, 0])) in notice
    button(at, "Other data").click().run()
    assert "b_model" not in at.query_params, "it is the one that B has unless another is chosen"
    assert "**B**: jobs-10" in says(at)
    assert at.query_params["compared"] == "Answers"


def test_ones_own_sentences_and_words_are_answered_and_what_cannot_be_read_is_named() -> None:
    at = page(**TWINS, sentences="the pilot knew that\nthe", answer_words="he, nurse")
    (bars, *_) = chart(at, "answers")["data"]
    lm = gptviz.load("jobs-90", device="cpu")
    wanted = lm.answers(["the pilot knew that", "the"], ["he", "nurse"]).values
    np.testing.assert_allclose(numbers(bars["x"]), wanted[:, 0], atol=1e-6)
    at = page(**TWINS, answer_words="queen")
    assert "cannot answer 'the nurse said that' with 'queen'" in says(at)
    assert not at.exception


def test_two_gguf_files_of_one_model_differ_by_what_their_bits_cost(
    tiny_model: TinyModel, tmp_path: Path, capsys: command_line.Capture
) -> None:
    tiny_model("mine", d_model=64, d_mlp=96, n_head=2, tied=True)
    for kind in ("Q8_0", "Q4_0"):
        file = tmp_path / f"{kind}.gguf"
        command_line.output(
            capsys, "export", "mine", "--format", "gguf", "--weights", kind, "--out", file
        )
        import_model(str(file), name=kind)
    at = page_at("pages/compare.py", model="Q8_0", prompt=PROMPT)(
        b_model="Q4_0", compared="Weights"
    )
    a, b = (gptviz.load(kind) for kind in ("Q8_0", "Q4_0"))
    shares = compare.relative(compare.weights(a.side(PROMPT), b.side(PROMPT)))
    np.testing.assert_allclose(
        numbers(chart(at, "weights that differ")["data"][0]["z"]), shares.values, atol=1e-6
    )
    # Steps of an eighth and of a 127th of the largest of 32 numbers of a bell: 4 bits are off by
    # about a twelfth.
    of_bits = shares.values[shares.values > 0]  # the table of positions stays in float32
    assert 0.05 < of_bits.min() <= of_bits.max() < 0.15
    moved = compare.moved_guesses(a.side(PROMPT), b.side(PROMPT))
    assert moved is not None
    assert f"a guess moves by **{brief(float(moved.values.mean()))} nats**" in says(at)
    assert "A is Q8_0" in says(at)
    assert "B is Q4_0" in says(at)
    printed = command_line.output(
        capsys, "compare", "Q8_0", "Q4_0", "--what", "weights", "--prompt", PROMPT
    )
    assert "1 of 10 matrices are the same to the bit" in printed
    assert f"moves by {moved.values.mean():.4f} nats on average" in printed
    at = page_at("pages/compare.py", model="Q8_0", prompt=PROMPT)(
        b_model="Q4_0", b_prompt="the", compared="Weights"
    )
    assert "Let A and B read the same tokens to see what that does" in says(at)


def test_a_matrix_that_was_nothing_but_zeros_in_a_is_the_one_that_differs_most(
    tiny_model: TinyModel,
) -> None:
    opened = checkpoints.load(tiny_model("after"))
    with torch.no_grad():
        opened.model.blocks[1].get_parameter("mlp.down.weight").zero_()
    checkpoints.save("before", opened.model, opened.tokenizer, {})
    at = page_at("pages/compare.py", model="before", prompt="the")(
        b_model="after", compared="Weights"
    )
    assert not at.exception
    assert (
        "Of all matrices, **mlp.down of block 1** differs most: in A all its numbers are 0."
        in says(at)
    )


def test_the_units_of_a_layer_that_differ_most_are_named_and_a_feature_is_one(home: Path) -> None:
    lm = gptviz.load("sentences")
    text = "When Mary and John went to the shop, John gave a book to"
    query = {"model": "sentences", "compared": "Units", "b_step": "256", "prompt": text}
    sides = lm.side(text), gptviz.load("sentences", step=256).side(text)
    for asked, layer, title in (
        ({}, "dictionary.sentences-features", "Feature {} of sentences-features"),
        ({"compared_layer": "MLP of block 1"}, "blocks.1.mlp", "Neuron {} of block 1"),
        ({"compared_layer": "attention of block 0"}, "blocks.0.attention", "Head {} of block 0"),
    ):
        at = opened("pages/compare.py", **query, **asked)
        both = compare.units(*sides, layer)
        assert both.difference is not None
        most = int(np.abs(both.difference.values).argmax())
        of_a, of_b = (brief(float(one.values[most])) for one in (both.a, both.b))
        said = f"{title.format(most)} differs most: {both.a.unit} {of_a} in A, {of_b} in B."
        assert said in says(at)
        drawn = chart(at, "unit differences")["data"][0]
        assert max(map(abs, numbers(drawn["x"]))) == pytest.approx(both.largest, rel=1e-4)
        (code,) = [one.value for one in at.code if "compare." in one.value]
        made = ran(code)["result"].table()
        np.testing.assert_allclose(made.values, both.table().values, atol=1e-6)


def test_a_dictionary_that_does_not_fit_b_and_layers_of_other_sizes_say_why(
    tiny_model: TinyModel,
) -> None:
    tiny_model("other", text="When Mary and John went to the shop, gave a book")
    query = {"model": "sentences", "compared": "Units", "b_model": "other"}
    at = opened("pages/compare.py", **query)
    assert "is that of another model" in says(at)
    at = opened("pages/compare.py", **query, compared_layer="MLP of block 1")
    assert "unit by unit there is no difference" in says(at)
