"""Every family that can be opened computes what `transformers` computes from the same weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from gptviz.model import Config, KVCache, Record, Transformer
from gptviz.pretrained.families import FAMILIES, Given, ImportRefusedError, family_of
from gptviz.pretrained.opening import filled, source_at
from tests.pretrained.test_encoders import CLASSIFIERS
from tests.tiny import some_ids

VOCAB, CONTEXT = 31, 24
# No two sizes are equal where a family allows it. Names as in its `config.json`.
GPT2_SIZES = {"n_embd": 24, "n_layer": 3, "n_head": 2, "n_positions": CONTEXT, "n_inner": 40}
SIZES = {
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 40,
    "max_position_embeddings": CONTEXT,
}
GROUPED = SIZES | {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8}
NEAR = {"sliding_window": 5}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 12,
}
# By family, models of it that differ in an axis of our config.
MODELS: dict[str, list[dict[str, Any]]] = {
    "gpt2": [GPT2_SIZES, GPT2_SIZES | {"tie_word_embeddings": False, "activation_function": "relu"}],
    "gpt_neo": [
        {
            "hidden_size": 24,
            "num_layers": 4,
            "num_heads": 2,
            "intermediate_size": 40,
            "max_position_embeddings": CONTEXT,
            "window_size": 5,
            "attention_types": [[["global", "local"], 2]],
        }
    ],
    "gpt_neox": [
        SIZES | {"rope_parameters": {"rope_type": "default", "rope_theta": 100.0, "partial_rotary_factor": 0.34}},
        SIZES | {"num_attention_heads": 3, "use_parallel_residual": False, "attention_bias": False, "tie_word_embeddings": True},
    ],
    "opt": [
        {key: value for key, value in SIZES.items() if key != "intermediate_size"}
        | {"ffn_dim": 40, "word_embed_proj_dim": 24, "enable_bias": bias}
        for bias in (True, False)
    ],
    "llama": [
        GROUPED,
        SIZES | {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True, "rms_norm_eps": 1e-2},
        GROUPED | {"rope_parameters": LLAMA3},
        GROUPED | {"rope_parameters": {"rope_type": "linear", "rope_theta": 300.0, "factor": 4.0}},
    ],
    "mistral": [GROUPED | NEAR | {"attention_bias": True, "mlp_bias": True}],  # which it has not, and does not look at
    "qwen2": [
        {key: value for key, value in GROUPED.items() if key != "head_dim"},
        SIZES | NEAR | {"use_sliding_window": True, "max_window_layers": 1, "num_key_value_heads": 1},
    ],
    "qwen3": [GROUPED | {"head_dim": 10, "mlp_bias": True}],
    "gemma3_text": [
        GROUPED | NEAR | {"query_pre_attn_scalar": 5, "num_hidden_layers": 6, "sliding_window_pattern": 3},
    ],
    "gptj": [GPT2_SIZES | {"rotary_dim": 4}],
    "phi": [SIZES | {"rope_parameters": {"rope_type": "default", "rope_theta": 100.0, "partial_rotary_factor": 0.5}}],
    "gemma": [GROUPED | {"num_key_value_heads": 1}],
    "gemma2": [GROUPED | NEAR | {"query_pre_attn_scalar": 5, "attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0}],
    "olmo2": [SIZES | {"num_key_value_heads": 1, "rms_norm_eps": 1e-3}],
    "bloom": [{"hidden_size": 24, "n_layer": 3, "n_head": 3}],
}
CASES = [pytest.param(kind, case, id=f"{kind}-{i}") for kind, cases in MODELS.items() for i, case in enumerate(cases)]


def theirs(kind: str, sizes: dict[str, Any]) -> Any:
    """A model of `transformers` whose every weight is random."""
    transformers = pytest.importorskip("transformers")
    config = transformers.AutoConfig.for_model(kind, **{"vocab_size": VOCAB} | sizes)
    config._attn_implementation = "eager"
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            gain = 1.0 if "norm" in name.lower() and name.endswith("weight") and "gemma" not in kind else 0.0
            parameter.normal_(gain, 0.3, generator=generator)
    return model


def ours(model: Any, folder: Path) -> Transformer:
    """The model that `transformers` saved, opened by us."""
    model.save_pretrained(folder)
    source = source_at(folder)
    return filled(source, source.opened().config).eval()


def close(mine: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-4)


def test_every_family_is_compared() -> None:
    assert MODELS.keys() | CLASSIFIERS.keys() | {"marian"} == FAMILIES.keys()


@pytest.mark.parametrize(("kind", "sizes"), CASES)
@torch.inference_mode()
def test_logits_patterns_and_hidden_states_are_those_of_transformers(kind: str, sizes: dict[str, Any], tmp_path: Path) -> None:
    model = theirs(kind, sizes)
    mine, ids = ours(model, tmp_path), some_ids(20, vocab=VOCAB)
    given = model(ids, output_attentions=True, output_hidden_states=True)
    record = Record()
    close(mine(ids, tap=record), given.logits)
    for index, pattern in enumerate(given.attentions):
        close(record.values[f"blocks.{index}.attention.pattern"], pattern)
        close(record.values[f"blocks.{index}.resid_pre"], given.hidden_states[index])
    close(record.values["final_norm"], given.hidden_states[-1])


@pytest.mark.parametrize(("kind", "sizes"), [pytest.param(kind, cases[0], id=kind) for kind, cases in MODELS.items()])
@torch.inference_mode()
def test_token_by_token_with_a_cache_a_batch_has_the_same_logits(kind: str, sizes: dict[str, Any], tmp_path: Path) -> None:
    model = theirs(kind, sizes)
    mine, ids = ours(model, tmp_path), some_ids(20, vocab=VOCAB)
    cache = KVCache(mine.config, batch=2)
    logits = torch.cat([mine(ids[:, at : at + 1], cache=cache) for at in range(20)], dim=1)
    close(logits, model(ids).logits)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"model_type": "mixtral"}, "'mixtral', which gptviz cannot open; it opens gpt2"),
        ({}, "type None"),
        ({"model_type": "opt", "do_layer_norm_before": False}, "do_layer_norm_before is False"),
        ({"model_type": "opt", "hidden_size": 1024, "word_embed_proj_dim": 512}, "word_embed_proj_dim is 512"),
        (
            {"model_type": "llama", "hidden_size": "64", "num_attention_heads": 2},
            "hidden_size is '64'; a Llama model needs a number",
        ),
        ({"model_type": "llama", **SIZES, "vocab_size": VOCAB, "rope_scaling": {"rope_type": "yarn"}}, "scaled by 'yarn'"),
        ({"model_type": "gpt2", "activation_function": "mish"}, "activation_function is 'mish'"),
        ({"model_type": "gemma3_text", **SIZES, "vocab_size": VOCAB, "layer_types": ["other"]}, "'other'"),
    ],
)
def test_what_has_no_part_is_refused_and_named(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ImportRefusedError, match=words):
        family_of(fields).config(Given(fields, "Llama"))


def test_a_config_written_before_version_5_means_the_same() -> None:
    old = {
        "model_type": "llama",
        "vocab_size": 31,
        "hidden_size": 24,
        "intermediate_size": 40,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "rope_theta": 700.0,
        "rope_scaling": {key: value for key, value in LLAMA3.items() if key != "rope_theta"},
    }
    new = {key: value for key, value in old.items() if not key.startswith("rope")} | {
        "rope_parameters": LLAMA3 | {"rope_theta": 700.0}
    }
    configs = [FAMILIES["llama"].config(Given(fields, "Llama")) for fields in (old, new)]
    assert configs[0] == configs[1]
    assert isinstance(configs[0], Config)
    assert (configs[0].rotary_base, configs[0].rotary_scaling, configs[0].rotary_factor) == (700.0, "llama3", 8.0)
