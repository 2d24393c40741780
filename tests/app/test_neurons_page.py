"""The Neurons page as a reader meets it, without a browser."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

import gptviz
from gptviz.figures.kit.format import format_count, percent
from gptviz.figures.kit.theme import plain_label
from gptviz.interp.reading.experts import load
from gptviz.interp.trace import run
from gptviz.language_model import units
from gptviz.machine import job
from gptviz.runs import checkpoints
from gptviz.text import CharTokenizer, passages
from gptviz.ui.pages.neurons import neurons
from gptviz.ui.records.embeddings import PAGE as EMBEDDINGS
from gptviz.ui.shell.subject import AskedAnalysis, model_key
from gptviz.ui.views import where_most
from gptviz.ui.views.texts import OWN, PASSAGES
from gptviz.ui.views.where_most import HELD_OUT, PROMPT, WRITTEN
from tests import hand_built
from tests.app.opening import chart, opened, page_at, press, says
from tests.app.test_code_of_pages import last_value
from tests.drawn import numbers
from tests.hand_built import Neuron, steered
from tests.tiny import TinyModel

TEXT = "the quick brown fox jumps over the lazy dog " * 5


@pytest.fixture(autouse=True)
def _mine(tiny_model: TinyModel) -> None:
    tiny_model("mine", context_length=32)


page = page_at("pages/neurons.py")


def offered(at: AppTest) -> list[str]:
    return [button.label for button in at.button if (button.key or "").startswith("try ")]


@pytest.fixture
def by_hand(home: object) -> str:
    """A model whose neuron 0 reads d and says i, and whose neuron 1 reads f and says b."""
    model = hand_built.hand_built((hand_built.nothing(),), neurons=((Neuron(3, 8), Neuron(5, 1)),))
    checkpoints.save("hand", model, CharTokenizer("abcdefghij"), {}, replace=True)
    return "hand"


def test_a_neuron_built_by_hand_is_shown_with_what_it_reads_and_says(by_hand: str) -> None:
    at = page(model=by_hand, text=PROMPT, prompt="abfcd", unit="blocks.0.mlp.neuron.1")
    frame = at.dataframe[0].value
    assert set(frame["neuron"]) == {0, 1}
    assert list(frame["Largest"]) == [1, 1]
    assert list(frame["Active"]) == pytest.approx([0.2, 0.2])
    assert "Neuron 1 of block 0" in says(at)
    (bars,) = chart(at, "neuron promoted")["data"]
    assert bars["customdata"][0] == "b"
    assert numbers(bars["x"])[0] == pytest.approx(hand_built.LOUD * 0.9)
    counts = numbers(chart(at, "neuron histogram")["data"][0]["y"])
    assert sorted(counts[~np.isnan(counts)]) == [1, 4]
    before, after = chart(at, "neuron steered")["data"]
    assert (before["name"], after["name"]) == ("before", "after")
    at_b = after["customdata"].index("b")
    assert numbers(after["x"])[at_b] > 0.99 > 0.2 > numbers(before["x"])[at_b]


def test_the_figures_of_a_neuron_are_what_it_does() -> None:
    lm = gptviz.load("mine")
    for query, text in (
        ({"text": OWN, "own": TEXT}, TEXT),
        ({"text": PROMPT, "prompt": "the fox"}, "the fox"),
    ):
        at = page(model="mine", block="1", **query)
        frame = at.dataframe[0].value.set_index("neuron")
        activity = lm.activity("blocks.1.mlp", text)
        neuron = int(at.dataframe[0].value["neuron"][0])
        for title, name in (("Largest", "largest"), ("Active", "active"), ("Effect", "effect")):
            np.testing.assert_allclose(
                frame[title].sort_index(), getattr(activity, name), atol=1e-6
            )
        shown = [activity.places(one)[: where_most.SHOWN] for one in range(len(frame))]
        alike = [
            Counter(
                int(activity.rows[row][at])
                for (row, at), value in zip(places, activity.highest[:, one], strict=False)
                if value > 0
            )
            for one, places in enumerate(shown)
        ]
        twice = [[one for one in tokens.most_common(2) if one[1] > 1] for tokens in alike]
        most = [sum(times for _, times in tokens) for tokens in twice]
        assert most[neuron] == max(most)
        assert list(frame[neurons.FEW_TOKENS].sort_index()) == most
        assert list(frame[neurons.FEW_TOKENS]) == sorted(most, reverse=True)
        places = alike[neuron].total()
        labels = [f"“{lm.tokenizer.label(token)}”" for token, _ in twice[neuron]]
        if labels:
            assert 2 * most[neuron] > places
            does = f"answers most to {' and '.join(labels)}."
            assert f"{most[neuron]} of the {places} places" in says(at)
        else:
            does = "is most active at"
        assert f"Neuron {neuron} of block 1 {does}" in says(at)
        counts = numbers(chart(at, "neuron histogram")["data"][0]["y"])
        np.testing.assert_array_equal(np.nan_to_num(counts), activity.histogram(neuron).values)
        ids = lm.encode(at.text_area(key="prompt").value)
        value = float(
            at.code[0].value.rpartition("lm.unit_set(")[2].partition(")")[0].rpartition(", ")[2]
        )
        for bars, put in zip(chart(at, "neuron steered")["data"], (None, value), strict=True):
            expected = steered(lm.model, lm.seen(ids), 1, neuron, put).softmax(-1)
            for label, share in zip(bars["customdata"], numbers(bars["x"]), strict=True):
                shares = [
                    float(expected[i])
                    for i in range(len(expected))
                    if plain_label(lm.tokenizer.label(i)) == label
                ]
                assert any(abs(one - share) < 1e-6 for one in shares), label


def test_the_contexts_are_where_the_model_says_that_the_neuron_is_most_active() -> None:
    opened = page(model="mine", block="0", text=OWN, own=TEXT, unit="blocks.0.mlp.neuron.4")
    lm = gptviz.load("mine")
    rows = lm.rows(TEXT)
    seen = lm.activity("blocks.0.mlp", TEXT)
    pieces = tuple((tuple(rows[row].tolist()), at) for row, at in seen.places(4)[:3])
    key = model_key(lm.name, "cpu")
    (often, times), *_ = Counter(
        lm.tokenizer.label(rows[row][at]) for row, at in seen.places(4)[: where_most.SHOWN]
    ).most_common()
    assert f"here “{often}” {format_count(times, 'time')}" in says(opened)
    (row, at), *_ = seen.places(4)
    label = lm.tokenizer.label(int(rows[row][at]))
    # of one or two tokens that stand there at least twice
    found = Counter(int(rows[row][at]) for row, at in seen.places(4)[: where_most.SHOWN])
    together = [times for _, times in found.most_common(2) if times > 1]
    alike = 2 * sum(together) > min(where_most.SHOWN, len(seen.places(4)))
    does = "answers most to" if alike else "is most active at"
    assert f"Neuron 4 of block 0 {does} “{often if alike else label}”" in says(opened)
    subject = SimpleNamespace(lm=lm, key=key)
    never = replace(seen, largest=seen.largest * 0, highest=-np.abs(seen.highest))
    assert "at none of the" in neurons.answer(subject, never, 4)[0]  # type: ignore[arg-type]
    # A neuron that is active at another token each time is not said to answer to one.
    one_each = [(row, at) for row in range(len(rows)) for at in range(len(rows[row]))]
    different = list({int(rows[row][at]): (row, at) for row, at in one_each}.values())
    assert len(different) > where_most.SHOWN
    kept = len(seen.highest)
    mixed = replace(
        seen,
        highest=np.ones_like(seen.highest),
        highest_at=np.broadcast_to(
            np.array(different[:kept])[:, None], (kept, *seen.highest_at.shape[1:])
        ),
    )
    sentence, then = neurons.answer(subject, mixed, 4)  # type: ignore[arg-type]
    assert "is most active at" in sentence
    assert "hard to say" in then
    for context, (row, at), value in zip(
        where_most.contexts(key, "blocks.0.mlp", 4, pieces),
        pieces,
        seen.highest[:, 4],
        strict=False,
    ):
        assert context.numbers[context.at] == pytest.approx(value)
        assert context.labels[context.at] == lm.tokenizer.label(row[at])
        of_row = run(lm.model, torch.tensor([row]), ["*.neurons"])["blocks.0.mlp.neurons"][0, :, 4]
        first = max(0, at - where_most.BEFORE)
        np.testing.assert_allclose(
            context.numbers, of_row[first : first + len(context.labels)], rtol=1e-5, atol=1e-6
        )


def test_a_neuron_is_chosen_in_the_select_box_too(by_hand: str) -> None:
    at = page(model=by_hand, text=PROMPT, prompt="abfcd")
    box = at.selectbox(key="neurons pick")
    assert [option.partition(":")[0] for option in box.options] == [
        f"neuron {i}" for i in at.dataframe[0].value["neuron"]
    ]
    other = next(i for i in (0, 1) if i != box.value)
    box.set_value(other).run()
    assert f"Neuron {other} of block 0" in says(at)
    assert f"blocks.0.mlp.neuron.{other}" in str(at.query_params["unit"])


def test_a_text_of_task_is_what_was_held_out_and_otherwise_what_the_model_writes(
    tiny_model: TinyModel,
) -> None:
    at = page(model="addition", tokens="1,024")
    assert at.selectbox(key="text").value == HELD_OUT
    assert "Over 1,024 tokens" in says(at)
    tiny_model("mine", context_length=32)
    at = page(model="mine")
    assert at.selectbox(key="text").value == WRITTEN
    assert HELD_OUT not in at.selectbox(key="text").options


def test_what_is_suggested_shows_the_neuron_it_is_about() -> None:
    at = page(model="mine", text=OWN, own=TEXT)
    assert "The one with the largest effect" in offered(at)
    assert "Turn it up" in offered(at)
    for label in offered(at):
        press(at, label)
        neuron = str(at.query_params["unit"]).rpartition(".")[2].strip("']")
        assert f"Neuron {neuron} of block" in says(at)
    assert at.select_slider(key="times").value == 8
    before, after = chart(at, "neuron steered")["data"]
    change = np.abs(numbers(after["x"]) - numbers(before["x"]))
    assert f"“{before['customdata'][int(change.argmax())]}”" in says(at)


def test_a_neuron_that_is_kept_is_an_edit_on_every_page() -> None:
    at = page(model="mine", text=PROMPT, prompt="the fox", unit="blocks.1.mlp.neuron.4", times="1")
    next(button for button in at.button if button.key == "keep neuron").click().run()
    assert "blocks.1.mlp.neuron.4=" in str(at.query_params["edits"])


def test_a_long_text_of_a_large_model_is_read_in_a_thread_and_then_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    quick = page(model="mine", text=OWN, own=TEXT).dataframe[0].value
    monkeypatch.setattr(where_most, "SOME", 0)
    at = page(model="mine", text=OWN, own=TEXT)
    (reading,) = [
        each
        for key, each in job._begun.items()
        if isinstance(key, AskedAnalysis) and key.analysis == "activity"
    ]
    reading.wait()
    at.run()
    assert reading.state == "done"
    assert at.dataframe[0].value.equals(quick)


def test_a_classifier_has_neurons_that_move_its_labels() -> None:
    at = page(model="classifier", text=PROMPT, prompt="a warm and funny film")
    assert "speak for no token" in says(at)
    before, after = chart(at, "neuron steered")["data"]
    assert set(before["customdata"]) == {"negative", "positive"}
    assert numbers(before["x"]).sum() == pytest.approx(1)
    assert numbers(after["x"]).sum() == pytest.approx(1)


def test_neurons_of_a_gated_mlp_show_their_lowest_activations_too(tiny_model: TinyModel) -> None:
    tiny_model("gated", context_length=32, mlp="gated")
    lm = gptviz.load("gated")
    seen = lm.activity("blocks.0.mlp", TEXT)
    neuron = int(seen.smallest.argmin())
    query = {
        "model": "gated",
        "block": "0",
        "text": OWN,
        "own": TEXT,
        "unit": f"blocks.0.mlp.neuron.{neuron}",
    }
    assert "Highest in the text: activation" in says(page(**query))
    assert "Lowest in the text: activation" in says(page(**query, side="Lowest"))


def test_a_text_that_cannot_be_read_is_an_error_that_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:

    def rows(*_: object) -> list[torch.Tensor]:
        raise ValueError("the text has nothing that this model can read")

    monkeypatch.setattr(units, "rows", rows)
    at = page(model="mine", text=OWN, own="other than any text before")
    assert any(
        "nothing that this model can read" in error.value.replace("\\", "") for error in at.error
    )


def test_of_a_model_from_elsewhere_neurons_read_passages_of_books_at_first_or_a_text_of_the_reader(
    tiny_model: TinyModel,
) -> None:
    tiny_model(
        "mine",
        text="".join(set(passages())),
        context_length=40,
        card={"imported_from": "somebody/model"},
    )
    at = opened("pages/neurons.py", model="mine")
    assert at.selectbox(key="text").value == PASSAGES
    assert "Over 4,096 tokens" in says(at)
    assert "text=gptviz.text.passages(), most=4096" in "".join(code.value for code in at.code)
    at = opened("pages/neurons.py", model="mine", text=OWN, own="a rabbit and a watch")
    assert "Over 20 tokens" in says(at)
    assert not [one for one in at.select_slider if one.key == "tokens"], "nothing to choose"
    tiny_model(
        "long",
        text="".join(set(passages())),
        context_length=40,
        card={"imported_from": "somebody/model"},
    )
    at = opened("pages/neurons.py", model="long")
    has = len(gptviz.load("long").encode(passages()))
    assert at.select_slider(key="tokens").options == ["1,024", "4,096", f"{has:,}"]
    tiny_model("own")
    assert PASSAGES not in opened("pages/neurons.py", model="own").selectbox(key="text").options


def test_a_link_to_the_waves_of_neurons_leads_to_those_of_embeddings() -> None:
    at = page(model="modular", view="Waves")
    assert not at.exception
    assert [title.value for title in at.title] == [EMBEDDINGS.question]
    assert at.segmented_control(key="view").value == "Waves"


def test_of_a_mixture_it_says_which_experts_the_tokens_pass_and_switches_one_off(
    tiny_model: TinyModel,
) -> None:
    tiny_model("mixed", context_length=32, mlp="experts", n_expert=4, n_active=2)
    at = page(model="mixed", view="Experts", prompt="the quick fox", block="1")
    weights = gptviz.load("mixed", device="cpu").experts("the quick fox")
    shares = load(weights).values
    z = numbers(chart(at, "routing")["data"][0]["z"])
    np.testing.assert_allclose(np.nan_to_num(z), weights.values[1], atol=1e-6)
    np.testing.assert_allclose(
        numbers(chart(at, "load of experts")["data"][0]["z"]), shares, atol=1e-6
    )
    busiest = int(shares[1].argmax())
    assert f"Expert {busiest} of block 1** is chosen for {percent(shares[1, busiest])}" in says(at)
    assert f"each would have {percent(0.5)} of them (2 of 4)" in says(at)
    at.session_state["neurons numbers"] = True
    np.testing.assert_allclose(at.run().dataframe[-1].value["share of the tokens"], shares.ravel())
    np.testing.assert_array_equal(last_value(at.code[0].value).values, shares)
    at.button(key="expert off").click().run()
    assert not at.exception
    assert at.button(key="expert off").disabled
    z = numbers(chart(at, "routing")["data"][0]["z"])
    assert np.isnan(z[:, busiest]).all()


def test_a_model_without_experts_is_not_offered_their_view() -> None:
    at = page(model="mine", view="Experts")
    assert not at.exception
    assert not [one for one in at.get("button_group") if one.key == "view"]
    assert at.dataframe[0].value.columns[0] == "neuron"
