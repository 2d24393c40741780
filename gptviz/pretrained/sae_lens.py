"""Dictionaries as SAELens keeps them: a folder with cfg.json and sae_weights.safetensors.

The weights are W_enc [d_in, d_sae], b_enc [d_sae], W_dec [d_sae, d_in] and b_dec [d_in]; of the
architecture jumprelu also threshold [d_sae]. A vector x is encoded as (x − b_dec) W_enc + b_enc, or
without `apply_b_dec_to_input` as x W_enc + b_enc. A transcoder reads what an MLP reads and gives
back what it gives; it is encoded as x W_enc + b_enc.
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

from .families import FAMILIES
from .given import Given, WithoutEffect, real_numbers, without_place
from .sources.tensors import SafetensorsFile

CONFIG = "cfg.json"
WEIGHTS = "sae_weights.safetensors"
KIND = "SAELens folder"
ARCHITECTURES = ("standard", "topk", "jumprelu", "transcoder", "jumprelu_transcoder")
_OF_MLP = "transcoder"  # what the architecture of one ends with
# The most bytes of the config, values in it, and bytes of the weights.
LONGEST_CONFIG = 2**20
MOST_VALUES = 10_000
MOST_BYTES = 2**32
# A place in the stream: as TransformerLens and its bridge call it, or as the module of
# `transformers` whose output it is, with or without the path to the list of blocks.
_PLACE = re.compile(
    r"blocks\.(?P<before>[0-9]{1,4})\.hook_(resid_pre|in)"
    r"|blocks\.(?P<after>[0-9]{1,4})\.hook_(resid_post|out)"
    r"|(?P<path>[a-z_.]+)\.(?P<block>[0-9]{1,4})"
)
# The input of an MLP, behind the norm before it. What TransformerLens calls hook_normalized is that
# of LayerNorm; of RMSNorm it lies before the gain.
_MLP = re.compile(r"blocks\.(?P<block>[0-9]{1,4})\.(mlp\.hook_in|(?P<normed>ln2\.hook_normalized))")
# The older names of settings.
_OLDER = {
    "hook_point": "hook_name",
    "hook_point_head_index": "hook_head_index",
    "activation_fn_str": "activation_fn",
}
# The settings of cfg.json that do not change what is computed from a vector.
WITHOUT_EFFECT: WithoutEffect = {
    "it is about the program and the machine": """
        device act_store_device dtype sae_lens_version sae_lens_training_version seed verbose
        autocast* compile_* *compilation_mode n_devices""",
    "it says which model, texts and tokens it was fitted to": """
        model_name model_class_name model_kwargs neuronpedia_id hook_layer hook_point_layer
        hook_eval dataset* eval_dataset* streaming is_dataset_tokenized use_chat_formatting
        context_size prepend_bos seqpos_slice exclude_special_tokens disable_concat_sequences
        sequence_separator_token *training_tokens use_cached_activations cached_activations_path
        activations_mixing_fraction tokens_per_buffer *_batch* n_batches*""",
    "it is about how it was fitted, and what that noted": """
        lr* adam_* l1_* lp_norm mse_loss_normalization decoder_* b_dec_init_method
        init_encoder_as_decoder_transpose noise_level scale_sparsity_penalty_by_decoder_norm
        expansion_factor from_pretrained_path use_ghost_grads feature_sampling* dead_feature*
        resample_batches feature_reinit_scale log_to_wandb *wandb* logger run_name *checkpoint*
        output_path aux_loss_coefficient use_sparse_activations training_architecture""",
}
# What the model was opened with that it was fitted to: this leaves the stream as it is.
_OPENED: WithoutEffect = {
    "it is about where the model came from and where it was computed": """
        revision trust_remote_code token use_auth_token cache_dir local_files_only device
        device_map n_devices move_to_device low_cpu_mem_usage dtype torch_dtype
        attn_implementation""",
    "it changes only how weights are written that read the stream, or the logits": """
        fold_ln fold_value_biases center_unembed refactor_factored_attn_matrices""",
    "it is about tokens": "default_prepend_bos default_padding_side",
}


def read_folder(folder: Path, *, centres: bool = False) -> dict[str, Any]:
    """The dictionary of a folder: `block`, `k`, and the tensors `encoder`, `encoder_bias`,
    `decoder`, `decoder_bias` and `threshold` in float32, as `gptviz.interp.dictionaries` has them.

    A dictionary may have been fitted to a stream without its mean (`center_writing_weights` of
    TransformerLens). Where the model `centres` its stream, as LayerNorm does, the mean is taken
    away here too: by the encoder. What the features give back then has the mean 0, as there.

    A ValueError if the folder has none, it is damaged, or it computes or reads something else than
    dictionaries here do; an OSError if a file cannot be read.
    """
    given = _given_settings(folder)
    # which activations count
    given.allow_only("architecture", *ARCHITECTURES)
    given.allow_only("activation_fn", "relu", "topk")
    architecture = given.optional("architecture") or "standard"
    is_of_mlp = architecture.endswith(_OF_MLP)
    if is_of_mlp:
        block = _mlp_block(given, centres=centres)
        architecture = architecture.removesuffix(_OF_MLP).removesuffix("_") or "standard"
    else:
        block = _block(given)
    more = given.inner_table("activation_fn_kwargs")
    if given.optional("activation_fn") == "topk" and architecture == "standard":
        architecture = "topk"
    counted = more if "k" in more.fields else given
    if architecture == "topk":
        counted.optional("k")
    # what comes before and after
    given.allow_only("normalize_activations", "none", False)
    given.allow_only("reshape_activations", "none")
    is_moved = given.switch("apply_b_dec_to_input", not is_of_mlp)
    if is_of_mlp and is_moved:
        raise given.refusal(
            "apply_b_dec_to_input", "of a transcoder nothing is taken from its input"
        )
    is_rescaled = architecture == "topk" and given.switch("rescale_acts_by_decoder_norm", False)
    opened = given.inner_table("model_from_pretrained_kwargs")
    without_mean = opened.switch("center_writing_weights", False) and centres and not is_of_mlp
    if is_of_mlp and opened.switch("fold_ln", False):
        raise opened.refusal("fold_ln", "a transcoder is read behind the gain of the norm only")
    sizes = given.optional("d_in"), given.optional("d_sae")
    if is_of_mlp and given.optional("d_out") != sizes[0]:
        raise given.refusal("d_out", "what is given back must be as long as what is read")
    given.refuse_unread(WITHOUT_EFFECT)
    more.refuse_unread()
    opened.refuse_unread(_OPENED)

    tensors = _tensors(folder, architecture)
    features, width = tensors["W_dec"].shape
    if sizes != (width, features) and sizes != (None, None):
        raise ValueError(
            f"{given.file}: d_in and d_sae are {sizes!r:.60}, and the tensors have {width:,} "
            f"numbers and {features:,} features: the two files are not of one dictionary"
        )
    if architecture == "topk":
        k = counted.whole_number("k", None, 1, features)
    else:
        k = 0
    encoder = tensors["W_enc"].T
    bias = tensors["b_enc"]
    decoder = tensors["W_dec"]
    back = tensors["b_dec"]
    # the activations are those of a decoder with rows of length 1
    if is_rescaled:
        norm = decoder.norm(dim=-1)
        encoder = encoder * norm[:, None]
        bias = bias * norm
        decoder = decoder / norm[:, None]
    if not is_moved and not is_of_mlp:
        bias = bias + encoder @ back
    if without_mean:
        centred = encoder - encoder.mean(dim=-1, keepdim=True)
        encoder, bias = centred, bias + (centred - encoder) @ back
    return {
        "encoder": encoder.contiguous(),
        "encoder_bias": bias,
        "decoder": decoder,
        "decoder_bias": back,
        "threshold": tensors.get("threshold", torch.zeros(features)),
        "block": block,
        "k": k,
        "target": "mlp" if is_of_mlp else "stream",
    }


def _given_settings(folder: Path) -> Given:
    """What cfg.json says, in the names of SAELens 6, without its tables of tables."""
    file = f"{folder.name}/{CONFIG}"
    try:
        said = parse_json(read_regular(folder / CONFIG, LONGEST_CONFIG), MOST_VALUES)
    except ValueError as error:
        raise ValueError(f"{file} is damaged: {error}") from None
    if not isinstance(said, dict):
        raise ValueError(f"{file} is no config of a dictionary")
    metadata = Given(said, KIND, file).table("metadata")
    fields: dict[str, Any] = {}
    for older, value in [*said.items(), *metadata.items()]:
        now = _OLDER.get(older) or older
        if fields.get(now) not in (None, value):
            raise ValueError(
                f"{file}: {now} is {fields[now]!r:.60} and {value!r:.60}: it is said twice, and "
                "only one can be right"
            )
        fields[now] = value
    return Given({name: value for name, value in fields.items() if name != "metadata"}, KIND, file)


def _block(given: Given) -> int:
    """The number of the block after which the stream is read."""
    place = _PLACE.fullmatch(str(given.optional("hook_name")))
    if place is not None and place["before"] is not None and int(place["before"]):
        # the stream before a block is that after the one before
        return int(place["before"]) - 1
    if place is not None and place["after"] is not None:
        return int(place["after"])
    paths = {family.layers.format("decoder") for family in FAMILIES.values()}
    # as seen from the model without its head, too
    if place is not None and place["path"] in paths | {path.partition(".")[2] for path in paths}:
        return int(place["block"])
    raise given.refusal("hook_name", "only the stream after a block is read here")


def _mlp_block(given: Given, *, centres: bool) -> int:
    """The number of the block whose MLP a transcoder stands for."""
    place = _MLP.fullmatch(str(given.optional("hook_name")))
    if place is None or (place["normed"] and not centres):
        reason = "a transcoder is read here that reads what an MLP reads"
        raise given.refusal("hook_name", reason)
    given.allow_only("hook_name_out", f"blocks.{place['block']}.hook_mlp_out")
    given.allow_only("hook_layer_out", int(place["block"]))
    return int(place["block"])


def _tensors(folder: Path, architecture: str) -> dict[str, Tensor]:
    """The tensors of the weights in float32, after their names, types and shapes were checked."""
    path = folder / WEIGHTS
    file = f"{folder.name}/{WEIGHTS}"
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(f"{file} has more than {MOST_BYTES // 2**30} GB, the most that is read")
    try:
        stored = SafetensorsFile(path)
        shapes = stored.shapes()
        d_in, d_sae = (*shapes.get("W_enc", ()), 0, 0)[:2]
        wanted = {
            "W_enc": (d_in, d_sae),
            "b_enc": (d_sae,),
            "W_dec": (d_sae, d_in),
            "b_dec": (d_in,),
        }
        if architecture == "jumprelu":
            wanted["threshold"] = (d_sae,)
        if not d_in * d_sae or any(shapes.get(name) != shape for name, shape in wanted.items()):
            raise ValueError(
                f"{file} has not the tensors of a dictionary ({architecture}): {shapes!r:.200}"
            )
        tensors = {
            name: real_numbers(f"{file}: {name}", stored.tensor(name)) for name in stored.names()
        }
    except SafetensorError as error:
        raise ValueError(f"{file} is damaged or cut short: {error}") from None
    # versions of SAELens that scaled nothing wrote this too
    if "scaling_factor" in tensors and bool((tensors["scaling_factor"] == 1).all()):
        del tensors["scaling_factor"]
    if left := sorted(tensors.keys() - wanted.keys()):
        raise without_place(file, left, f"a dictionary of SAELens ({architecture})")
    return tensors


def write(folder: Path, dictionary: Mapping[str, Any], kind: str, model: str) -> None:
    """Write a dictionary, as `read_folder` gives it, as two files in a folder, which is made;
    `kind` is
    "relu", "topk" or "jumprelu", and `model` is what the files say of the model that it belongs to.
    A ValueError for a transcoder with TopK, which SAELens does not have; an OSError if it cannot be
    written.
    """
    d_sae, d_in = dictionary["encoder"].shape
    is_of_mlp = dictionary["target"] == "mlp"
    architectures = {"relu": "standard", "topk": "topk", "jumprelu": "jumprelu"}
    if is_of_mlp:
        architectures = {"relu": "transcoder", "jumprelu": "jumprelu_transcoder"}
    if kind not in architectures:
        raise ValueError(
            "SAELens has no transcoder with TopK, so none is written as a folder: write it to a "
            "file that ends with .safetensors, or fit one with --kind relu"
        )
    config = {
        "architecture": architectures[kind],
        "d_in": d_in,
        "d_sae": d_sae,
        "dtype": "float32",
    }
    config |= {
        "device": "cpu",
        "apply_b_dec_to_input": not is_of_mlp,
        "normalize_activations": "none",
        "reshape_activations": "none",
    }
    config |= (
        {"k": dictionary["k"], "rescale_acts_by_decoder_norm": False} if kind == "topk" else {}
    )
    at = f"blocks.{dictionary['block']}"
    about = {
        "sae_lens_version": "6.0.0",
        "model_name": model,
        "hook_name": f"{at}.mlp.hook_in" if is_of_mlp else f"{at}.hook_resid_post",
        "prepend_bos": False,
    }
    if is_of_mlp:
        config |= {"d_out": d_in}
        about |= {"hook_name_out": f"{at}.hook_mlp_out"}
    config |= {"metadata": about}
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
