"""The Heads page as a reader meets it, without a browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest
from torch.nn import functional as F

import gptviz
from gptviz.figures.kit.format import brief
from gptviz.interp.reading.overview import largest_head
from gptviz.interp.trace import run
from gptviz.interp.units import head_scores, head_weights
from gptviz.interp.units.head_scores import HeadScores
from gptviz.interp.units.head_weights import by_chance, composition
from gptviz.interp.units.unit import Unit
from gptviz.language_model.units import repeated_tokens
from gptviz.machine import job
from gptviz.runs import checkpoints
from gptviz.text import CharTokenizer, passages
from gptviz.text.datasets.sentences import Sentences
from gptviz.ui.pages.heads import does, where
from gptviz.ui.pages.heads.does import HELD_OUT, PROMPT
from gptviz.ui.records.heads import DOES, READS, WHERE
from gptviz.ui.shell.subject import AskedAnalysis, model_key
from gptviz.ui.views import held_out
from gptviz.ui.views.texts import OWN, PASSAGES
from tests import hand_built
from tests.app.opening import chart, grid, opened, page_at, payload, press, says
from tests.drawn import numbers
from tests.tiny import TinyModel

page = page_at("pages/heads.py")


def link(at: AppTest, label: str) -> dict[str, list[str]]:
    return next(
        parse_qs(one.proto.query_string)
        for one in at.main.get("page_link")
        if label in one.proto.label
    )


@pytest.fixture
def circuit(home: object) -> str:
    """The induction circuit built by hand, with the letters a … j as its tokens."""
    checkpoints.save(
        "circuit", hand_built.induction_circuit(), CharTokenizer("abcdefghij"), {}, replace=True
    )
    return "circuit"


def test_the_page_opens_on_the_induction_head_with_its_pattern_and_the_scores_of_all(
    circuit: str,
) -> None:
    at = page(model=circuit)
    lm = gptviz.load(circuit)
    expected = head_scores.head_scores(lm.model, repeated_tokens(lm)).values["induction"]
    values, drawn = grid(at, "heads grid")
    np.testing.assert_allclose(values, expected, atol=1e-6)
    assert drawn["ends"] == [0, 1]
    assert [cell["name"] for row in drawn["rows"] for cell in row["cells"] if cell["chosen"]] == [
        "blocks.1.attention.head.2"
    ]
    middle = sorted(expected.flat)[expected.size // 2 - 1 : expected.size // 2 + 1]
    also = int((expected >= head_scores.CLEARLY).sum()) - 1
    do = "does" if also == 1 else "do"
    others = f" {also} of the other {expected.size - 1} heads {do} so too." if also else ""
    assert (
        "Head 2 of block 1 finds where the same token stood before, and reads what came next.** "
        f"{100 * expected.max():.1f} % of its attention goes there, on average.{others} "
        "They read random tokens, said twice:" in says(at)
    )
    # over the prompt no random tokens are read
    assert "said twice" not in says(page(model=circuit, over="The prompt", score="Self"))
    assert f"Half of the {expected.size} heads have at most {brief(sum(middle) / 2)}." in says(at)
    frame = at.dataframe[0].value
    assert list(frame["head"][:1]) == ["1.2"]
    assert list(frame.columns)[:2] == ["head", "Induction"]
    assert sorted(frame["Induction"], reverse=True) == list(frame["Induction"])
    shown = payload(at, "heads pattern")[1]["pattern"]
    pattern = run(lm.model, repeated_tokens(lm)[:1])["blocks.1.attention.pattern"][0, 2].numpy()
    np.testing.assert_allclose(np.nan_to_num(shown), pattern, atol=1e-6)
    # The example is the largest share, but for those on the first token and on the token itself.
    places = [(i, j) for i in range(len(pattern)) for j in range(1, i)]
    largest = max(float(pattern[at]) for at in places)
    query, key = max(at for at in places if pattern[at] >= largest - does.NEARLY)
    ids = repeated_tokens(lm)[0].tolist()
    assert ids[key - 1] == ids[query], "it came after the same token"
    reads, is_read = (lm.tokenizer.label(ids[one]) for one in (query, key))
    assert f"at “{reads}” head 2 of block 1 reads “{is_read}” most" in says(at)
    assert "Open head 2 of block 1 on Attention" in [
        one.proto.label for one in at.main.get("page_link")
    ]


def test_the_loss_without_each_head_is_a_column_and_a_score(circuit: str) -> None:
    lm = gptviz.load(circuit)
    rows = {f"{row['block']}.{row['head']}": row["delta_loss"] for row in lm.heads(losses=True)}
    at = page(model=circuit, score="Loss without it")
    frame = at.dataframe[0].value.set_index("head")
    assert frame["Loss without it"].to_dict() == pytest.approx(rows)
    assert set(frame.index[:2]) == {"0.1", "1.2"}, "both heads of the circuit"
    low, high = grid(at, "heads grid")[1]["ends"]
    assert high == -low == pytest.approx(max(abs(value) for value in rows.values()))


def test_the_heads_are_scored_in_one_pass_and_each_has_one_without_it(
    circuit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scored = list[object]()
    losses = list[object]()
    score = head_scores.head_scores
    lose = head_scores.rises_without

    def counted_score(*args: Any, **settings: Any) -> HeadScores:
        scored.append(args)
        return score(*args, **settings)

    def counted_losses(*args: Any) -> Iterator[tuple[Unit, float]]:
        for one in lose(*args):
            losses.append(one)
            yield one

    monkeypatch.setattr(head_scores, "head_scores", counted_score)
    monkeypatch.setattr(head_scores, "rises_without", counted_losses)
    at = page(model=circuit)
    assert "Loss without it" in at.dataframe[0].value
    config = gptviz.load(circuit).model.config
    assert (len(scored), len(losses)) == (1, config.n_layer * config.n_head)


def test_a_large_model_is_asked_for_its_losses_first(
    circuit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(does, "LITTLE", 0)
    at = page(model=circuit, over=PROMPT, prompt="abcabcd")
    assert "Loss without it" not in at.dataframe[0].value.columns
    next(button for button in at.button if button.key == "compute head losses").click().run()
    *_, computed = [each for key, each in job._begun.items() if isinstance(key, AskedAnalysis)]
    computed.wait()
    at.run()
    assert "Loss without it" in at.dataframe[0].value.columns


def test_a_link_to_attention_has_the_head_and_the_same_random_tokens(circuit: str) -> None:
    lm = gptviz.load(circuit)
    asked = link(page(model=circuit), "on Attention")
    assert (asked["block"], asked["head"], asked["model"]) == (["1"], ["2"], [circuit])
    assert lm.encode(asked["prompt"][0]).tolist() == repeated_tokens(lm)[0].tolist()
    asked = link(
        page(model=circuit, over=PROMPT, prompt="abcab", unit="blocks.0.attention.head.1"),
        "on Attention",
    )
    assert (asked["block"], asked["head"], asked["prompt"]) == (["0"], ["1"], ["abcab"])


def test_the_pattern_of_a_long_text_has_its_last_tokens_beside_their_cells(
    circuit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(does, "MOST_SHOWN", 3)
    lm = gptviz.load(circuit)
    at = page(model=circuit, over=PROMPT, prompt="abcdeb", unit="blocks.0.attention.head.1")
    sides, drawn = payload(at, "heads pattern")
    assert sides["queries"] == sides["keys"] == [*"deb"]
    pattern = lm.trace("abcdeb")["blocks.0.attention.pattern"][0, 1, -3:, -3:]
    np.testing.assert_allclose(np.nan_to_num(drawn["pattern"]), pattern, atol=1e-6)


def test_a_text_without_repeats_says_that_repeats_are_scored_over_random_tokens(
    circuit: str,
) -> None:
    at = page(model=circuit, over=PROMPT, prompt="abcd", score="Induction")
    assert "over repeated random tokens. No token of this text comes back." in says(at)
    assert at.dataframe[0].value["head"][0] == "1.2"
    assert "No token of this text comes back" not in says(
        page(model=circuit, over=PROMPT, prompt="abca", score="Induction")
    )


@pytest.mark.parametrize("reads", ["query", "key", "value"])
def test_the_matrix_of_heads_is_the_composition_beside_chance(reads: str) -> None:
    at = page(model="induction", view=READS, reads=reads)
    lm = gptviz.load("induction")
    expected = composition(lm.model, reads).values[4:, :4] - by_chance(lm.model)  # type: ignore[arg-type]
    np.testing.assert_allclose(
        numbers(chart(at, "heads reads")["data"][0]["z"]), expected, atol=1e-6
    )
    first = at.dataframe[0].value.iloc[0]
    reader, writer = largest_head(expected)
    assert (first["reads"], first["writes"]) == (f"1.{reader}", f"0.{writer}")


def test_what_is_suggested_is_true_and_shows_the_head_it_is_about() -> None:
    at = page(model="induction")
    offered = [button.label for button in at.button if (button.key or "").startswith("try ")]
    assert offered == ["The induction head", "A previous-token head", "Who reads whom?"]
    for label, column in (
        ("The induction head", "Induction"),
        ("A previous-token head", "Previous token"),
    ):
        press(at, label)
        best = at.dataframe[0].value.iloc[0]
        assert best[column] == at.dataframe[0].value[column].max()
        block, head = best["head"].split(".")
        assert at.query_params["unit"] in (name := f"blocks.{block}.attention.head.{head}", [name])
        assert f"Head {head} of block {block} gives" in says(at)
    press(at, "Who reads whom?")
    first = at.dataframe[0].value.iloc[0]
    reads, writes = (
        f"head {head} of block {block}"
        for block, head in (first[end].split(".") for end in ("reads", "writes"))
    )
    assert f"{reads} reads most of what {writes} writes: {first['value']:.2f}" in says(at)
    assert "together they find what came next before" in says(at)


@pytest.mark.usefixtures("fresh_caches")
def test_a_model_with_known_answers_opens_on_the_heads_that_they_need_over_data_held_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(held_out, "MOST_TOKENS", 512)
    at = page(model="sentences")
    lm = gptviz.load("sentences")
    task = Sentences()
    assert at.selectbox(key="over").value == HELD_OUT
    frame = at.dataframe[0].value
    rises = frame.set_index("head")["Loss without it"]
    assert list(rises) == sorted(rises, reverse=True)
    rows = held_out.scored_rows(model_key("sentences", "cpu"))
    ids = torch.cat([row.reading.ids for row in rows])
    targets = torch.cat([row.targets for row in rows])
    answers = targets >= 0
    assert 0 < answers.float().mean() < 0.2, "of a task only its answers count"

    def loss(one: gptviz.LanguageModel) -> float:
        with torch.inference_mode():
            return float(F.cross_entropy(one.model(ids)[answers], targets[answers]))

    for name in (rises.index[0], rises.index[-1]):
        block, head = name.split(".")
        expected = loss(lm.edited(f"blocks.{block}.attention.head.{head}")) - loss(lm)
        assert rises[name] == pytest.approx(expected, abs=1e-4)
    first = f"head {rises.index[0][2]} of block {rises.index[0][0]}"
    # Its pattern is that over the prompt.
    shown = payload(at, "heads pattern")[1]["pattern"]
    pattern = lm.trace(task.contrasts()[0].clean, ["blocks.1.attention.pattern"])[
        "blocks.1.attention.pattern"
    ][0, 0].numpy()
    assert first == "head 0 of block 1"
    np.testing.assert_allclose(np.nan_to_num(shown), pattern, atol=1e-6)
    press(at, "When this head appeared")
    assert at.query_params["unit"] == "blocks.0.attention.head.0"


def test_every_stack_of_an_encoder_decoder_has_its_heads() -> None:
    lm = gptviz.load("seq2seq")
    layers = {"encoder": "encoder.blocks", "decoder": "blocks", "cross": "blocks"}
    for stack, begins in layers.items():
        at = page(model="seq2seq", stack=stack)
        assert not [one for one in at.get("segmented_control") if one.proto.label == "Heads read"]
        frame = at.dataframe[0].value.set_index("head")
        layer = f"{begins}.0.{'cross_' if stack == 'cross' else ''}attention.head.1"
        rows = lm.heads(at.text_area(key="prompt").value, losses=True)
        (row,) = (row for row in rows if row["name"] == layer)
        for name, score in head_scores.SCORES.items():
            if score.title in frame.columns:
                assert frame.loc["0.1", score.title] == pytest.approx(row[name], abs=1e-6), (
                    stack,
                    name,
                )
        at = page(model="seq2seq", stack=stack, unit=layer)
        assert not at.warning
        assert payload(at, "heads pattern")[1]["pattern"].size
    assert "choose the encoder or the decoder" in says(
        page(model="seq2seq", stack="cross", view=READS)
    )


def test_a_context_without_room_for_repeats_is_scored_over_the_prompt(
    tiny_model: TinyModel,
) -> None:
    tiny_model("short", context_length=3)
    at = page(model="short", prompt="the")
    assert not [one for one in at.get("segmented_control") if one.proto.label == "Heads read"]
    assert at.dataframe[0].value.shape[0] == 6
    one = page(model="short", prompt="t")
    assert "type a longer prompt" in says(one).lower() or one.dataframe


def test_only_the_view_on_screen_is_computed(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny_model("deep", n_layer=13, context_length=32)
    asked: list[str] = []
    monkeypatch.setattr(head_weights, "composition", lambda *_, **__: asked.append("composition"))
    page(model="deep", view=DOES, prompt="the")
    assert not asked


def test_a_grid_without_negative_scores_has_one_hue_and_copying_two() -> None:
    at = page(model="induction", score="Copying")
    assert grid(at, "heads grid")[1]["ends"] == [-1, 1]
    at = page(model="induction", score="Distance")
    low, high = grid(at, "heads grid")[1]["ends"]
    assert low == 0
    assert high == pytest.approx(float(torch.tensor(at.dataframe[0].value["Distance"]).max()))


def test_of_a_model_from_elsewhere_heads_can_read_passages_of_books_or_a_text_of_the_reader(
    tiny_model: TinyModel,
) -> None:
    tiny_model(
        "mine",
        text="".join(set(passages())),
        context_length=40,
        card={"imported_from": "somebody/model"},
    )
    lm = gptviz.load("mine")
    for over, text in ((PASSAGES, passages()), (OWN, "a rabbit and a rabbit")):
        at = opened("pages/heads.py", model="mine", over=over, own="a rabbit and a rabbit")
        ids = lm.seen(lm.encode(text))
        expected = head_scores.head_scores(lm.model, ids[None]).values[
            at.selectbox(key="score").value
        ]
        np.testing.assert_allclose(grid(at, "heads grid")[0], expected, atol=1e-5)
        assert "over the prompt" in says(at), "the pattern"
    tiny_model("own")
    assert PASSAGES not in opened("pages/heads.py", model="own").selectbox(key="over").options


def test_the_texts_where_a_head_does_most_are_shown_with_its_tokens(circuit: str) -> None:
    lm = gptviz.load(circuit)
    text = "abcdefghabcdefgh"
    at = page(model=circuit, view=WHERE, text=PROMPT, prompt=text)
    assert at.selectbox(key="heads pick").value.name == "blocks.1.attention.head.2", (
        "the induction head"
    )
    seen = {side: lm.activity("blocks.1.attention", text, side=side) for side in ("query", "key")}
    for side, activity in seen.items():
        (bars,) = chart(at, f"heads {side}")["data"]
        pairs = activity.tokens(2, where.LISTED, 2)
        assert bars["customdata"] == [lm.tokenizer.label(token) for token, _ in pairs]
        np.testing.assert_allclose(numbers(bars["x"]), [value for _, value in pairs], rtol=1e-5)
    assert f"of the mean length {brief(seen['query'].effect[2])}" in says(at)
    ((row, place), *_) = seen["query"].places(2)
    assert f"here “{lm.tokenizer.label(int(seen['query'].rows[row][place]))}” 1 time" in says(at)
    at = page(model=circuit, view=WHERE, text=PROMPT, prompt=text, unit="blocks.0.attention.head.1")
    assert "Head 1 of block 0" in says(at)
    assert "models that read one" in says(page(model="seq2seq", view=WHERE))
