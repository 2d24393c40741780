"""The Attribution page as a reader meets it, without a browser."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import gptviz
from gptviz.figures.kit.format import format_signed, power
from gptviz.text.datasets.sentences import Sentences
from gptviz.ui.pages.attribution import logit
from tests.app.opening import chart, grid, page_at, says
from tests.drawn import numbers
from tests.tiny import TinyModel

ALPHABET = "abcdefghijklmnopqrstuvwxyz ,.\n"


@pytest.fixture(autouse=True)
def _mine(tiny_model: TinyModel) -> None:
    tiny_model("mine", text=ALPHABET)


page = page_at("pages/attribution.py")


def test_it_opens_on_the_likeliest_token_less_the_next_and_the_bars_add_up(
    tiny_model: TinyModel,
) -> None:
    tiny_model("mine", text=ALPHABET, residual="pre-norm", norm_bias=True)
    at = page(model="mine", prompt="a cab")
    lm = gptviz.load("mine")
    best, next_best = lm.model(lm.encode("a cab")[None])[0, -1].topk(2).indices.tolist()
    found = lm.attribute("a cab", best, None, next_best)
    (bars,) = chart(at, "parts")["data"]
    values = numbers(bars["x"])
    assert values[-1] == pytest.approx(found.logit, abs=1e-4)
    assert values[:-1].sum() == pytest.approx(values[-1])
    assert values[0] == pytest.approx(max((part.value for part in found.parts), key=abs))
    assert (
        f"**“{lm.tokenizer.label(best)}”**, after “a␣cab” (position 4), minus that of "
        f"**“{lm.tokenizer.label(next_best)}”**" in says(at)
    )
    assert f"adds up: error {power(found.error)}" in says(at)
    assert ":green-badge" in says(at)
    assert "passes through the final norm" in says(at)
    assert {"Into an MLP", "A head that speaks against it"} <= {
        button.label for button in at.button
    }


def test_the_grid_has_every_head_and_mlp_and_the_strongest_head_is_split_by_what_it_reads() -> None:
    at = page(
        model="mine", prompt="a cab", position="3", minus="none: its logit alone", logit_of="q"
    )
    lm = gptviz.load("mine")
    found = lm.attribute("a cab", "q", 3)
    values, drawn = grid(at, "attribution grid")
    assert values == pytest.approx(found.grid(lm.model.config).values, abs=1e-6)
    most = np.nanmax(np.abs(values))
    assert drawn["ends"] == pytest.approx([-most, most], abs=1e-6), "one scale about zero"
    strongest = max(found.sources, key=lambda head: abs(found.of(head)))
    bars = chart(at, "sources")["data"][0]
    assert numbers(bars["y"]) == pytest.approx(found.sources[strongest][:4], abs=1e-6)
    at.selectbox(key="part").set_value("blocks.0.attention.head.1").run()
    assert numbers(chart(at, "sources")["data"][0]["y"]) == pytest.approx(
        found.sources["blocks.0.attention.head.1"][:4], abs=1e-6
    )
    links = {link.proto.label: link.proto.query_string for link in at.main.get("page_link")}
    assert "block=0&head=1" in links["Open it on Attention"]
    at.selectbox(key="part").set_value("blocks.1.mlp").run()
    neurons = lm.attribute("a cab", "q", 3, neurons_of="blocks.1.mlp").neurons["blocks.1.mlp"]
    shown = numbers(chart(at, "sources")["data"][0]["y"])
    assert shown == pytest.approx(sorted(neurons, key=abs, reverse=True)[: len(shown)], abs=1e-6)
    assert f"All the others together add {format_signed(neurons.sum() - shown.sum())}." in says(at)
    links = {link.proto.label: link.proto.query_string for link in at.main.get("page_link")}
    assert f"unit=blocks.1.mlp.neuron.{int(abs(neurons).argmax())}" in links["Open it on Neurons"]
    assert "Switch off MLP of block 1" in [button.label for button in at.button]


@pytest.mark.parametrize(
    "residual", ["none", "norm-only", "plain", "post-norm", "parallel-one-norm", "double-norm"]
)
def test_every_kind_of_residual_adds_up_and_is_told_what_is_frozen(
    tiny_model: TinyModel, residual: str
) -> None:
    tiny_model("mine", text=ALPHABET, residual=residual, final_norm=False)
    at = page(model="mine", prompt="a cab")
    assert ":green-badge" in says(at)
    assert ("No norm lies between" in says(at)) == (
        residual in ("none", "plain", "parallel-one-norm")
    )
    assert ("takes the place of the stream" in says(at)) == (residual in ("none", "norm-only"))


@pytest.mark.parametrize("smear", [0, 3])
def test_an_embedding_with_a_share_of_the_token_before_says_so(
    tiny_model: TinyModel, smear: int
) -> None:
    tiny_model("mine", text=ALPHABET, smear=smear)
    assert (
        "a share of the vector of the token before" in says(page(model="mine", prompt="a cab"))
    ) == bool(smear)


def test_a_sum_that_is_off_is_red_and_says_so(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gptviz.interp.explaining.decomposition import Stream

    added = Stream.added_by_parts
    tiny_model("mine", text=ALPHABET, output_bias=True)

    def twice(self: Stream, pulled: Any) -> Any:
        return {
            name: values * (1 + name.endswith("output.bias"))
            for name, values in added(self, pulled).items()
        }

    monkeypatch.setattr(Stream, "added_by_parts", twice)
    at = page(model="mine", prompt="a bad cab")
    assert ":red-badge" in says(at)
    assert "does not add up" in says(at)
    assert "missing or counted twice" in says(at)


def test_a_sum_that_is_off_by_the_rounding_of_the_products_alone_is_no_fault() -> None:
    at = page(model="shakespeare", prompt="ROMEO:", precision="bfloat16")
    assert ":orange-badge[:material/check: adds up but for rounding" in says(at)
    assert "rounds every product: choose float32" in says(at)
    assert not at.warning


def test_a_model_without_blocks_or_with_an_edit_is_shown(tiny_model: TinyModel) -> None:
    tiny_model("flat", text=ALPHABET, n_layer=0)
    flat = page(model="flat", prompt="a cab")
    assert ":green-badge" in says(flat)
    tiny_model("mine", text=ALPHABET)
    edited = page(model="mine", prompt="a cab", edits="blocks.1.attention.head.2,blocks.0.mlp")
    assert ":green-badge" in says(edited)


@pytest.mark.parametrize(
    ("difference", "words"),
    [
        (math.log(2.5), "2.5 times as likely as"),
        (-math.log(4), "0.25 times as likely as"),
        (math.log(2000), "2,000 times as likely as"),
        (15.0, "more than a million times as likely as"),
        (-15.0, "less than a millionth as likely as"),
        (math.nan, "not known to be likelier than"),
    ],
)
def test_a_difference_of_logits_is_told_as_how_much_likelier_one_token_is(
    difference: float, words: str
) -> None:
    assert logit._times(difference) == words


def test_the_label_of_a_classifier_is_taken_apart_where_its_head_is_linear(
    tiny_classifier: TinyModel,
) -> None:
    tiny_classifier()
    at = page(model="judge")
    assert ":green-badge" in says(at)
    assert "position" not in at.session_state
    tiny_classifier("curved", head="first")
    curved = page(model="curved")
    assert "passes what it reads through a curved function" in says(curved)
    assert not curved.get("plotly_chart")


def test_the_heads_of_a_decoder_that_read_the_source_are_there(tiny_pair: TinyModel) -> None:
    tiny_pair()
    at = page(model="pair", part="blocks.0.cross_attention.head.0", position="-1")
    assert at.slider[0].value == at.slider[0].max > 0, "−1 is the last position on every page"
    assert ":green-badge" in says(at)
    lm = gptviz.load("pair")
    prompt = at.text_area(key="prompt").value
    assert len(numbers(chart(at, "sources")["data"][0]["y"])) == len(lm.source(prompt))


def test_it_opens_on_the_right_answer_to_a_known_prompt_against_the_wrong_one_and_leads_to_such_a_prompt() -> (
    None
):
    at = page(model="sentences")
    known = Sentences().contrasts()[0]
    assert f"minus that of **“{known.wrong}”** is" in says(at)
    assert f"times as likely as **“{known.wrong}”**. {known.about}" in says(at)
    at = page(model="sentences", prompt="Mary")
    at.button(key=f"try {known.title}").click().run()
    assert at.text_area(key="prompt").value == known.clean
    assert f"minus that of **“{known.wrong}”** is" in says(at)


def test_a_token_that_is_not_listed_can_be_typed(tiny_model: TinyModel) -> None:
    letters = "".join(chr(place) for place in range(0x4E00, 0x4E00 + 60))
    tiny_model("many", text=letters)
    at = page(model="many", prompt=letters[:3])
    listed = at.selectbox(key="logit_of").options
    other = next(letter for letter in letters if letter not in listed)
    there = page(model="many", prompt=letters[:3], logit_of=other)
    assert f"The logit of **“{other}”**" in says(there)
    assert not any("link asks" in warning.value for warning in there.warning)
    odd = page(model="many", prompt=letters[:3], minus="0")
    assert any("The link asks for minus = “0”" in warning.value for warning in odd.warning)
    assert odd.get("plotly_chart")


def test_a_bar_of_a_word_is_the_sum_over_its_tokens() -> None:
    place = {
        "model": "mine",
        "prompt": "a cab",
        "position": "3",
        "part": "blocks.0.attention.head.0",
    }
    tokens, words = (
        numbers(chart(page(**place, words=words), "sources")["data"][0]["y"])
        for words in ("false", "true")
    )
    assert words == pytest.approx([tokens[0], tokens[1], tokens[2:4].sum()])


def test_the_stream_is_split_by_the_features_of_a_dictionary_with_what_it_misses() -> None:
    name = gptviz.load("mine").fit_dictionary(1, 20, k=3, steps=60, text="a cab, a bed. " * 40).name
    at = page(
        model="mine", prompt="a cab", part=f"dictionary.{name}", minus="none: its logit alone"
    )
    shares = gptviz.load("mine").feature_attribution("a cab", name)
    (bars,) = chart(at, "sources")["data"]
    np.testing.assert_allclose(numbers(bars["y"]), shares.values, rtol=1e-6)
    assert f"its error, {format_signed(shares.values[-2])}" in says(at)
    assert "Open the first one on Features" in says(at) or at.get("page_link")
