"""A model of ours as a GGUF file: our reader has its logits again, its matrices are what the
library makes of them, and what a file cannot hold is refused.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from torch import Tensor

from gptviz.interp.changing.edits import edit_model, edits
from gptviz.model import Config, Transformer
from gptviz.pretrained.families import FAMILIES, Given
from gptviz.pretrained.families.expressing import NotExpressibleError
from gptviz.pretrained.gguf_writing import BITS_OF_KIND, as_gguf, check_gguf, write_gguf
from gptviz.pretrained.opening import source_at, with_weights
from gptviz.pretrained.sources.gguf_header import header_of
from gptviz.pretrained.writing import Written
from gptviz.text import BPETokenizer, CharTokenizer, SymbolTokenizer, Tokenizer
from gptviz.text.chat import ChatTemplate
from gptviz.text.tokenizers.padded import PaddedTokenizer
from gptviz.text.tokenizers.sentencepiece import from_sentencepiece
from tests.text.sentencepieces import GEMMA, LLAMA, trained
from tests.tiny import scrambled, tiny

CHARACTERS = CharTokenizer("\n !,.abcdefghijklmnopqrstuvwxyzO")
SIZES = {
    "vocab_size": CHARACTERS.vocab_size,
    "max_position_embeddings": 24,
    "hidden_size": 32,
    "num_hidden_layers": 7,
}
SIZES |= {"num_attention_heads": 4, "intermediate_size": 40}
GROUPED = SIZES | {"num_key_value_heads": 2, "head_dim": 16}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LLAMA3 |= {"original_max_position_embeddings": 16}
MIXED = GROUPED | {
    "num_local_experts": 5,
    "num_experts": 5,
    "num_experts_per_tok": 3,
    "num_hidden_layers": 2,
}
GPT2 = {
    "vocab_size": CHARACTERS.vocab_size,
    "n_positions": 24,
    "n_embd": 32,
    "n_layer": 2,
    "n_head": 4,
    "n_inner": 40,
}
MODELS: list[tuple[str, dict[str, Any]]] = [
    ("llama", GROUPED),
    ("llama", GROUPED | {"tie_word_embeddings": True, "rope_theta": 300.0}),
    ("llama", GROUPED | {"rope_scaling": {"rope_type": "linear", "factor": 4.0}}),
    ("llama", GROUPED | {"rope_scaling": LLAMA3}),
    ("llama", GROUPED | {"attention_bias": True, "mlp_bias": True}),
    ("llama", GROUPED | {"attention_bias": True}),
    ("qwen2", SIZES | {"num_key_value_heads": 2}),
    ("qwen3", GROUPED),
    ("gpt2", GPT2),
    ("gpt2", GPT2 | {"tie_word_embeddings": False}),
    ("gpt_neox", SIZES | {"rotary_pct": 0.5, "rotary_emb_base": 100.0}),
    (
        "gpt_neox",
        SIZES | {"rotary_pct": 1.0, "use_parallel_residual": False, "hidden_act": "gelu_new"},
    ),
    ("gemma3_text", GROUPED | {"query_pre_attn_scalar": 16, "sliding_window": 5}),
    ("mixtral", MIXED),
    (
        "qwen2_moe",
        SIZES
        | {
            "moe_intermediate_size": 16,
            "shared_expert_intermediate_size": 24,
            "num_experts": 5,
            "num_experts_per_tok": 3,
        },
    ),
    ("qwen3_moe", MIXED | {"moe_intermediate_size": 16, "norm_topk_prob": True}),
    ("olmoe", SIZES | {"num_experts": 5, "num_experts_per_tok": 3}),
    (
        "granitemoe",
        MIXED
        | {
            "head_dim": 8,
            "embedding_multiplier": 3.0,
            "attention_multiplier": 0.2,
            "tie_word_embeddings": True,
        },
    ),
]


def of_family(kind: str, fields: dict[str, Any]) -> tuple[Transformer, str]:
    """A model of this family with random weights that float16 holds, and the family's title."""
    family = FAMILIES[kind]
    model = scrambled(family.config(Given(fields, family.title)))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.half().float())
    return model, family.title


def written(
    model: Transformer, family: str | None = None, tokenizer: Tokenizer = CHARACTERS, **more: Any
) -> Written:
    return Written(
        "mine", model.config, tokenizer, dict(model.named_parameters()), family, "", **more
    )


def read(path: Path) -> Transformer:
    source = source_at(path)
    return with_weights(source, source.describe_model().config)


def logits(model: Transformer) -> Tensor:
    ids = torch.randint(
        model.config.vocab_size, (2, 20), generator=torch.Generator().manual_seed(3)
    )
    with torch.inference_mode():
        return model(ids)


@pytest.mark.parametrize(("kind", "fields"), MODELS)
def test_each_family_is_read_back_with_the_same_logits(
    kind: str, fields: dict[str, Any], tmp_path: Path
) -> None:
    model, title = of_family(kind, fields)
    write_gguf(written(model, title), tmp_path / "a.gguf")
    approximate = model
    # the reader takes it for GELU, as llama.cpp does
    if kind == "gpt_neox" and model.config.activation == "gelu-tanh":
        approximate = _with_activation(model, "gelu")
    torch.testing.assert_close(
        logits(read(tmp_path / "a.gguf")), logits(approximate), atol=1e-5, rtol=1e-5
    )


def _with_activation(model: Transformer, activation: str) -> Transformer:
    other = scrambled(dataclasses.replace(model.config, activation=activation))
    other.load_state_dict(model.state_dict())
    return other


@pytest.mark.parametrize("kind", BITS_OF_KIND)
def test_matrices_are_kept_as_the_library_keeps_them_and_all_else_in_float32(
    kind: str, tmp_path: Path
) -> None:
    model, title = of_family("llama", GROUPED | {"tie_word_embeddings": True})
    write_gguf(written(model, title), tmp_path / "a.gguf", kind)
    wanted = gguf.GGMLQuantizationType[kind]
    for tensor in gguf.GGUFReader(tmp_path / "a.gguf").tensors:
        narrow = tensor.shape[0] % gguf.GGML_QUANT_SIZES[wanted][0]
        expected = gguf.GGMLQuantizationType.F16 if narrow else wanted
        assert tensor.tensor_type == (
            expected if len(tensor.shape) == 2 else gguf.GGMLQuantizationType.F32
        ), tensor.name
    assert {tensor.tensor_type for tensor in gguf.GGUFReader(tmp_path / "a.gguf").tensors} >= {
        wanted
    }
    # The page Size and cost shows what this file computes: its edit keeps the same matrices in the
    # same way.
    found = logits(read(tmp_path / "a.gguf"))
    twin = model if kind == "F16" else edit_model(model, edits([f"weights={kind}"], model.config))
    torch.testing.assert_close(found, logits(twin), atol=1e-5, rtol=1e-5)


def test_the_header_says_what_llama_cpp_needs(tmp_path: Path) -> None:
    model, title = of_family("llama", GROUPED)
    chat = ChatTemplate("{{ bos_token }}", {"bos_token": "a"})
    write_gguf(
        written(model, title, ends=(3, 4), chat=chat, licence="mit"), tmp_path / "a.gguf", "Q8_0"
    )
    reader = gguf.GGUFReader(tmp_path / "a.gguf")
    found = {name: field.contents() for name, field in reader.fields.items()}
    assert found["general.architecture"] == "llama"
    assert found["llama.attention.key_length"] == found["llama.attention.value_length"] == 16
    assert found["llama.rope.dimension_count"] == 16
    assert (
        found["llama.vocab_size"] == len(found["tokenizer.ggml.tokens"]) == model.config.vocab_size
    )
    assert (found["tokenizer.ggml.eos_token_id"], found["tokenizer.ggml.eot_token_id"]) == (3, 4)
    assert found["tokenizer.ggml.bos_token_id"] == CHARACTERS.encode("a").ids[0]
    assert found["general.file_type"] == gguf.LlamaFileType.MOSTLY_Q8_0
    assert "tokenizer.ggml.merges" in found
    opened = source_at(tmp_path / "a.gguf").describe_model()
    assert (opened.ends, opened.licence) == ((3, 4), "mit")
    assert opened.chat is not None
    assert opened.chat.template == chat.template
    assert opened.chat.tokens["bos_token"] == "a"


@pytest.mark.parametrize("name", ["learned", "padded", "characters"])
def test_a_model_without_an_end_ends_a_text_with_a_token_that_no_text_has(
    name: str, tmp_path: Path
) -> None:
    tokenizer = TOKENIZERS[name]
    model, title = of_family("gpt2", GPT2 | {"vocab_size": tokenizer.vocab_size})
    write_gguf(written(model, title, tokenizer), tmp_path / "a.gguf")
    ends = source_at(tmp_path / "a.gguf").describe_model().ends
    if name == "learned":
        assert [tokenizer.label(end) for end in ends] == ["<FF>"]
    else:
        # all characters may be written
        assert ends == ((LEARNED.vocab_size,) if name == "padded" else ())


LEARNED = BPETokenizer.learn(
    "the quick brown fox jumps over the lazy dog, and the fox is quick " * 20, 300
)
TOKENIZERS: dict[str, Tokenizer] = {
    "characters": CHARACTERS,
    "learned": LEARNED,
    "padded": PaddedTokenizer(LEARNED, LEARNED.vocab_size + 3),
    "sentencepiece": from_sentencepiece(trained(**LLAMA)),
    "gemma": from_sentencepiece(trained(**GEMMA)),
}


@pytest.mark.parametrize("name", TOKENIZERS)
def test_a_tokenizer_reads_texts_as_before(name: str, tmp_path: Path) -> None:
    tokenizer = TOKENIZERS[name]
    model, title = of_family("gpt2", GPT2 | {"vocab_size": tokenizer.vocab_size})
    write_gguf(written(model, title, tokenizer), tmp_path / "a.gguf")
    opened = source_at(tmp_path / "a.gguf").describe_model()
    texts = ["the fox", "a dog\n jumps,  over!", "O", " leading"]
    texts += [] if name == "characters" else ["naïve — 日本", "12 + 345\t"]
    for text in texts:
        assert opened.tokenizer.encode(text).ids == tokenizer.encode(text).ids, text
        assert opened.tokenizer.decode(tokenizer.encode(text).ids) == tokenizer.decode(
            tokenizer.encode(text).ids
        )


def config(**changes: Any) -> Config:
    return tiny(
        vocab_size=CHARACTERS.vocab_size, positions="learned", activation="gelu-tanh", **changes
    )


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"residual": "post-norm"}, r"residual \(here post-norm\)"),
        ({"activation": "relu"}, r"activation \(here relu\)"),
        ({"positions": "alibi"}, r"positions \(here alibi\)"),
        ({"window": 3}, "window"),
    ],
)
def test_what_no_family_of_the_format_computes_is_named(changes: dict[str, Any], says: str) -> None:
    assert as_gguf(config()).family.model_type == "gpt2"
    with pytest.raises(NotExpressibleError, match=says):
        as_gguf(dataclasses.replace(config(), **changes))


@pytest.mark.parametrize(
    ("kind", "fields", "says"),
    [
        ("gemma3_text", {"query_pre_attn_scalar": 99}, "score_scale"),
        (
            "gemma3_text",
            {"layer_types": ["sliding_attention", "full_attention"] * 3 + ["full_attention"]},
            "window_pattern",
        ),
        ("gemma3_text", {"rope_local_base_freq": 500.0}, "window_rotary_base"),
        ("gemma3_text", {"final_logit_softcapping": 30.0}, "logit_cap"),
        (
            "qwen2",
            {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 3},
            "window",
        ),
        ("gpt_neox", {"tie_word_embeddings": True}, "tied"),
        (
            "qwen3_moe",
            MIXED | {"moe_intermediate_size": 16, "norm_topk_prob": False},
            "expert_norm",
        ),
    ],
)
def test_what_llama_cpp_would_compute_otherwise_is_refused(
    kind: str, fields: dict[str, Any], says: str
) -> None:
    usual = SIZES if kind == "gpt_neox" else GROUPED
    model, title = of_family(
        kind, usual | {"query_pre_attn_scalar": 16, "sliding_window": 5} | fields
    )
    with pytest.raises(NotExpressibleError, match=says):
        as_gguf(model.config, title)


@pytest.mark.parametrize(
    ("tokenizer", "says"),
    [
        (CharTokenizer("aé"), "'é' has several bytes"),
        (SymbolTokenizer.numbers(9), "no tokenizer of this kind"),
    ],
)
def test_a_tokenizer_that_a_file_cannot_hold_is_refused(tokenizer: Tokenizer, says: str) -> None:
    with pytest.raises(NotExpressibleError, match=says):
        check_gguf(config(), tokenizer, None)


def test_the_experts_of_a_block_are_one_tensor_and_their_router_stays_in_float32(
    tmp_path: Path,
) -> None:
    model, title = of_family("mixtral", MIXED | {"intermediate_size": 64})
    write_gguf(written(model, title), tmp_path / "a.gguf", "Q8_0")
    found = {tensor.name: tensor for tensor in gguf.GGUFReader(tmp_path / "a.gguf").tensors}
    experts = found["blk.1.ffn_down_exps.weight"]
    assert experts.tensor_type == gguf.GGMLQuantizationType.Q8_0
    own = [expert.down.weight.detach().numpy() for expert in model.blocks[1].mlp.experts]
    expected = gguf.dequantize(
        gguf.quantize(np.stack(own), experts.tensor_type), experts.tensor_type
    )
    np.testing.assert_array_equal(gguf.dequantize(experts.data, experts.tensor_type), expected)
    assert found["blk.1.ffn_gate_inp.weight"].tensor_type == gguf.GGMLQuantizationType.F32
    assert not [name for name in found if "ffn_up.weight" in name]


@pytest.mark.parametrize("kind", BITS_OF_KIND)
def test_a_number_beyond_float16_is_refused_by_its_name(kind: str, tmp_path: Path) -> None:
    model, title = of_family("gpt2", GPT2)
    with torch.no_grad():
        model.embed.weight[1, 2] = 1e6
    with pytest.raises(
        NotExpressibleError, match=r"token_embd\.weight has numbers that are too large"
    ):
        write_gguf(written(model, title), tmp_path / "a.gguf", kind)
    with pytest.raises(ValueError, match="no kind"):
        write_gguf(written(model, title), tmp_path / "b.gguf", "Q4_K")


def test_a_vocabulary_that_merges_nothing_has_one_merge_that_never_happens(tmp_path: Path) -> None:
    model, title = of_family("gpt2", GPT2)
    write_gguf(written(model, title), tmp_path / "a.gguf")
    (left, right) = (
        gguf.GGUFReader(tmp_path / "a.gguf").fields["tokenizer.ggml.merges"].contents()[0].split()
    )
    tokens = gguf.GGUFReader(tmp_path / "a.gguf").fields["tokenizer.ggml.tokens"].contents()
    assert left not in tokens
    assert right not in tokens
    assert (
        source_at(tmp_path / "a.gguf").describe_model().tokenizer.vocab_size
        == CHARACTERS.vocab_size
    )


def test_user_defined_pieces_are_written_with_the_space_that_llama_cpp_looks_for() -> None:
    header = header_of(TOKENIZERS["gemma"])
    kinds = header["tokenizer.ggml.token_type"]
    tokens = header["tokenizer.ggml.tokens"]
    of_kind = {
        kind: [token for token, own in zip(tokens, kinds, strict=True) if own == kind]
        for kind in (1, 4)
    }
    assert "  " in of_kind[4]
    assert not any("▁" in token for token in of_kind[4])
    assert not any(" " in token for token in of_kind[1])


@pytest.mark.parametrize(
    ("kind", "fields"), [one for one in MODELS if one[1].get("hidden_act") != "gelu_new"]
)
def test_llama_cpp_has_the_same_logits_and_the_same_greedy_text(
    kind: str, fields: dict[str, Any], tmp_path: Path
) -> None:
    llama_cpp = pytest.importorskip("llama_cpp")
    model, title = of_family(kind, fields)
    write_gguf(written(model, title), tmp_path / "a.gguf")
    there = llama_cpp.Llama(
        str(tmp_path / "a.gguf"), n_ctx=24, logits_all=True, verbose=False, flash_attn=False
    )
    read = CHARACTERS.encode("the fox jumps").ids
    assert there.tokenize(b"the fox jumps", add_bos=False, special=False) == read
    there.eval(read)
    with torch.inference_mode():
        # It keeps keys and values in float16, and takes GELU from a table.
        torch.testing.assert_close(
            torch.tensor(there.scores[: len(read)]),
            model(torch.tensor([read]))[0],
            atol=0.03,
            rtol=0.03,
        )
        for _ in range(8):
            there.eval([int(there.scores[there.n_tokens - 1].argmax())])
            read.append(int(model(torch.tensor([read]))[0, -1].argmax()))
    assert there.input_ids[: there.n_tokens].tolist() == read
