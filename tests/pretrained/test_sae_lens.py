"""Folders of SAELens: what they compute is written out here from its formulas, and compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

import gptviz
from gptviz.interp.dictionaries.dictionary import Dictionary
from gptviz.pretrained import sae_lens
from tests.command_line import Capture, error, output
from tests.tiny import TinyModel

D_IN, D_SAE = 12, 30


def tensors(**changes: Tensor | None) -> dict[str, Tensor]:
    draw = torch.Generator().manual_seed(0)
    shapes = {"W_enc": (D_IN, D_SAE), "b_enc": (D_SAE,), "W_dec": (D_SAE, D_IN), "b_dec": (D_IN,)}
    made = {name: torch.randn(shape, generator=draw) for name, shape in shapes.items()}
    return {name: one for name, one in (made | changes).items() if one is not None}


def written(folder: Path, weights: dict[str, Tensor] | None = None, **config: Any) -> Path:
    """A folder as SAELens 6 writes it, with other settings in its config."""
    folder.mkdir()
    about = {
        "sae_lens_version": "6.54.12",
        "model_name": "tiny",
        "hook_name": "blocks.1.hook_resid_post",
    }
    usual = {
        "d_in": D_IN,
        "d_sae": D_SAE,
        "dtype": "float32",
        "device": "cpu",
        "apply_b_dec_to_input": True,
    }
    usual |= {
        "normalize_activations": "none",
        "reshape_activations": "none",
        "architecture": "standard",
        "metadata": about,
    }
    (folder / "cfg.json").write_text(json.dumps(usual | config))
    save_file(
        {name: one.contiguous() for name, one in (weights or tensors()).items()},
        folder / "sae_weights.safetensors",
    )
    return folder


def by_formula(
    weights: dict[str, Tensor], config: dict[str, Any], x: Tensor
) -> tuple[Tensor, Tensor]:
    """The activations and what they give back, as the classes of SAELens compute them."""
    w_enc, b_enc, w_dec, b_dec = (weights[name] for name in ("W_enc", "b_enc", "W_dec", "b_dec"))
    hidden = (x - b_dec * config.get("apply_b_dec_to_input", True)) @ w_enc + b_enc
    norm = w_dec.norm(dim=-1) if config.get("rescale_acts_by_decoder_norm") else torch.ones(D_SAE)
    hidden = hidden * norm
    active = hidden.relu()
    if config["architecture"] == "topk":
        values, places = torch.topk(hidden, k=config["k"], dim=-1)
        active = torch.zeros_like(hidden).scatter_(-1, places, values.relu())
    if config["architecture"] == "jumprelu":
        active = active * (hidden > weights["threshold"])
    return active, (active / norm) @ w_dec + b_dec


@pytest.mark.parametrize(
    "config",
    [
        {"architecture": "standard"},
        {"architecture": "standard", "apply_b_dec_to_input": False},
        {"architecture": "topk", "k": 4},
        {
            "architecture": "topk",
            "k": 4,
            "rescale_acts_by_decoder_norm": True,
            "apply_b_dec_to_input": False,
        },
        {"architecture": "jumprelu"},
    ],
)
def test_what_a_folder_computes_is_what_saelens_computes_and_so_after_it_is_written_again(
    config: dict[str, Any], tmp_path: Path
) -> None:
    threshold = torch.linspace(0.1, 3, D_SAE) if config["architecture"] == "jumprelu" else None
    weights, x = (
        tensors(threshold=threshold),
        torch.randn(50, D_IN, generator=torch.Generator().manual_seed(1)),
    )
    found = Dictionary(**sae_lens.read(written(tmp_path / "one", weights, **config)))
    assert (found.block, found.kind) == (1, config["architecture"].replace("standard", "relu"))
    active, back = by_formula(weights, config, x)
    torch.testing.assert_close(found.encode(x), active, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(found.reconstruct(x), back, atol=1e-4, rtol=1e-4)
    sae_lens.write(tmp_path / "two", vars(found), found.kind, "tiny")
    again = json.loads((tmp_path / "two" / "cfg.json").read_text())
    assert (again["architecture"], again["d_in"], again["d_sae"]) == (
        config["architecture"],
        D_IN,
        D_SAE,
    )
    assert again["metadata"]["hook_name"] == "blocks.1.hook_resid_post"
    active, back = by_formula(load_file(tmp_path / "two" / "sae_weights.safetensors"), again, x)
    torch.testing.assert_close(found.encode(x), active, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(found.reconstruct(x), back, atol=1e-4, rtol=1e-4)


def test_folders_of_older_versions_are_read(tmp_path: Path) -> None:
    old = {
        "architecture": None,
        "metadata": None,
        "hook_point": "blocks.1.hook_resid_pre",
        "activation_fn_str": "topk",
    }
    folder = written(
        tmp_path / "old", **old, activation_fn_kwargs={"k": 3}, normalize_activations=False
    )
    found = sae_lens.read(folder)
    assert (found["block"], found["k"]) == (0, 3)  # the stream before block 1 is that after block 0


WRONG: list[tuple[dict[str, Any], dict[str, Tensor | None], str]] = [
    ({"architecture": "gated"}, {}, "the architecture is 'gated'"),
    ({"normalize_activations": "layer_norm"}, {}, "normalize_activations is 'layer_norm'"),
    ({"reshape_activations": "hook_z"}, {}, "reshape_activations is 'hook_z'"),
    ({"metadata": {"hook_name": "blocks.1.attn.hook_z"}}, {}, "only the stream after a block"),
    ({"metadata": {"hook_name": "blocks.0.hook_resid_pre"}}, {}, "only the stream after a block"),
    ({"metadata": {}}, {}, "only the stream after a block"),
    ({"architecture": "topk", "k": 31}, {}, "k is 31"),
    ({"architecture": "topk", "k": "4"}, {}, "k is '4'"),
    ({"architecture": "topk", "k": 0}, {}, "k is 0"),
    ({"architecture": "jumprelu"}, {}, "has not the tensors"),
    ({}, {"b_enc": None}, "has not the tensors"),
    ({}, {"W_enc": torch.zeros(12)}, "has not the tensors"),
    ({}, {"W_dec": torch.zeros(12, 30)}, "has not the tensors"),
    ({}, {"b_dec": torch.full((12,), torch.nan)}, "not finite"),
]


@pytest.mark.parametrize(("config", "weights", "why"), WRONG)
def test_what_is_computed_in_another_way_or_is_damaged_is_refused(
    config: dict[str, Any], weights: dict[str, Any], why: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=why):
        sae_lens.read(written(tmp_path / "one", tensors(**weights), **config))


def test_files_that_are_cut_or_missing_are_refused(tmp_path: Path) -> None:
    folder = written(tmp_path / "one")
    weights = folder / "sae_weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-10])
    with pytest.raises(ValueError, match="damaged or cut short"):
        sae_lens.read(folder)
    (folder / "cfg.json").write_text("[1")
    with pytest.raises(ValueError, match=r"cfg\.json is damaged"):
        sae_lens.read(folder)
    (folder / "cfg.json").write_text("[1]")
    with pytest.raises(ValueError, match=r"cfg\.json is no config"):
        sae_lens.read(folder)
    with pytest.raises(OSError, match="No such file"):
        sae_lens.read(tmp_path / "gone")


def test_a_folder_becomes_a_dictionary_of_a_model_that_it_fits(
    tiny_model: TinyModel, tmp_path: Path, capsys: Capture
) -> None:
    tiny_model("mine", text="abcdefg ")
    tiny_model("wide", text="abcdefg ", d_model=24)
    folder = written(tmp_path / "Layer 1", architecture="topk", k=4)
    (tmp_path / "text.txt").write_text("a cab bed " * 40)
    asked = ["--read", folder, "--corpus", tmp_path / "text.txt", "--out", tmp_path / "out"]
    name = json.loads(output(capsys, "dictionary", "mine", *asked, "--json"))["name"]
    assert name.startswith("layer-1-")
    assert gptviz.load("mine").dictionaries() == [name]
    torch.testing.assert_close(
        sae_lens.read(tmp_path / "out")["encoder"], sae_lens.read(folder)["encoder"]
    )
    assert (
        "reads vectors of 12 numbers after block 1; wide has 2 blocks, and vectors of 24"
        in error(capsys, "dictionary", "wide", *asked)
    )
    assert "--block N" in error(capsys, "dictionary", "mine")
