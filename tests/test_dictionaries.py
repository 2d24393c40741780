"""Dictionaries in the library and on the command line: fitted, kept, found again, and what they
say.
"""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import gptviz
from gptviz.__main__ import main
from gptviz.interp.dictionaries import fitting
from tests.command_line import Capture, error, output
from tests.tiny import TinyModel

TEXT = "a cab bed " * 40
SETTINGS = {"k": 3, "steps": 60, "text": TEXT}


def test_a_dictionary_is_kept_for_the_model_that_it_was_fitted_to(tiny_model: TinyModel) -> None:
    tiny_model("mine", text="abcdefg ")
    tiny_model("other", text="abcdefg ", seed=1)
    lm = gptviz.load("mine")
    found = lm.fit_dictionary(1, 20, **SETTINGS, name="First!")
    assert found.name.startswith("first-")
    assert (found.block, found.k, len(found.encoder), found.kind) == (1, 3, 20, "topk")
    assert (
        lm.dictionaries()
        == lm.edited("blocks.0.mlp").dictionaries()
        == gptviz.load("mine").dictionaries()
        == [found.name]
    )
    assert gptviz.load("other").dictionaries() == []
    with pytest.raises(ValueError, match="has no dictionary yet"):
        gptviz.load("other").dictionary()
    again = lm.dictionary()
    assert torch.equal(again.encoder, found.encoder)
    # Found over the model as it is, whatever it is edited to: the same numbers, so the same name.
    assert (
        lm.edited("blocks.0.mlp").fit_dictionary(1, 20, **SETTINGS, name="First!").name
        == found.name
    )
    assert lm.fit_dictionary(1, 20, **SETTINGS | {"k": 4}, name="First!").name != found.name
    assert lm.fit_dictionary(0, **SETTINGS).name.startswith("block-0-")


def test_the_weights_of_a_model_are_hashed_once_and_again_when_they_change(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny_model("mine", text="abcdefg ")
    lm = gptviz.load("mine")
    found = lm.fit_dictionary(1, 20, **SETTINGS)
    seen: list[object] = []
    monkeypatch.setattr(
        "gptviz.language_model.fitted.hash_tensors",
        lambda said, tensors: seen.append(tensors) or "0f",
    )
    assert lm.dictionaries() == lm.edited("blocks.0.mlp").dictionaries() == [found.name]
    assert not seen
    with torch.no_grad():
        lm.model.embed.weight.mul_(2)
    assert lm.dictionaries() == lm.edited("blocks.0.mlp").dictionaries() == []
    assert len(seen) == 1


def test_the_features_of_a_prompt_are_those_of_its_stream(tiny_model: TinyModel) -> None:
    tiny_model("mine", text="abcdefg ")
    lm = gptviz.load("mine")
    found = lm.fit_dictionary(1, 20, **SETTINGS)
    active = lm.features("a cab")
    expected = found.encode(lm.trace("a cab")[found.tap][0])
    tokens, numbers = (axis.labels for axis in active.axes)
    assert tokens == tuple(lm.tokenizer.label(i) for i in lm.encode("a cab").tolist())
    np.testing.assert_array_equal(active.values, expected[:, [int(number) for number in numbers]])
    assert (active.values > 0).sum() == (expected > 0).sum()
    assert (np.diff(active.values.sum(0)) <= 0).all()
    first = int(numbers[0])
    off = lm.edited(found.edit(first)).trace("a cab")[found.tap][0]
    torch.testing.assert_close(
        off, lm.trace("a cab")[found.tap][0] - expected[:, first, None] * found.decoder[first]
    )


def test_the_data_held_out_are_not_fitted_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "MOST_VECTORS", 500)
    lm = gptviz.load("reversal")
    task = lm.task
    assert task is not None
    held_out = {tuple(row) for row in task.held_out().ids.tolist()}
    read: list[torch.Tensor] = []
    monkeypatch.setattr(
        fitting,
        "vectors",
        lambda model, block, rows: read.extend(next(rows).reading.ids) or torch.randn(50, 8),
    )
    lm.fit_dictionary(0, 8, k=1, steps=1)
    assert not held_out & {tuple(row.tolist()) for row in read}


def test_a_text_that_is_too_short_is_refused(tiny_model: TinyModel) -> None:
    tiny_model("mine", text="abcdefg ")
    with pytest.raises(ValueError, match="too short for a dictionary"):
        gptviz.load("mine").fit_dictionary(1, 20, **SETTINGS | {"text": "a cab"})


def test_the_commands_say_what_the_library_says(
    tiny_model: TinyModel, tmp_path: Path, capsys: Capture
) -> None:
    tiny_model("mine", text="abcdefg ")
    (tmp_path / "text.txt").write_text(TEXT)
    asked = [
        "dictionary",
        "mine",
        "--block",
        1,
        "--size",
        20,
        "--k",
        3,
        "--steps",
        60,
        "--corpus",
        tmp_path / "text.txt",
    ]
    made = json.loads(output(capsys, *asked, "--out", tmp_path / "out.safetensors", "--json"))
    lm = gptviz.load("mine")
    quality = lm.dictionary_quality(made["name"], TEXT)
    asked = ["evaluate", "mine", "--dictionary", made["name"], "--corpus", tmp_path / "text.txt"]
    measured = json.loads(output(capsys, *asked, "--json"))
    assert measured == {
        key: value for key, value in made.items() if key not in ("name", "run", "state")
    }
    for key in ("loss", "loss_zero", "loss_with", "recovered", "l0", "dead"):
        assert measured[key] == pytest.approx(getattr(quality, key))
    assert f"{quality.recovered:.2%} of the loss is recovered" in output(capsys, *asked)
    listed = json.loads(output(capsys, "features", "mine", "--prompt", "a cab", "--json"))
    active = lm.features("a cab", made["name"])
    expected = [
        {"token": token, "feature": int(number), "value": float(value)}
        for token, row in zip(active.axes[0].labels, active.values, strict=True)
        for number, value in zip(active.axes[1].labels, row, strict=True)
        if value > 0
    ]
    assert listed == expected
    assert f"{listed[0]['feature']} ({listed[0]['value']:.2f})" in output(
        capsys, "features", "mine", "--prompt", "a cab"
    )
    file = load_file(tmp_path / "out.safetensors")
    torch.testing.assert_close(file["encoder"], lm.dictionary().encoder.half())
    assert "no dictionary gone" in error(
        capsys, "features", "mine", "--prompt", "a", "--dictionary", "gone"
    )


def test_of_a_task_that_reads_all_its_sentences_again_some_are_held_out_of_a_dictionary(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The data of `jobs-10` have some hundred different sentences: without that, all would be
    fitted to.
    """
    lm = gptviz.load("jobs-10")
    read = list[tuple[int, ...]]()
    original = fitting.read_and_given

    def watched(model, block, target, rows):
        some = list(islice(rows, 50)) if block == 0 else rows
        read.extend(tuple(row) for each in some for row in each.reading.ids.tolist())
        return original(model, block, target, some)

    monkeypatch.setattr(fitting, "read_and_given", watched)
    found = lm.fit_dictionary(0, 8, k=1, steps=1)
    fitted_to, read[:] = set(read), []
    monkeypatch.setattr("gptviz.interp.dictionaries.quality.read_and_given", watched)
    lm.dictionary_quality(found.name)
    assert len(fitted_to) > 100
    assert len(read) > 20
    assert not fitted_to & set(read)


def test_copies_of_a_row_are_not_held_out(tiny_model: TinyModel) -> None:
    tiny_model("mine", text="abcdefg ")
    lm = gptviz.load("mine")
    with pytest.raises(ValueError, match="repeats itself"):
        lm.fit_dictionary(1, 20, **SETTINGS | {"text": "abcdefg " * 40})


def test_evaluate_names_the_words_that_the_vocabulary_lacks(
    tmp_path: Path, capsys: Capture
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("The king is here . The zebra is here . " * 40)
    assert main(["evaluate", "sentences", "--corpus", str(text)]) == 0
    said = capsys.readouterr().err
    assert said == (
        "gptviz: Not in the vocabulary: the text “zebra”; the model reads ⟨unknown⟩ instead.\n"
    )


def test_a_kind_of_model_has_its_article(capsys: Capture) -> None:
    said = error(capsys, "scan", "seq2seq", "--prompt", "a")
    assert said == "gptviz: seq2seq is an encoder–decoder: only a decoder is scanned\n"


def test_dictionaries_stand_side_by_side_with_their_sizes_and_what_they_give_back(
    tiny_model: TinyModel, tmp_path: Path, capsys: Capture
) -> None:
    tiny_model("mine", text="abcdefg ")
    lm = gptviz.load("mine")
    text = tmp_path / "text.txt"
    text.write_text(TEXT)
    made = [
        lm.fit_dictionary(1, 20, **SETTINGS),
        lm.fit_dictionary(0, 12, **SETTINGS | {"k": 2}, target="mlp"),
    ]
    found = json.loads(output(capsys, "dictionaries", "mine", "--corpus", str(text), "--json"))
    assert [each["name"] for each in found] == lm.dictionaries()
    by_name = {each["name"]: each for each in found}
    for one in made:
        said = by_name[one.name]
        quality = lm.dictionary_quality(one.name, TEXT)
        assert (said["features"], said["target"]) == (len(one.encoder), one.target)
        assert said["l0"] == pytest.approx(quality.l0)
        assert said["loss_with"] == pytest.approx(quality.loss_with)
