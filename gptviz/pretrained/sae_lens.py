"""Dictionaries as SAELens keeps them: a folder with cfg.json and sae_weights.safetensors.

The weights are W_enc [d_in, d_sae], b_enc [d_sae], W_dec [d_sae, d_in] and b_dec [d_in]; of the
architecture jumprelu also threshold [d_sae]. A vector x is encoded as (x − b_dec) W_enc + b_enc, or
without `apply_b_dec_to_input` as x W_enc + b_enc.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from gptviz.machine.bounded import parse_json, read_regular
from gptviz.machine.files import in_place_of

from .sources.tensors import open_safetensors

CONFIG, WEIGHTS = "cfg.json", "sae_weights.safetensors"
ARCHITECTURES = ("standard", "topk", "jumprelu")
# The most bytes of the config, values in it, and bytes of the weights.
LONGEST_CONFIG, MOST_VALUES, MOST_BYTES = 2**20, 10_000, 2**32
_HOOK = re.compile(r"blocks\.([0-9]{1,4})\.hook_resid_(pre|post)")
# Settings that change what is computed, with the values that this reader knows.
_KNOWN = {
    "normalize_activations": (None, False, "none"),
    "reshape_activations": (None, "none"),
    "finetuning_scaling_factor": (None, False),
    "activation_fn": (None, "relu", "topk"),
}


def read(folder: Path) -> dict[str, Any]:
    """The dictionary of a folder: `block`, `k`, and the tensors `encoder`, `encoder_bias`,
    `decoder`, `decoder_bias` and `threshold` in float32, as `gptviz.interp.dictionaries` has them.
    A ValueError if the folder has none, it is damaged, or it computes or reads something else than
    dictionaries here do; an OSError if a file cannot be read.
    """
    config = _config(folder)
    where, architecture = _HOOK.fullmatch(str(config["hook_name"])), config["architecture"]
    if architecture not in ARCHITECTURES:
        raise ValueError(
            f"{folder.name}: the architecture is {architecture!r:.40}; {', '.join(ARCHITECTURES)} "
            "are read"
        )
    for name, known in _KNOWN.items():
        if config.get(name) not in known:
            raise ValueError(
                f"{folder.name}: {name} is {config[name]!r:.40}, and only {known[-1]!r} is read"
            )
    if where is None or where[0] == "blocks.0.hook_resid_pre":
        raise ValueError(
            f"{folder.name} reads {config['hook_name']!r:.60}: only the stream after a block is "
            "read here"
        )
    tensors = _tensors(folder, architecture)
    features = tensors["b_enc"].numel()
    k = config.get("k") if architecture == "topk" else 0
    if type(k) is not int or not (architecture == "topk") <= k <= features:
        raise ValueError(f"{folder.name}: k is {k!r:.40}, and there are {features:,} features")
    encoder, bias, decoder, back = (
        tensors["W_enc"].T,
        tensors["b_enc"],
        tensors["W_dec"],
        tensors["b_dec"],
    )
    # the activations are those of a decoder with rows of length 1
    if config.get("rescale_acts_by_decoder_norm"):
        norm = decoder.norm(dim=-1)
        encoder, bias, decoder = encoder * norm[:, None], bias * norm, decoder / norm[:, None]
    if not config.get("apply_b_dec_to_input", True):
        bias = bias + encoder @ back
    return {
        "encoder": encoder.contiguous(),
        "encoder_bias": bias,
        "decoder": decoder,
        "decoder_bias": back,
        "threshold": tensors.get("threshold", torch.zeros(features)),
        # the stream before a block is that after the one before
        "block": int(where[1]) - (where[2] == "pre"),
        "k": k,
    }


def _config(folder: Path) -> dict[str, Any]:
    """What cfg.json says, in the names of SAELens 6."""
    try:
        said = parse_json(read_regular(folder / CONFIG, LONGEST_CONFIG), MOST_VALUES)
    except ValueError as error:
        raise ValueError(f"{folder.name}/{CONFIG} is damaged: {error}") from None
    if not isinstance(said, dict):
        raise ValueError(f"{folder.name}/{CONFIG} is no config of a dictionary")
    metadata = said.get("metadata")
    old = {"hook_point": "hook_name", "activation_fn_str": "activation_fn"}
    config: dict[str, Any] = {
        old.get(name) or name: value
        for name, value in (said | (metadata if isinstance(metadata, dict) else {})).items()
    }
    more = config.get("activation_fn_kwargs")
    if config.get("activation_fn") == "topk" and isinstance(more, dict):
        config |= {"architecture": "topk", "k": more.get("k")}
    return {"architecture": "standard", "hook_name": ""} | config


def _tensors(folder: Path, architecture: str) -> dict[str, Tensor]:
    """The tensors of the weights in float32, after their number, types and shapes were checked."""
    path = folder / WEIGHTS
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(
            f"{folder.name}/{WEIGHTS} has more than {MOST_BYTES // 2**30} GB, the most that is read"
        )
    try:
        with open_safetensors(path) as file:
            shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
            d_in, d_sae = (*shapes.get("W_enc", ()), 0, 0)[:2]
            wanted = {
                "W_enc": (d_in, d_sae),
                "b_enc": (d_sae,),
                "W_dec": (d_sae, d_in),
                "b_dec": (d_in,),
            }
            wanted |= {"threshold": (d_sae,)} if architecture == "jumprelu" else {}
            if not d_in * d_sae or any(shapes.get(name) != shape for name, shape in wanted.items()):
                raise ValueError(
                    f"{folder.name}/{WEIGHTS} has not the tensors of a dictionary "
                    f"({architecture}): {shapes!r:.200}"
                )
            tensors = {name: file.get_tensor(name).float() for name in wanted}
    except SafetensorError as error:
        raise ValueError(f"{folder.name}/{WEIGHTS} is damaged or cut short: {error}") from None
    if not all(tensor.isfinite().all() for tensor in tensors.values()):
        raise ValueError(f"{folder.name}/{WEIGHTS} has numbers that are not finite")
    return tensors


def write(folder: Path, dictionary: Mapping[str, Any], kind: str, model: str) -> None:
    """Write a dictionary, as `read` gives it, as two files in a folder, which is made; `kind` is
    "relu", "topk" or "jumprelu", and `model` is what the files say of the model that it belongs to.
    An OSError if it cannot be written.
    """
    d_sae, d_in = dictionary["encoder"].shape
    config = {
        "architecture": "standard" if kind == "relu" else kind,
        "d_in": d_in,
        "d_sae": d_sae,
        "dtype": "float32",
    }
    config |= {
        "device": "cpu",
        "apply_b_dec_to_input": True,
        "normalize_activations": "none",
        "reshape_activations": "none",
    }
    config |= (
        {"k": dictionary["k"], "rescale_acts_by_decoder_norm": False} if kind == "topk" else {}
    )
    hook = f"blocks.{dictionary['block']}.hook_resid_post"
    config |= {
        "metadata": {
            "sae_lens_version": "6.0.0",
            "model_name": model,
            "hook_name": hook,
            "prepend_bos": False,
        }
    }
    tensors = {"W_enc": dictionary["encoder"].T, "b_enc": dictionary["encoder_bias"]}
    tensors |= {"W_dec": dictionary["decoder"], "b_dec": dictionary["decoder_bias"]}
    tensors |= {"threshold": dictionary["threshold"]} if kind == "jumprelu" else {}
    folder.mkdir(parents=True, exist_ok=True)
    with in_place_of(folder / WEIGHTS) as fresh:
        save_file(
            {name: tensor.float().cpu().contiguous() for name, tensor in tensors.items()}, fresh
        )
    with in_place_of(folder / CONFIG) as fresh:
        fresh.write_text(json.dumps(config, indent=1), encoding="utf-8")
