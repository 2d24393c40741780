"""No analysis changes the model that is open: weights, their types, what is trained and what it
answers are equal to the bit before and after each.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import gptviz
from gptviz.generate.sampling import Sampling
from gptviz.interp.over_training.measures import MEASURES, MeasureQuestion
from gptviz.language_model import LanguageModel
from gptviz.language_model.units import repeated_tokens
from gptviz.model.lora import MergedTransformer
from gptviz.model.packed import Packed
from gptviz.pretrained.gguf_writing import write_gguf
from gptviz.pretrained.writing import Written
from gptviz.text import BPETokenizer
from gptviz.text.datasets.prompt_pairs import PromptRow
from tests.tiny import TinyModel, scrambled, tiny

TEXT = "the quick brown fox jumps over the lazy dog and the fox sees the dog again. "
PROMPT = "the fox sees"
# What is asked of a model by methods of the base class is no analysis: it gives parts of itself.
METHODS = sorted(
    name
    for name in dir(LanguageModel)
    if callable(getattr(LanguageModel, name)) and not name.startswith("_")
)
# Those of another kind of model, or that need what these models lack: experts, a task, snapshots.
REFUSED = {
    *("along_strength", "answer", "answers", "beam_sums", "beams", "classify", "data_rows"),
    *("decoded", "example_pairs", "experts", "over_training", "probabilities", "shares_in_data"),
    *("source", "speculation", "tested_rows", "trained_on", "waves", "weight_circuit"),
}


def at_its_bits(tmp_path: Path) -> LanguageModel:
    """A model from a GGUF file whose matrices stay in 8 bits."""
    tokenizer = BPETokenizer.learn(TEXT, 270)
    config = tiny(
        vocab_size=tokenizer.vocab_size,
        d_model=64,
        n_head=2,
        d_mlp=96,
        context_length=32,
        norm="rmsnorm",
        mlp="gated",
        activation="silu",
        positions="rotary",
    )
    weights = dict(scrambled(config, std=0.1).named_parameters())
    path = tmp_path / "bits.gguf"
    write_gguf(Written("bits", config, tokenizer, weights, None, ""), path, "Q8_0")
    return gptviz.load(path)


@pytest.fixture(params=["ordinary", "tied", "half", "LoRA", "packed"])
def lm(request: pytest.FixtureRequest, tiny_model: TinyModel, tmp_path: Path) -> LanguageModel:
    """An open model of each kind."""
    sizes: dict[str, Any] = {"text": TEXT, "context_length": 32}
    match request.param:
        case "packed":
            lm = at_its_bits(tmp_path)
            assert any(isinstance(weight, Packed) for weight in lm.model.parameters())
        case "LoRA":
            lm = gptviz.load("finetune-lora")
            assert isinstance(lm.model, MergedTransformer)
        case "half":
            lm = gptviz.load(tiny_model("half", **sizes), precision="bfloat16")
            assert lm.model.embed.weight.dtype == torch.bfloat16
        case kind:
            lm = gptviz.load(tiny_model(kind, tied=kind == "tied", **sizes))
    return lm


def state(lm: LanguageModel) -> Any:
    """All that an analysis must leave as it is."""
    weights = {
        name: (
            type(weight).__name__,
            weight.dtype,
            weight.requires_grad,
            weight.grad is None,
            weight.detach().float().numpy().tobytes(),
        )
        for name, weight in [*lm.model.named_parameters(), *lm.model.named_buffers()]
    }
    parts = [(type(part).__name__, part.training) for part in lm.model.modules()]
    answer = lm.trace(PROMPT)
    return (
        weights,
        parts,
        {name: tensor.detach().numpy().tobytes() for name, tensor in answer.items()},
    )


def arguments(lm: LanguageModel, folder: Path) -> dict[str, Callable[[], Any]]:
    """What each argument without a default is given, by its name or by that of its method too."""
    rows = [PromptRow("the fox sees", "the dog sees", " ", "s"), PromptRow("the fox", "the dog")]
    path = folder / "vector.gguf"
    return {
        **dict.fromkeys(("prompt", "clean"), lambda: PROMPT),
        "word": lambda: 3,
        "compare.other": lambda: lm,
        "corrupted": lambda: "the dog sees",
        "text": lambda: PROMPT,
        "texts": lambda: [PROMPT, "the dog"],
        "readings.text": lambda: TEXT,
        "part": lambda: next(
            name
            for name in ("embed.weight", "blocks.0.mlp.down.lora_b")
            if name.startswith("embed") != isinstance(lm.model, MergedTransformer)
        ),
        "layer": lambda: "blocks.0.mlp",
        "course.layer": lambda: 1,
        "course.lens": lambda: lm.lens(PROMPT),
        "index": lambda: 0,
        "block": lambda: 0,
        "name": lambda: "blocks.0.mlp.neuron.1",
        "unit": lambda: "blocks.0.mlp.neuron.1",
        "nearest_features.name": lambda: feature(lm),
        "written_by.name": lambda: feature(lm),
        "kept_lens.name": lambda: Path(lm.read_lens(written_lens(lm, folder))).stem,
        "value": lambda: 2.0,
        "label_direction.value": lambda: "1",
        "label": lambda: "word",
        "kind": lambda: "jacobian",
        "fewer_bits.kind": lambda: "4bit.g32",
        "require.kind": lambda: "decoder",
        "why": lambda: "it is one",
        "token": lambda: 1,
        "token.text": lambda: 1,
        "one": lambda: 1,
        "other": lambda: 2,
        "ids": lambda: lm.encode(PROMPT).tolist(),
        "seen.ids": lambda: lm.encode(PROMPT),
        "speculation.ids": lambda: lm.encode(PROMPT),
        "encoding": lambda: lm.tokenizer.encode(PROMPT),
        "circuit": lambda: lm.circuit(PROMPT),
        "rows": lambda: rows,
        "losses_of_rows.rows": lambda: lm.data_rows(TEXT),
        "toward": lambda: ["the fox", "the quick fox", "a fox", "fox", "lazy fox"],
        "away": lambda: ["the dog", "the quick dog", "a dog", "dog", "lazy dog"],
        "direction": lambda: kept_direction(lm),
        "path": lambda: path,
        "read_direction.path": lambda: lm.write_direction(kept_direction(lm), path) or path,
        "read_lens.path": lambda: written_lens(lm, folder),
        "write_dictionary.path": lambda: folder / "dictionary",
        "write_lens.path": lambda: folder / "lens.pt",
        "dictionary": lambda: feature(lm).split(".")[1],
        "folder": lambda: written_dictionary(lm, folder),
        "width": lambda: 2,
        "search": lambda: lm.beams(PROMPT, 2),
        "drafter": lambda: "prompt",
        "sampling": lambda: Sampling(),
        "sentences": lambda: ["the fox"],
        "words": lambda: ["fox"],
        "measure": lambda: "weights.norm",
        "given.measure": lambda: MEASURES["weights.norm"],
        "question": lambda: MeasureQuestion(),
        "length": lambda: 3,
        "tokens": lambda: 5,
        "repeated": lambda: repeated_tokens(lm),
        "to_write.length": lambda: 3,
    }


def kept_direction(lm: LanguageModel) -> str:
    toward = ["the fox", "the quick fox", "a fox", "fox", "lazy fox"]
    return lm.direction(toward, [one.replace("fox", "dog") for one in toward], block=1).name


def feature(lm: LanguageModel) -> str:
    return f"dictionary.{lm.dictionaries()[0]}.feature.3"


def written_dictionary(lm: LanguageModel, folder: Path) -> Path:
    path = folder / "features"
    lm.write_dictionary(feature(lm).split(".")[1], path)
    return path


def written_lens(lm: LanguageModel, folder: Path) -> Path:
    path = folder / "read.pt"
    lm.write_lens(path, text=TEXT * 8)
    return path


# What is passed though it has a default, so that the analysis needs no data of the model and is
# short.
CHOSEN: dict[str, dict[str, Any]] = {
    "fit_dictionary": {"size": 16, "k": 4, "steps": 3},
    "generate": {"max_new_tokens": 8},
    "speculate": {"max_new_tokens": 8},
    "steer": {"max_new_tokens": 8},
}


def test_no_analysis_changes_the_model_that_is_open(
    lm: LanguageModel, tmp_path: Path, subtests: Any
) -> None:
    before = state(lm)
    known = arguments(lm, tmp_path)
    refused: dict[str, str] = {}
    lm.fit_dictionary(0, 16, k=4, steps=3, text=TEXT * 8)
    for name in METHODS:
        parameters = inspect.signature(getattr(lm, name)).parameters.values()
        given = {
            one.name: known.get(f"{name}.{one.name}", known.get(one.name))
            for one in parameters
            if one.default is one.empty and one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)
        }
        # No model here has data of its own on this machine.
        for own, make in {"text": lambda: TEXT * 8, "prompt": lambda: PROMPT}.items():
            if own in {one.name for one in parameters} - given.keys():
                given[own] = make
        with warnings.catch_warnings(), subtests.test(method=name):
            warnings.simplefilter("ignore")
            try:
                values = {key: make() for key, make in given.items() if make is not None}
                assert values.keys() == given.keys(), "an argument is not known here"
                getattr(lm, name)(**values, **CHOSEN.get(name, {}))
            except (ValueError, OSError) as error:
                refused[name] = str(error)
            assert state(lm) == before
    assert {name: why for name, why in refused.items() if name not in REFUSED} == {}
