"""The library's front door: load a model by name, from text to text, and to every tensor between."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest
import torch

import gptviz
from gptviz.learn import checkpoints
from gptviz.learn.checkpoints import CheckpointError
from gptviz.learn.sampling import Sampling
from tests.tiny import CONTEXT, TinyModel, scrambled


def test_a_model_opens_by_name_or_by_folder(tiny_model: TinyModel) -> None:
    folder = tiny_model("mine", card={"corpus": "pangram"})
    for lm in (gptviz.load("mine"), gptviz.load(folder, "cpu")):
        assert isinstance(lm, gptviz.LanguageModel)
        assert (lm.name, lm.card["corpus"], lm.device.type) == ("mine", "pangram", "cpu")
        assert not lm.model.training


def test_a_model_in_this_folder_is_called_as_the_folder_is(tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tiny_model("mine"))
    assert gptviz.load(Path()).name == "mine"


def test_a_model_opens_as_it_was_after_a_step_whose_snapshot_was_kept(tiny_model: TinyModel) -> None:
    folder = tiny_model("mine")
    earlier = scrambled(gptviz.load("mine").model.config, seed=5)
    checkpoints.write_weights(checkpoints.snapshot_path(folder, 20), earlier)
    then, now = gptviz.load("mine", step=20), gptviz.load("mine")
    assert (then.step, now.step) == (20, None)
    assert torch.equal(then.model.embed.weight, earlier.embed.weight)
    assert not torch.equal(now.model.embed.weight, earlier.embed.weight)
    with pytest.raises(CheckpointError, match="mine has no snapshot of step 21: there are 20"):
        gptviz.load("mine", step=21)


def test_a_model_or_device_that_is_not_there_is_an_error_that_says_so(tiny_model: TinyModel) -> None:
    folder = tiny_model("mine")
    with pytest.raises(CheckpointError, match=r"no model named '\.\./checkpoints/mine'; there are .*mine"):
        gptviz.load("../checkpoints/mine")
    with pytest.raises(CheckpointError, match="the model elsewhere lacks config.json"):
        gptviz.load(folder.with_name("elsewhere"))
    with pytest.raises(ValueError, match="no device 'abacus'"):
        gptviz.load("mine", "abacus")


def test_the_text_generated_is_that_of_the_steps_without_the_prompt(tiny_model: TinyModel) -> None:
    lm = gptviz.load(tiny_model())
    text = lm.generate("the fox", 30, temperature=0.9, top_k=5, seed=2)
    steps = lm.generation("the fox", Sampling(temperature=0.9, top_k=5, seed=2))
    assert text == "".join(lm.tokenizer.piece(int(step.tokens)) for step in islice(steps, 30))
    assert len(text) == 30
    assert text == lm.generate("the fox", 30, temperature=0.9, top_k=5, seed=2)
    assert text != lm.generate("the fox", 30, temperature=0.9, top_k=5, seed=3)
    assert lm.generate("the fox", 0) == ""


def test_a_trace_reads_the_end_of_a_prompt_longer_than_the_context(tiny_model: TinyModel) -> None:
    lm = gptviz.load(tiny_model())
    prompt = "the quick brown fox"
    trace = lm.trace(prompt)
    assert lm.tokenizer.decode(trace.ids[0].numpy()) == prompt[-CONTEXT:]
    with torch.inference_mode():
        assert torch.equal(trace["logits"], lm.model(lm.encode(prompt)[None, -CONTEXT:]))
    torch.testing.assert_close(lm.generation(prompt).logits, trace["logits"][:, -1])
    assert list(lm.trace("fox", ["*.pattern"])) == ["blocks.0.attention.pattern", "blocks.1.attention.pattern"]
    silenced = lm.trace("fox", edits={"blocks.0.attention.out": torch.zeros_like})
    assert (silenced["blocks.0.attention.out"] == 0).all()


@pytest.mark.parametrize("use", ["encode", "trace", "generate", "generation"])
def test_an_empty_prompt_is_an_error_that_says_what_to_do(use: str, tiny_model: TinyModel) -> None:
    with pytest.raises(ValueError, match="prompt is empty: type at least one character"):
        getattr(gptviz.load(tiny_model()), use)("")
