"""The scores of heads through the library's front door and on the command line."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import gptviz
from gptviz.interp.units.head_scores import MOST_REPEATED, SCORES, head_scores, losses_without
from gptviz.interp.units.head_weights import composition, copying
from gptviz.interp.units.unit import heads_and_mlps
from gptviz.language_model import LanguageModel
from gptviz.language_model.units import repeated_tokens, second_half
from gptviz.text import BPETokenizer
from tests.command_line import Capture, answered, error, output
from tests.tiny import TinyModel


def test_without_a_prompt_heads_read_repeated_random_tokens_and_with_one_the_prompt(
    tiny_model: TinyModel,
) -> None:
    tiny_model("mine", context_length=64)
    lm = gptviz.load("mine")
    prompt = "the fox jumps over the dog"
    for rows, ids in (
        (lm.heads(), repeated_tokens(lm)),
        (lm.heads(prompt), lm.encode(prompt)[None]),
    ):
        expected = head_scores(lm.model, ids).with_scores(copying=copying(lm.model))
        assert [(row["name"], row["block"], row["head"]) for row in rows] == [
            (f"blocks.{block}.attention.head.{head}", block, head)
            for block in range(2)
            for head in range(3)
        ]
        for row in rows:
            assert set(row) == {"name", "block", "head", *SCORES}
            for name, values in expected.values.items():
                value = values[row["block"], row["head"]]
                assert row[name] == (None if name == "delta_loss" else pytest.approx(value))


def test_random_tokens_are_tokens_that_stand_in_texts(tiny_model: TinyModel) -> None:
    tiny_model("mine", context_length=64, text="abcdefgh", card={"end_tokens": [2, 5]})
    lm = gptviz.load("mine")
    ids = repeated_tokens(lm)
    assert set(ids.flatten().tolist()) == {0, 1, 3, 4, 6, 7}
    classifier = gptviz.load("classifier")
    tokenizer = classifier.tokenizer
    drawn = set(repeated_tokens(classifier).flatten().tolist())
    assert not drawn & {tokenizer.padding, tokenizer.unknown_id}
    assert len(repeated_tokens(classifier)[0]) == 2 * MOST_REPEATED


def test_an_encoder_decoder_has_the_heads_of_both_stacks_and_of_cross_attention() -> None:
    lm = gptviz.load("seq2seq")
    config = lm.model.config
    rows = lm.heads("the third of march 1977")
    layers = [row["name"].rpartition(".head.")[0] for row in rows[:: config.n_head]]
    assert layers == [
        *(f"encoder.blocks.{block}.attention" for block in range(config.n_encoder_layer)),
        *(f"blocks.{block}.attention" for block in range(config.n_layer)),
        *(f"blocks.{block}.cross_attention" for block in range(config.n_layer)),
    ]
    trace = lm.trace("the third of march 1977", ["*.pattern"])
    for row in rows:
        pattern = trace[row["name"].rpartition(".head.")[0] + ".pattern"][0, row["head"]]
        assert row["first_token"] == pytest.approx(float(pattern[1:, 0].mean()), rel=1e-5)
        assert (row["previous_token"] is None) == ("cross" in row["name"])
        assert (row["copying"] is None) == ("encoder" in row["name"] or "cross" in row["name"])
    with pytest.raises(ValueError, match="give a prompt"):
        lm.heads()


def test_the_command_prints_a_row_per_head_and_ranks_the_induction_head_first(
    capsys: Capture,
) -> None:
    rows = answered(capsys, "heads", "induction")
    expected = gptviz.load("induction").heads()
    assert [row["name"] for row in rows] == [row["name"] for row in expected]
    assert max(rows, key=lambda row: row["induction"])["block"] == 1
    header, *lines = output(capsys, "heads", "induction").splitlines()
    scores = [name for name in SCORES if name != "delta_loss"]
    assert header.split() == scores
    for line, row in zip(lines, expected, strict=True):
        name, *values = line.split()
        assert name == row["name"]
        assert [float(value) for value in values] == pytest.approx(
            [row[score] for score in scores], abs=6e-4
        )


def test_over_a_prompt_in_which_nothing_comes_back_repeats_are_scored_over_random_tokens() -> None:
    lm = gptviz.load("induction")
    over_random = lm.heads()
    over_text = lm.heads("5 17 3 40")
    for one, other in zip(over_random, over_text, strict=True):
        assert one["induction"] == other["induction"]
        assert one["previous_token"] != other["previous_token"]


def test_what_has_no_meaning_is_null_in_json(capsys: Capture) -> None:
    for row in answered(capsys, "heads", "classifier"):
        assert row["copying"] is None
        assert all(
            math.isfinite(row[name]) for name in SCORES if name not in ("copying", "delta_loss")
        )
        assert np.isclose(row["entropy"], min(1.0, row["entropy"]))


def test_on_request_there_is_the_loss_without_each_head(capsys: Capture) -> None:
    rows = answered(capsys, "heads", "induction", "--losses")
    lm = gptviz.load("induction")
    ids = repeated_tokens(lm)
    second = second_half(lm, ids)
    assert torch.equal(ids[:, second:], ids[:, :second])
    heads = [one for one in heads_and_mlps(lm.model.config) if one.is_head]
    expected = dict(losses_without(lm.model, ids, heads, counted_from=second))
    assert [row["delta_loss"] for row in rows] == pytest.approx(list(expected.values()))
    worst = max(rows, key=lambda row: row["delta_loss"])
    assert (worst["block"], worst["head"]) in {(0, 3), (1, 0), (1, 2), (1, 3)}, (
        "one of the heads of the induction circuit"
    )
    assert "has no loss" in error(capsys, "heads", "classifier", "--losses")


def test_an_encoder_decoder_loses_by_heads_of_all_its_stacks() -> None:
    rows = gptviz.load("seq2seq").heads("the third of march 1977", losses=True)
    assert all(isinstance(row["delta_loss"], float) for row in rows)
    assert max(row["delta_loss"] for row in rows if "cross" in row["name"]) > 0.1


def test_a_prompt_that_is_missing_or_empty_is_an_error_in_one_line(capsys: Capture) -> None:
    assert "give a prompt" in error(capsys, "heads", "seq2seq")
    assert "the prompt is empty" in error(capsys, "heads", "induction", "--prompt", "")


def test_a_model_of_one_stack_has_the_heads_of_no_other() -> None:
    lm = gptviz.load("induction")
    for stack in ("encoder", "cross"):
        with pytest.raises(ValueError, match="has one stack"):
            lm.head_scores(stack=stack)
        with pytest.raises(ValueError, match="has one stack"):
            lm.composition(stack=stack)
    both = gptviz.load("seq2seq")
    assert both.model.encoder is not None
    np.testing.assert_array_equal(
        both.composition(stack="encoder").values, composition(both.model.encoder, "key").values
    )


def test_the_second_half_of_repeated_tokens_begins_behind_what_stands_before_a_text() -> None:
    lm = gptviz.load("bpe")
    assert isinstance(lm.tokenizer, BPETokenizer)
    framed = LanguageModel("framed", lm.model, lm.tokenizer.with_frame((0, 1), (2,)), lm.card)
    repeated = repeated_tokens(framed)
    second = second_half(framed, repeated)
    assert repeated[:, second:-1].tolist() == repeated[:, 2:second].tolist()


def test_the_induction_head_does_most_where_the_text_repeats(capsys: Capture) -> None:
    lm = gptviz.load("induction")
    best = max(lm.heads(), key=lambda row: row["induction"])
    layer, _, index = best["name"].rpartition(".head.")
    seen = lm.activity(layer, most=4_096)
    for row, place in seen.places(int(index)):
        assert int(seen.rows[row][place]) in seen.rows[row][:place].tolist(), (
            "this token stood there before"
        )
    shown = answered(capsys, "heads", "induction", "--head", best["name"], "--tokens", 4_096)
    assert [one["activation"] for one in shown["contexts"]] == pytest.approx(
        seen.highest[:, int(index)].tolist()
    )
    keys = lm.activity(layer, most=4_096, side="key")
    for side, activity in (("query", seen), ("key", keys)):
        ids = [lm.tokenizer.id_of(one["token"]) for one in shown[side]]
        assert ids == [token for token, _ in activity.tokens(int(index), 10, 3)]
    assert "it reads most from" in output(
        capsys, "heads", "induction", "--head", best["name"], "--tokens", 1_024
    )
    assert "is no head" in error(capsys, "heads", "induction", "--head", "blocks.1.attention")


def test_an_activity_is_of_units_of_one_layer_of_one_stack() -> None:
    lm = gptviz.load("induction")
    for layer, message in {
        "embed": "not made of units",
        "blocks.0.attention.head.1": "not made of units",
        "blocks.0.mlp": "have no MLP",
    }.items():
        with pytest.raises(ValueError, match=message):
            lm.activity(layer, "1 2 3")
    with pytest.raises(ValueError, match="two stacks"):
        gptviz.load("seq2seq").activity("blocks.0.attention", "the third of march 1977")
