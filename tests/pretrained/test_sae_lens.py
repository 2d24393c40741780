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

D_IN = 12
D_SAE = 30


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
    weights = tensors(threshold=threshold)
    x = torch.randn(50, D_IN, generator=torch.Generator().manual_seed(1))
    found = Dictionary(**sae_lens.read_folder(written(tmp_path / "one", weights, **config)))
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
    found = sae_lens.read_folder(folder)
    assert (found["block"], found["k"]) == (0, 3)  # the stream before block 1 is that after block 0


@pytest.mark.parametrize(
    ("hook", "block"),
    [
        ("blocks.2.hook_resid_pre", 1),
        ("blocks.2.hook_in", 1),
        ("blocks.1.hook_out", 1),
        ("model.layers.1", 1),
        ("layers.1", 1),
        ("transformer.h.10", 10),
        ("h.1", 1),
        ("gpt_neox.layers.1", 1),
        ("model.decoder.layers.1", 1),
    ],
)
def test_the_stream_after_a_block_has_many_names(hook: str, block: int, tmp_path: Path) -> None:
    folder = written(tmp_path / "one", metadata={"hook_name": hook})
    assert sae_lens.read_folder(folder)["block"] == block


@pytest.mark.parametrize("config", [{}, {"apply_b_dec_to_input": False}])
def test_a_stream_without_its_mean_is_read_so_where_the_model_takes_it_away(
    config: dict[str, Any], tmp_path: Path
) -> None:
    """As `center_writing_weights` of TransformerLens does, which skips models with RMSNorm."""
    opened = {"model_from_pretrained_kwargs": {"center_writing_weights": True, "fold_ln": True}}
    x = 3 + torch.randn(50, D_IN, generator=torch.Generator().manual_seed(1))
    folder = written(tmp_path / "one", **config, **opened)
    for centres, seen in ((True, x - x.mean(-1, keepdim=True)), (False, x)):
        found = Dictionary(**sae_lens.read_folder(folder, centres=centres))
        active, back = by_formula(tensors(), {"architecture": "standard"} | config, seen)
        torch.testing.assert_close(found.encode(x), active, atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(found.reconstruct(x), back, atol=1e-4, rtol=1e-4)


def test_a_model_says_whether_it_takes_the_mean_away(tiny_model: TinyModel, tmp_path: Path) -> None:
    opened = {"model_from_pretrained_kwargs": {"center_writing_weights": True}}
    folder = written(tmp_path / "one", **opened)
    for norm in ("layernorm", "rmsnorm"):
        tiny_model(norm, text="abcdefg ", norm=norm)
        found = gptviz.load(norm).read_dictionary(folder)
        mean = found.encoder.mean(-1)
        assert torch.allclose(mean, torch.zeros_like(mean), atol=1e-6) == (norm == "layernorm")


def test_settings_of_a_dictionary_that_is_published_are_known(tmp_path: Path) -> None:
    """Those of the first dictionaries of GPT-2, and of a training by SAELens 6."""
    old = {
        "hook_point": "blocks.1.hook_resid_pre",
        "hook_point_layer": 1,
        "hook_point_head_index": None,
        "dataset_path": "owt",
        "is_dataset_tokenized": False,
        "context_size": 128,
        "cached_activations_path": "activations",
        "n_batches_in_buffer": 128,
        "total_training_tokens": 300_000_000,
        "store_batch_size": 32,
        "b_dec_init_method": "geometric_median",
        "expansion_factor": 32,
        "l1_coefficient": 8e-05,
        "lr_warm_up_steps": 5000,
        "train_batch_size": 4096,
        "resample_batches": 1028,
        "feature_reinit_scale": 0.2,
        "dead_feature_estimation_method": "no_fire",
        "log_to_wandb": True,
        "wandb_log_frequency": 100,
        "n_checkpoints": 10,
        "checkpoint_path": "checkpoints",
        "tokens_per_buffer": 67_108_864,
        "run_name": "24576-L1",
        "neuronpedia_id": "gpt2-small/0-res-jb",
        "prepend_bos": True,
        "metadata": None,
    }
    assert sae_lens.read_folder(written(tmp_path / "old", **old))["block"] == 0
    about = {
        "hook_name": "blocks.1.hook_resid_post",
        "model_class_name": "HookedTransformer",
        "seqpos_slice": [None],
        "model_from_pretrained_kwargs": {"dtype": "bfloat16", "revision": "main"},
        "exclude_special_tokens": True,
        "sequence_separator_token": "bos",
    }
    scale = {"scaling_factor": torch.ones(D_SAE)}
    folder = written(tmp_path / "new", tensors() | scale, metadata=about)
    assert sae_lens.read_folder(folder)["block"] == 1


WRONG: list[tuple[dict[str, Any], dict[str, Tensor | None], str]] = [
    (
        {"architecture": "gated"},
        {},
        "architecture is 'gated'; of SAELens folders gptviz opens those with 'standard'",
    ),
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
    ({}, {"b_dec": torch.full((12,), torch.nan)}, "b_dec holds values that are not numbers"),
    ({}, {"W_enc": torch.ones(12, 30) * 1j}, "W_enc holds complex numbers"),
    ({"activation_fn": "topk"}, {}, "k is None"),
    ({"activation_fn_str": "topk", "activation_fn_kwargs": {}}, {}, "k is None"),
    ({"activation_fn": "topk", "activation_fn_kwargs": {"k": 3, "noise": 1}}, {}, "noise is 1"),
    ({"activation_fn": "tanh-relu"}, {}, "is 'tanh-relu'; .* those with 'relu' or 'topk'"),
    ({"k": 4}, {}, "k is 4; gptviz does not know"),
    ({"finetuning_scaling_factor": True}, {}, "finetuning_scaling_factor is True"),
    ({}, {"scaling_factor": torch.full((30,), 2.0)}, "no place .* 'scaling_factor'"),
    ({}, {"threshold": torch.ones(30)}, "no place .* 'threshold'"),
    ({"hook_head_index": 3}, {}, "hook_head_index is 3"),
    ({"d_in": 24}, {}, r"d_in and d_sae are \(24, 30\)"),
    ({"hook_point": "blocks.0.hook_resid_post"}, {}, "it is said twice"),
    ({"model_from_pretrained_kwargs": {"center": True}}, {}, "center is True; gptviz does not"),
    *(
        ({"metadata": {"hook_name": hook}}, {}, f"hook_name is '{hook}'; only the stream")
        for hook in ("model.encoder.layers.1", "model.layers.1.mlp", "visual.layers.1", "x.h.1")
    ),
]


@pytest.mark.parametrize(("config", "weights", "why"), WRONG)
def test_what_is_computed_in_another_way_or_is_damaged_is_refused(
    config: dict[str, Any], weights: dict[str, Any], why: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=why):
        sae_lens.read_folder(written(tmp_path / "one", tensors(**weights), **config))


def test_files_that_are_cut_or_missing_are_refused(tmp_path: Path) -> None:
    folder = written(tmp_path / "one")
    weights = folder / "sae_weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-10])
    with pytest.raises(ValueError, match="damaged or cut short"):
        sae_lens.read_folder(folder)
    (folder / "cfg.json").write_text("[1")
    with pytest.raises(ValueError, match=r"cfg\.json is damaged"):
        sae_lens.read_folder(folder)
    (folder / "cfg.json").write_text("[1]")
    with pytest.raises(ValueError, match=r"cfg\.json is no config"):
        sae_lens.read_folder(folder)
    with pytest.raises(OSError, match="No such file"):
        sae_lens.read_folder(tmp_path / "gone")


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
        sae_lens.read_folder(tmp_path / "out")["encoder"], sae_lens.read_folder(folder)["encoder"]
    )
    assert (
        "reads vectors of 12 numbers after block 1; wide has 2 blocks, and vectors of 24"
        in error(capsys, "dictionary", "wide", *asked)
    )
    assert "--block N" in error(capsys, "dictionary", "mine")


OF_MLP = {
    "d_out": D_IN,
    "apply_b_dec_to_input": False,
    "metadata": {
        "hook_name": "blocks.1.mlp.hook_in",
        "hook_name_out": "blocks.1.hook_mlp_out",
    },
}


@pytest.mark.parametrize("architecture", ["transcoder", "jumprelu_transcoder"])
def test_a_transcoder_computes_what_saelens_computes_and_so_after_it_is_written_again(
    architecture: str, tmp_path: Path
) -> None:
    jumps = architecture.startswith("jump")
    threshold = torch.linspace(0.1, 3, D_SAE) if jumps else None
    weights = tensors(threshold=threshold)
    x = torch.randn(50, D_IN, generator=torch.Generator().manual_seed(1))
    given = {**OF_MLP, "architecture": architecture}
    folder = written(tmp_path / "one", weights, **given)
    for _ in range(2):
        found = Dictionary(**sae_lens.read_folder(folder))
        assert (found.target, found.block) == ("mlp", 1)
        hidden = x @ weights["W_enc"] + weights["b_enc"]
        active = hidden.relu() * (hidden > (threshold if jumps else 0))
        torch.testing.assert_close(found.encode(x), active, atol=1e-4, rtol=1e-4)
        back = active @ weights["W_dec"] + weights["b_dec"]
        torch.testing.assert_close(found.reconstruct(x), back, atol=1e-4, rtol=1e-4)
        folder = tmp_path / "two"
        sae_lens.write(folder, vars(found), found.kind, "tiny")
    again = json.loads((folder / "cfg.json").read_text())
    assert again["metadata"]["hook_name_out"] == "blocks.1.hook_mlp_out"
    assert (again["architecture"], again["d_out"]) == (architecture, D_IN)


def test_a_transcoder_behind_a_layernorm_is_read_by_its_other_name(tmp_path: Path) -> None:
    about = {"hook_name": "blocks.1.ln2.hook_normalized"}
    given = {**OF_MLP, "architecture": "transcoder", "metadata": about}
    folder = written(tmp_path / "one", **given)
    assert sae_lens.read_folder(folder, centres=True)["target"] == "mlp"
    with pytest.raises(ValueError, match="ln2.hook_normalized'; a transcoder is read here"):
        sae_lens.read_folder(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"metadata": {"hook_name": "blocks.1.hook_resid_mid"}}, "what an MLP reads"),
        ({"architecture": "skip_transcoder"}, "skip_transcoder"),
        ({"apply_b_dec_to_input": True}, "nothing is taken from its input"),
        ({"d_out": D_IN + 1}, "as long as what is read"),
        (
            {
                "metadata": {
                    "hook_name": "blocks.1.mlp.hook_in",
                    "hook_name_out": "blocks.2.hook_mlp_out",
                }
            },
            "blocks.1.hook_mlp_out",
        ),
    ],
)
def test_a_transcoder_of_another_kind_is_refused_by_name(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    given = {**OF_MLP, "architecture": "transcoder", **changes}
    with pytest.raises(ValueError, match=message):
        sae_lens.read_folder(written(tmp_path / "one", **given))


def test_a_transcoder_with_topk_is_not_written_for_saelens(tmp_path: Path) -> None:
    one = Dictionary(**sae_lens.read_folder(written(tmp_path / "one", architecture="topk", k=3)))
    with pytest.raises(ValueError, match="fit one with --kind relu"):
        sae_lens.write(tmp_path / "two", vars(one) | {"target": "mlp"}, "topk", "tiny")
    assert not (tmp_path / "two").exists()
