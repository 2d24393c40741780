"""Every family that can be opened computes what `transformers` computes from the same weights, and
is written back as it was.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from gptviz.model import KVCache, Record, Transformer
from gptviz.pretrained.families import FAMILIES, Given, ImportRefusedError
from gptviz.pretrained.opening import source_at, with_weights
from gptviz.pretrained.sources.folder import outline_of
from gptviz.pretrained.writing import Written, write_transformers
from gptviz.text import SymbolTokenizer, Tokenizer
from tests.tiny import some_ids

VOCAB = 31
CONTEXT = 24
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
MIXED = {"num_local_experts": 5, "num_experts_per_tok": 3}
LABELS = {0: "dull", 1: "fair", 2: "good"}
DISTILBERT = {
    "dim": 24,
    "n_layers": 3,
    "n_heads": 2,
    "hidden_dim": 40,
    "max_position_embeddings": CONTEXT,
}
# By family, the token that fills up the shorter rows of a batch; the other families read rows of
# one length.
PADDING = {"bert": 0, "distilbert": 0, "marian": VOCAB - 1}
END = 0  # the token that ends an answer
CLASSIFIERS = ("bert", "distilbert")
MARIAN = {
    "d_model": 24,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "max_position_embeddings": CONTEXT,
    "decoder_start_token_id": PADDING["marian"],
    "pad_token_id": PADDING["marian"],
    "eos_token_id": END,
    "forced_eos_token_id": None,
    "scale_embedding": True,
    "activation_function": "swish",
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 40,
    "decoder_ffn_dim": 40,
}
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
    "gpt2": [
        GPT2_SIZES,
        GPT2_SIZES | {"tie_word_embeddings": False, "activation_function": "relu"},
    ],
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
        SIZES
        | {
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 100.0,
                "partial_rotary_factor": 0.34,
            }
        },
        SIZES
        | {
            "num_attention_heads": 3,
            "use_parallel_residual": False,
            "attention_bias": False,
            "tie_word_embeddings": True,
        },
    ],
    "opt": [
        {key: value for key, value in SIZES.items() if key != "intermediate_size"}
        | {"ffn_dim": 40, "word_embed_proj_dim": 24, "enable_bias": bias}
        for bias in (True, False)
    ],
    "llama": [
        GROUPED,
        SIZES
        | {
            "attention_bias": True,
            "mlp_bias": True,
            "tie_word_embeddings": True,
            "rms_norm_eps": 1e-2,
        },
        GROUPED | {"rope_parameters": LLAMA3},
        GROUPED | {"rope_parameters": {"rope_type": "linear", "rope_theta": 300.0, "factor": 4.0}},
    ],
    # which it has not, and does not look at
    "mistral": [GROUPED | NEAR | {"attention_bias": True, "mlp_bias": True}],
    "qwen2": [
        {key: value for key, value in GROUPED.items() if key != "head_dim"},
        SIZES
        | NEAR
        | {"use_sliding_window": True, "max_window_layers": 1, "num_key_value_heads": 1},
    ],
    "qwen3": [GROUPED | {"head_dim": 10, "mlp_bias": True}],
    "gemma3_text": [
        GROUPED
        | NEAR
        | {"query_pre_attn_scalar": 5, "num_hidden_layers": 6, "sliding_window_pattern": 3},
    ],
    "gptj": [GPT2_SIZES | {"rotary_dim": 4}],
    "phi": [
        SIZES
        | {
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 100.0,
                "partial_rotary_factor": 0.5,
            }
        }
    ],
    "gemma": [GROUPED | {"num_key_value_heads": 1}],
    "gemma2": [
        GROUPED
        | NEAR
        | {
            "query_pre_attn_scalar": 5,
            "attn_logit_softcapping": 2.0,
            "final_logit_softcapping": 3.0,
        }
    ],
    "olmo2": [SIZES | {"num_key_value_heads": 1, "rms_norm_eps": 1e-3}],
    "mixtral": [
        GROUPED | MIXED,
        GROUPED
        | NEAR
        | {
            "num_local_experts": 3,
            "num_experts_per_tok": 1,
            "rms_norm_eps": 1e-2,
            "tie_word_embeddings": True,
        },
    ],
    "qwen2_moe": [
        {key: value for key, value in GROUPED.items() if key != "head_dim"}
        | {
            "moe_intermediate_size": 16,
            "shared_expert_intermediate_size": 20,
            "num_experts": 5,
            "num_experts_per_tok": 3,
        },
        SIZES
        | {
            "moe_intermediate_size": 16,
            "shared_expert_intermediate_size": 20,
            "num_experts": 5,
            "num_experts_per_tok": 3,
        }
        | {"norm_topk_prob": True, "num_key_value_heads": 1, "qkv_bias": False},
    ],
    "qwen3_moe": [
        GROUPED
        | {
            "head_dim": 10,
            "moe_intermediate_size": 16,
            "num_experts": 5,
            "num_experts_per_tok": 3,
            "norm_topk_prob": True,
        },
        SIZES
        | NEAR
        | {
            "num_key_value_heads": 1,
            "moe_intermediate_size": 16,
            "num_experts": 5,
            "num_experts_per_tok": 3,
        }
        | {"use_sliding_window": True},
    ],
    "olmoe": [
        SIZES | {"num_key_value_heads": 1, "num_experts": 5, "num_experts_per_tok": 3},
        SIZES | MIXED | {"norm_topk_prob": True},
    ],
    "granitemoe": [
        {key: value for key, value in GROUPED.items() if key != "head_dim"}
        | MIXED
        | {"embedding_multiplier": 3.0, "attention_multiplier": 0.2, "attention_bias": True}
    ],
    "bloom": [{"hidden_size": 24, "n_layer": 3, "n_head": 3}],
    "bert": [SIZES | {"id2label": LABELS}, SIZES | {"hidden_act": "relu", "layer_norm_eps": 0.1}],
    "distilbert": [
        DISTILBERT | {"id2label": LABELS},
        DISTILBERT | {"activation": "relu", "sinusoidal_pos_embds": True},
    ],
    "marian": [MARIAN, MARIAN | {"scale_embedding": False, "activation_function": "relu"}],
}
CASES = [
    pytest.param(kind, case, id=f"{kind}-{i}")
    for kind, cases in MODELS.items()
    for i, case in enumerate(cases)
]


def judge(kind: str) -> Any:
    """The class of `transformers` that makes and opens the models of a family."""
    transformers = pytest.importorskip("transformers")
    if kind == "marian":
        return transformers.AutoModelForSeq2SeqLM
    return (
        transformers.AutoModelForSequenceClassification
        if kind in CLASSIFIERS
        else transformers.AutoModelForCausalLM
    )


@torch.no_grad()
def theirs(kind: str, sizes: dict[str, Any], seed: int = 0) -> Any:
    """A model of `transformers` whose every weight is random, so that a part that is mixed up or
    left out shows.
    """
    transformers = pytest.importorskip("transformers")
    config = transformers.AutoConfig.for_model(kind, **{"vocab_size": VOCAB} | sizes)
    config._attn_implementation = "eager"
    model = judge(kind).from_config(config).eval()
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        if kind == "marian" and "embed_positions" in name:
            continue  # sines, which its files do not have
        gain = (
            1.0
            if "norm" in name.lower() and name.endswith("weight") and "gemma" not in kind
            else 0.0
        )
        parameter.normal_(gain, 0.3, generator=generator)
    if kind == "marian":
        model.final_logits_bias.normal_(0.0, 0.5, generator=generator)
    return model


def opened(path: Path) -> Transformer:
    """What other programs keep there, as a model of ours."""
    source = source_at(path)
    return with_weights(source, source.describe_model().config).eval()


def ours(model: Any, folder: Path) -> Transformer:
    """The model that `transformers` saved, opened by us."""
    model.save_pretrained(folder)
    return opened(folder)


def written(
    model: Transformer, tokenizer: Tokenizer | None = None, family: str | None = None, **more: Any
) -> Written:
    """A model of ours as it is given to what writes it for other programs."""
    known = tokenizer or SymbolTokenizer.numbers(model.config.vocab_size)
    about: dict[str, Any] = {"name": "mine", "card": "", "licence": None} | more
    return Written(
        config=model.config,
        tokenizer=known,
        weights=dict(model.named_parameters()),
        family=family,
        **about,
    )


def opened_there(folder: Path, kind: str = "") -> Any:
    """What we wrote, opened by `transformers`, which misses nothing and finds nothing that it does
    not know.
    """
    model, report = judge(kind).from_pretrained(folder, output_loading_info=True)
    assert not any(report.values()), report
    return model.eval()


def close(mine: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-4)


@torch.inference_mode()
def same_logits(mine: Transformer, model: Any) -> None:
    """Ours and theirs (a decoder of `transformers`, or a module that gives logits) compute the
    same.
    """
    ids = some_ids(20, vocab=VOCAB)
    found = model(ids)
    close(mine(ids), getattr(found, "logits", found))


def words(length: int, batch: int = 2, seed: int = 0) -> Tensor:
    """Ids that are neither an end nor padding, in any family."""
    return some_ids(length, batch, VOCAB - 2, seed) + 1


def read(kind: str) -> tuple[tuple[Tensor, ...], dict[str, Tensor]]:
    """What a model of this family reads: as ours takes it, and as theirs does. Rows are padded
    where a family hides padding.
    """
    if kind not in PADDING:
        ids = some_ids(20, vocab=VOCAB)
        return (ids,), {"input_ids": ids}
    ids = words(20, batch=3)
    ids[1, 7:] = ids[2, 1:] = PADDING[kind]
    there = {"input_ids": ids, "attention_mask": (ids != PADDING[kind]).long()}
    if kind in CLASSIFIERS:
        return (ids,), there
    answer = words(12, batch=3, seed=1)
    answer[:, 0] = PADDING[kind]  # what an answer begins with
    return (answer, ids), there | {"decoder_input_ids": answer}


def test_every_family_is_compared() -> None:
    assert MODELS.keys() == FAMILIES.keys()


@pytest.mark.parametrize(("kind", "sizes"), CASES)
@torch.inference_mode()
def test_logits_patterns_and_hidden_states_are_those_of_transformers(
    kind: str, sizes: dict[str, Any], tmp_path: Path
) -> None:
    model = theirs(kind, sizes)
    mine, (ids, there) = ours(model, tmp_path), read(kind)
    given = model(**there, output_attentions=True, output_hidden_states=True)
    record = Record()
    close(mine(*ids, tap=record), given.logits)
    for at, stack in (
        {"": "decoder_", "encoder.": "encoder_"}.items() if kind == "marian" else [("", "")]
    ):
        patterns = given[f"{stack}attentions"]
        streams = given[f"{stack}hidden_states"]
        assert (
            len(patterns)
            == len(streams) - 1
            == (mine.config.n_encoder_layer if at else mine.config.n_layer)
        )
        for index, pattern in enumerate(patterns):
            close(record.values[f"{at}blocks.{index}.attention.pattern"], pattern)
            close(record.values[f"{at}blocks.{index}.resid_pre"], streams[index])
        last = (
            "memory"
            if at
            else "final_norm"
            if mine.config.final_norm
            else f"blocks.{index}.resid_post"
        )
        close(record.values[last], streams[-1])
    for index, pattern in enumerate(given.get("cross_attentions", ())):
        close(record.values[f"blocks.{index}.cross_attention.pattern"], pattern)


@pytest.mark.parametrize(("kind", "sizes"), [case for case in CASES if case.values[0] in PADDING])
@torch.inference_mode()
def test_a_padded_row_has_the_logits_that_it_has_alone(
    kind: str, sizes: dict[str, Any], tmp_path: Path
) -> None:
    mine, ((*answer, ids), _) = ours(theirs(kind, sizes), tmp_path), read(kind)
    close(mine(*(row[1:2] for row in answer), ids[1:2, :7]), mine(*answer, ids)[1:2])


@pytest.mark.parametrize("kind", [kind for kind in MODELS if kind not in CLASSIFIERS])
@torch.inference_mode()
def test_token_by_token_with_a_cache_a_batch_has_the_same_logits(kind: str, tmp_path: Path) -> None:
    model = theirs(kind, MODELS[kind][0])
    mine, ((ids, *source), there) = ours(model, tmp_path), read(kind)
    cache = KVCache(mine.config, batch=len(ids))
    memory = mine.encode(*source) if source else None
    logits = [mine(ids[:, at : at + 1], memory=memory, cache=cache) for at in range(ids.shape[1])]
    close(torch.cat(logits, dim=1), model(**there).logits)


@pytest.mark.parametrize(("kind", "sizes"), CASES)
@torch.inference_mode()
def test_what_was_opened_and_is_written_again_is_the_same_model_there(
    kind: str, sizes: dict[str, Any], tmp_path: Path
) -> None:
    model = theirs(kind, sizes)
    mine = ours(model, tmp_path / "given")
    known = source_at(tmp_path / "given").describe_model()
    (tmp_path / "written").mkdir()
    write_transformers(
        written(mine, family=known.family, labels=known.labels), tmp_path / "written"
    )
    again, (_, there) = opened_there(tmp_path / "written", kind), read(kind)
    assert (again.config.model_type, again.config.id2label) == (kind, model.config.id2label)
    close(again(**there).logits, model(**there).logits)
    given = model.state_dict()
    fresh = again.state_dict()
    assert given.keys() == fresh.keys()
    for name, tensor in given.items():
        if kind == "bert" and ("position_embeddings" in name or "token_type" in name):
            continue  # the type of all texts is added to their positions: the sum alone is the same
        unread = 2 if kind == "opt" and "embed_positions" in name else 0
        assert torch.allclose(tensor[unread:], fresh[name][unread:], atol=1e-6), name


@pytest.mark.parametrize(
    ("kind", "fields", "words"),
    [
        ("mamba", {}, "'mamba', which gptviz cannot open; it opens gpt2"),
        (None, {}, "type None"),
        ("opt", {"do_layer_norm_before": False}, "do_layer_norm_before is False"),
        ("opt", {"hidden_size": 1024, "word_embed_proj_dim": 512}, "word_embed_proj_dim is 512"),
        ("llama", {"hidden_size": "64"}, "hidden_size is '64'; a Llama model needs a whole number"),
        ("llama", {"rope_scaling": {"rope_type": "yarn"}}, "scaled by 'yarn'"),
        ("gpt2", {"activation_function": "mish"}, "activation_function is 'mish'"),
        ("gemma3_text", {"layer_types": ["other"]}, "'other'"),
        (
            "bert",
            {"architectures": ["BertForMaskedLM"]},
            "architecture is BertForMaskedLM; .* BertForSequenceClassification",
        ),
        ("bert", {"architectures": ["BertModel"]}, "architecture is BertModel"),
        (
            "distilbert",
            {"architectures": ["DistilBertModel"]},
            "DistilBertForSequenceClassification",
        ),
        ("bert", {"id2label": {"0": "one"}}, "a number and no label"),
        (
            "bert",
            {"id2label": {"0": "one", "2": "three"}},
            "id2label is .* it must name the labels 0, 1, 2",
        ),
        ("bert", {"id2label": ["one", "two"]}, "id2label is"),
        (
            "bert",
            {"problem_type": "multi_label_classification"},
            "problem_type is 'multi_label_classification'",
        ),
        (
            "bert",
            {"position_embedding_type": "relative_key"},
            "position_embedding_type is 'relative_key'",
        ),
        ("bert", {"is_decoder": True}, "is_decoder is True"),
        ("bert", {"pad_token_id": "x"}, "pad_token_id is 'x'"),
        (
            "marian",
            {"architectures": ["MarianModel"]},
            "architecture is MarianModel; of Marian models gptviz opens MarianMTModel",
        ),
        ("marian", {"decoder_ffn_dim": 20}, "decoder_ffn_dim is 20"),
        (
            "marian",
            {"share_encoder_decoder_embeddings": False},
            "sources and answers have a vocabulary each",
        ),
        ("marian", {"normalize_before": True}, "normalize_before is True"),
        ("marian", {"decoder_start_token_id": 3}, "decoder_start_token_id is 3"),
        ("marian", {"encoder_layers": 0}, "encoder_layers is 0"),
        # of another family
        ("llama", {"residual_multiplier": 0.22}, "config.json: residual_multiplier is 0.22"),
        ("llama", {"logits_scaling": 0.22}, "config.json: logits_scaling is 0.22"),
        *(
            (kind, {"mlp_only_layers": [1]}, "mlp_only_layers is ")
            for kind in ("qwen2_moe", "qwen3_moe")
        ),
        *(
            (kind, {"decoder_sparse_step": 2}, "decoder_sparse_step is ")
            for kind in ("qwen2_moe", "qwen3_moe")
        ),
        *(
            (
                "llama",
                {"quantization_config": {"quant_method": method, "bits": 4}},
                f"quantised by {method} .quantization_config",
            )
            for method in ("bitsandbytes", "gptq", "awq")
        ),
    ],
)
def test_what_has_no_part_is_refused_and_named(
    kind: str | None, fields: dict[str, Any], words: str, tmp_path: Path
) -> None:
    sound = {"model_type": kind, "vocab_size": VOCAB, **MODELS.get(str(kind), [{}])[0]}
    (tmp_path / "config.json").write_text(json.dumps(sound | fields))
    with pytest.raises(ImportRefusedError, match=words) as refused:
        source_at(tmp_path).describe_model()
    assert "\n" not in str(refused.value)


# Fields of published configs that change nothing, beside those that a default config of
# transformers has.
PUBLISHED: dict[str, dict[str, Any]] = {
    "gpt2": {
        "n_ctx": 1024,
        "output_past": True,
        "_num_labels": 1,
        "task_specific_params": {"a": 1},
        "max_length": 50,
    },
    "gptj": {
        "rotary": True,
        "scale_attn_weights": True,
        "gradient_checkpointing": False,
        "tokenizer_class": "GPT2Tokenizer",
    },
    "gpt_neox": {
        "rotary_pct": 0.25,
        "rotary_emb_base": 10_000,
        "attention_probs_dropout_prob": 0,
        "hidden_dropout_prob": 0,
    },
    "opt": {
        "prefix": "</s>",
        "activation_dropout": 0.0,
        "output_projection": True,
        "learned_embeddings": True,
    },
    "bloom": {
        "attention_softmax_in_fp32": True,
        "bias_dropout_fusion": True,
        "masked_softmax_fusion": True,
        "offset_alibi": 100,
    }
    | {
        "pretraining_tp": 4,
        "seq_length": 2048,
        "skip_bias_add": True,
        "skip_bias_add_qkv": False,
        "unk_token_id": 0,
    },
    "llama": {
        "is_llama_config": True,
        "rope_interleaved": False,
        "transformers.js_config": {},
        "max_sequence_length": 2048,
    }
    | {
        "torch_dtype": "bfloat16",
        "unsloth_version": "2024.9",
        "unsloth_fixed": True,
        "eos_token_id": [1],
        "_name_or_path": "a",
    },
    "qwen2": {
        "use_sliding_window": False,
        "sliding_window": 131_072,
        "max_window_layers": 28,
        "use_mrope": False,
    },
    "gemma2": {"cache_implementation": "hybrid"},
    "gemma3_text": {
        "cache_implementation": "hybrid",
        "rope_local_base_freq": 10_000,
        "sliding_window_pattern": 6,
    },
    "bert": {
        "directionality": "bidi",
        "pooler_fc_size": 768,
        "pooler_type": "first_token_transform",
        "language": "english",
    }
    | {
        "finetuning_task": "sst-2",
        "output_past": True,
        "gradient_checkpointing": False,
        "name": "Bert",
    },
    "distilbert": {"tie_weights_": True, "finetuning_task": "sst-2"},
    "marian": {
        "num_beams": 6,
        "max_length": 512,
        "bad_words_ids": [[1]],
        "classif_dropout": 0.0,
        "extra_pos_embeddings": 0,
    }
    | {
        "static_position_embeddings": True,
        "add_bias_logits": False,
        "force_bos_token_to_be_generated": False,
    },
}


@pytest.mark.parametrize("kind", MODELS)
def test_a_field_that_nothing_reads_is_refused_by_name_unless_it_is_known_to_change_nothing(
    kind: str,
) -> None:
    """Known are those of transformers' own class, with their defaults, and those of configs that
    people have published.
    """
    from transformers import CONFIG_MAPPING

    usual = json.loads(CONFIG_MAPPING[kind]().to_json_string(use_diff=False)) | {
        "architectures": [FAMILIES[kind].architecture]
    }
    fields = usual | PUBLISHED.get(kind, {})
    outline_of(fields)
    outline_of(
        fields
        | {"quantization_config": None, "muP": None, "scale_depth": False, "auto_map": {"a": 1}}
    )
    for name, value in (
        ("hidden_multiplier", 0.22),
        ("scale_depth", True),
        ("residual_style", "deep"),
        ("moe_top_k", 2),
    ):
        with pytest.raises(
            ImportRefusedError,
            match=f"{name} is {value!r}; gptviz does not know this field of .* models",
        ):
            outline_of(fields | {name: value})


@pytest.mark.parametrize(
    "head", ["SequenceClassification", "TokenClassification", "QuestionAnswering"]
)
@pytest.mark.parametrize("kind", ["gpt2", "llama", "gpt_neox", "mixtral"])
def test_a_decoder_with_another_head_is_refused_by_its_architecture(kind: str, head: str) -> None:
    fields = theirs(kind, MODELS[kind][0]).config.to_dict()
    outline_of(fields | {"architectures": ["SomebodysForCausalLM"]})
    with pytest.raises(
        ImportRefusedError,
        match=rf"the architecture is SomebodysFor{head}; .* gptviz opens \w+, which",
    ):
        outline_of(fields | {"architectures": [f"SomebodysFor{head}"]})


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
    assert (configs[0].rotary_base, configs[0].rotary_scaling, configs[0].rotary_factor) == (
        700.0,
        "llama3",
        8.0,
    )


def test_gemma_3_has_a_base_for_blocks_with_a_window_and_another_for_the_rest_before_version_5_and_since() -> (
    None
):
    sizes = {"vocab_size": VOCAB, **GROUPED, **NEAR, "num_hidden_layers": 6}
    old = sizes | {"rope_theta": 700.0, "rope_local_base_freq": 300.0}
    tables = {"full_attention": {"rope_theta": 700.0}, "sliding_attention": {"rope_theta": 300.0}}
    configs = [
        FAMILIES["gemma3_text"].config(Given(fields, "Gemma 3"))
        for fields in (old, sizes | {"rope_parameters": tables})
    ]
    assert configs[0] == configs[1]
    assert (configs[0].rotary_base, configs[0].window_rotary_base) == (700.0, 300.0)


MIXTURES = ("mixtral", "qwen2_moe", "qwen3_moe", "olmoe", "granitemoe")


@pytest.mark.parametrize("kind", MIXTURES)
def test_experts_that_are_stacked_in_the_file_are_read_as_those_by_themselves(
    kind: str, tmp_path: Path
) -> None:
    model = theirs(kind, MODELS[kind][0])
    model.save_pretrained(tmp_path / "usual")
    (tmp_path / "stacked").mkdir()
    (tmp_path / "stacked" / "config.json").write_bytes(
        (tmp_path / "usual" / "config.json").read_bytes()
    )
    # as it is in memory: stacked
    names = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    names = {
        name.replace(".router.weight", ".router.layer.weight"): tensor
        for name, tensor in names.items()
    }
    save_file(names, tmp_path / "stacked" / "model.safetensors")
    one = opened(tmp_path / "usual")
    other = opened(tmp_path / "stacked")
    assert any(".experts.gate_up_proj" in name for name in names)
    for name, tensor in one.named_parameters():
        assert torch.equal(tensor, other.get_parameter(name)), name


def test_what_multiplies_sublayers_and_logits_of_a_granite_model_is_in_its_weights(
    tmp_path: Path,
) -> None:
    scales = {
        "residual_multiplier": 0.3,
        "logits_scaling": 7.0,
        "attention_multiplier": 0.1,
        "embedding_multiplier": 5.0,
    }
    model = theirs("granitemoe", MODELS["granitemoe"][0] | scales)
    same_logits(ours(model, tmp_path), model)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"num_local_experts": 4}, "experts.4.w1.weight|no place|shape"),
        ({"num_experts_per_tok": 9}, "num_experts_per_tok is 9; a router of num_local_experts 5"),
        (
            {"num_local_experts": "five"},
            "num_local_experts is 'five'; a Mixtral model needs a whole number",
        ),
        ({"num_local_experts": 2000}, "num_local_experts is 2000"),
        ({"intermediate_size": 41}, "w1.weight has the shape|the config asks for"),
    ],
)
def test_a_mixture_that_does_not_fit_its_config_is_refused_in_one_line(
    change: dict[str, Any], words: str, tmp_path: Path
) -> None:
    theirs("mixtral", MODELS["mixtral"][0]).save_pretrained(tmp_path)
    file = tmp_path / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(ImportRefusedError, match=words) as refused:
        opened(tmp_path)
    assert "\n" not in str(refused.value)


def test_a_tensor_of_an_expert_that_is_missing_is_named(tmp_path: Path) -> None:
    theirs("mixtral", MODELS["mixtral"][0]).save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    tensors = load_file(file)
    del tensors["model.layers.1.block_sparse_moe.experts.3.w2.weight"]
    save_file(tensors, file)
    with pytest.raises(
        ImportRefusedError,
        match=r"model.safetensors: the tensor .*1.*experts.3.w2.weight is missing",
    ):
        opened(tmp_path)


def test_windows_of_a_mixture_of_qwen_2_are_those_that_its_config_lists(tmp_path: Path) -> None:
    fields = {
        "model_type": "qwen2_moe",
        "vocab_size": VOCAB,
        **MODELS["qwen2_moe"][0],
        **NEAR,
        "use_sliding_window": True,
    }
    listed = {"layer_types": ["full_attention", "sliding_attention", "full_attention"]}
    config = FAMILIES["qwen2_moe"].config(Given(fields | listed, "Qwen 2 MoE"))
    assert [config.has_window(block) for block in range(3)] == [False, True, False]
    with pytest.raises(ImportRefusedError, match="use_sliding_window is True"):
        FAMILIES["qwen2_moe"].config(Given(fields, "Qwen 2 MoE"))
