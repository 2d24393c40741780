"""Neurons through the library's front door and on the command line, and the rows of text that they
read.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import gptviz
from gptviz.data.registry import source_from
from gptviz.data.rows import LONGEST_ROW
from gptviz.interp.units.activity import observe
from gptviz.interp.units.neurons import columns, observable_neurons, promoted_tokens
from gptviz.language_model.units import neurons
from tests.command_line import Capture, answered, error, output
from tests.tiny import TinyModel

TEXT = "the quick brown fox jumps over the lazy dog. " * 30


def test_rows_are_the_text_cut_into_pieces_no_longer_than_the_context(
    tiny_model: TinyModel,
) -> None:
    tiny_model("mine", context_length=32)
    lm = gptviz.load("mine")
    rows = lm.rows(TEXT, 1000)
    assert {len(row) for row in rows[:-1]} == {32}
    assert torch.cat(rows).tolist() == lm.encode(TEXT).tolist()[:1000]
    tiny_model("long", context_length=2 * LONGEST_ROW)
    assert max(len(row) for row in gptviz.load("long").rows(TEXT)) == LONGEST_ROW
    with pytest.raises(ValueError, match="does not say what it learned from"):
        lm.rows()
    with pytest.raises(ValueError, match="the text has"):
        lm.rows("")


def test_without_a_text_rows_are_those_held_out() -> None:
    lm = gptviz.load("induction")
    rows = lm.rows(most=1000)
    assert sum(map(len, rows)) == 1000
    batch = next(iter(source_from(dict(lm.card.source)).evaluation(lm.model, lm.tokenizer).batches))
    assert torch.equal(rows[0], batch.inputs[0][0])


def test_a_classifier_reads_a_text_line_by_line() -> None:
    lm = gptviz.load("classifier")
    rows = lm.rows("a warm and funny film\n\ndull\n")
    assert [row.tolist() for row in rows] == [
        lm.encode(line).tolist() for line in ("a warm and funny film", "dull")
    ]


def test_the_command_ranks_the_neurons_of_a_block(
    tiny_model: TinyModel, tmp_path: Path, capsys: Capture
) -> None:
    tiny_model("mine", context_length=32)
    (file := tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    lm = gptviz.load("mine")
    seen = lm.activity("blocks.1.mlp", TEXT)
    for by in ("largest", "active", "effect"):
        rows = answered(capsys, "neurons", "mine", "--block", "1", "--corpus", file, "--by", by)
        assert [row["neuron"] for row in rows] == seen.ranked(by)
        for row in rows:
            assert row["block"] == 1
            assert row[by] == pytest.approx(float(getattr(seen, by)[row["neuron"]]))
        assert [row[by] for row in rows] == sorted((row[by] for row in rows), reverse=True)
    said = output(capsys, "neurons", "mine", "--block", "1", "--corpus", file)
    assert f"neuron {seen.ranked('largest')[0]}" in said.splitlines()[1]


def test_the_command_shows_one_neuron(
    tiny_model: TinyModel, tmp_path: Path, capsys: Capture
) -> None:
    tiny_model("mine", context_length=32)
    (file := tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    found = answered(capsys, "neurons", "mine", "--block", "0", "--neuron", "7", "--corpus", file)
    lm = gptviz.load("mine")
    seen = lm.activity("blocks.0.mlp", TEXT)
    assert found["largest"] == pytest.approx(float(seen.largest[7]))
    assert [one["activation"] for one in found["contexts"]] == pytest.approx(
        seen.highest[:, 7].tolist()
    )
    rows = [lm.tokenizer.decode(row.tolist()) for row in lm.rows(TEXT)]
    for one, (row, at) in zip(found["contexts"], seen.places(7), strict=True):
        assert one["token"] == rows[row][at]
        assert (one["before"], one["behind"]) == (
            rows[row][max(0, at - 20) : at],
            rows[row][at + 1 : at + 6],
        )
    values = promoted_tokens(lm.model, columns(lm.model, 0)[:, 7])
    assert found["promoted"][0] == {
        "token": lm.tokenizer.piece(int(values.argmax())),
        "value": pytest.approx(values.max()),
    }
    assert found["suppressed"][0] == {
        "token": lm.tokenizer.piece(int(values.argmin())),
        "value": pytest.approx(values.min()),
    }
    assert all(one["value"] > 0 for one in found["promoted"])
    assert all(one["value"] < 0 for one in found["suppressed"])
    said = output(capsys, "neurons", "mine", "--neuron", "7", "--corpus", file)
    assert (
        f"neuron 7 of block 1, over {lm.activity('blocks.1.mlp', TEXT).n_tokens:,} tokens" in said
    )
    assert "promoted, by what is added to their logits" in said


def test_a_neuron_or_block_that_there_is_not_is_an_error_in_one_line(
    tiny_model: TinyModel, capsys: Capture
) -> None:
    tiny_model("mine")
    wrong = {
        ("--block", "2"): "no neurons in block 2",
        ("--neuron", "20"): "--neuron is 20; it must be a whole number from 0 to 19",
        (): "does not say what it learned from",
    }
    for arguments, message in wrong.items():
        assert message in error(capsys, "neurons", "mine", *arguments)
    assert "two stacks" in error(capsys, "neurons", "seq2seq")
    assert "0 neurons" in error(capsys, "neurons", "induction")


def test_what_was_observed_does_not_depend_on_the_batches(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny_model("mine", context_length=32)
    lm = gptviz.load("mine")
    whole = lm.activity("blocks.0.mlp", TEXT)
    monkeypatch.setattr("gptviz.interp.units.activity.AT_ONCE", 1)
    assert len(list(observe(observable_neurons(lm.model, 0), lm.rows(TEXT)))) == len(lm.rows(TEXT))
    np.testing.assert_allclose(neurons(lm, 0, TEXT).highest, whole.highest, rtol=1e-5, atol=1e-6)


def test_neurons_read_what_the_model_writes_where_it_is_to_write_first(
    tiny_model: TinyModel,
) -> None:
    tiny_model("mine", context_length=32)
    lm = gptviz.load("mine")
    wrote = lm.generate("the fox", 50, go_on=True, seed=0, slide=16)
    expected = lm.activity("blocks.0.mlp", wrote, 50)
    activity = lm.activity("blocks.0.mlp", "the fox", written=50)
    np.testing.assert_allclose(activity.highest, expected.highest, rtol=1e-5, atol=1e-6)
    assert torch.cat(activity.rows).tolist() == torch.cat(lm.rows(wrote, 50)).tolist()


def test_a_neuron_that_is_set_is_an_edit_and_the_tokens_that_it_promotes_are_at_the_ends(
    tiny_model: TinyModel,
) -> None:
    tiny_model("mine", context_length=32)
    lm = gptviz.load("mine")
    guesses = lm.unit_set("the fox", "blocks.1.mlp.neuron.4", 2.5, top=3)
    labels = lm.tokenizer.labels()
    for row, model in zip(
        guesses.values, (lm, lm.edited("blocks.1.mlp.neuron.4=2.5")), strict=True
    ):
        shares = model.trace("the fox")["logits"][0, -1].softmax(-1)
        assert row == pytest.approx(
            [float(shares[labels.index(label)]) for label in guesses.axes[1].labels], abs=1e-5
        )
    values = promoted_tokens(lm.model, columns(lm.model, 1)[:, 4])
    ends = lm.promoted("blocks.1.mlp.neuron.4", most=2)
    order = (-values).argsort()
    assert list(ends.axes[0].labels) == [labels[i] for i in (*order[:2], *order[-2:])]
    np.testing.assert_array_equal(ends.values, values[[*order[:2], *order[-2:]]])
