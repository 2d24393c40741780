"""A model of ours, written as `transformers` or nanoGPT keep models, computes there what it
computes here.
"""

from __future__ import annotations

import re
import tempfile
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from gptviz.generate.generation import Generation
from gptviz.generate.sampling import Sampling
from gptviz.model import PRESETS, Config
from gptviz.pretrained.families.expressing import NotExpressibleError, differences, express_model
from gptviz.pretrained.opening import source_at, with_weights
from gptviz.pretrained.writing import write_nanogpt, write_transformers
from gptviz.text import BPETokenizer, CharTokenizer, SymbolTokenizer, Tokenizer
from gptviz.text.tokenizers.padded import PaddedTokenizer
from gptviz.text.tokenizers.sentencepiece import from_sentencepiece
from gptviz.text.tokenizers.wordpiece import from_wordpiece
from tests.pretrained.test_families import (
    GROUPED,
    MODELS,
    VOCAB,
    close,
    judge,
    opened_there,
    ours,
    theirs,
    written,
)
from tests.text.sentencepieces import GEMMA, LLAMA, trained
from tests.tiny import scrambled, some_ids, tiny


@torch.inference_mode()
def test_texts_of_several_lengths_are_labelled_there_as_here(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "fine", "film", "##s", "dull"]
    tokenizer = from_wordpiece("\n".join(pieces))
    sizes = MODELS["distilbert"][0] | {"vocab_size": len(pieces)}
    mine = ours(theirs("distilbert", sizes), tmp_path / "given")
    (tmp_path / "written").mkdir()
    write_transformers(written(mine, tokenizer), tmp_path / "written")
    there = judge("distilbert").from_pretrained(tmp_path / "written").eval()
    reader = transformers.AutoTokenizer.from_pretrained(tmp_path / "written")
    texts = ["a fine film", "dull", "Films, films and films"]
    logits = there(**reader(texts, padding=True, return_tensors="pt")).logits
    for text, answer in zip(texts, logits, strict=True):
        close(mine(torch.tensor([tokenizer.encode(text).ids]))[0], answer)


BASICS = {
    "vocab_size": VOCAB,
    "context_length": 24,
    "d_model": 24,
    "n_layer": 2,
    "n_head": 2,
    "d_mlp": 40,
}
LLAMA_LIKE = {"norm": "rmsnorm", "positions": "rotary", "mlp": "gated", "activation": "silu"}
NO_BIAS = dict.fromkeys(("qkv_bias", "output_bias", "mlp_bias"), False)


@st.composite
def trained_here(draw: st.DrawFn) -> Config:
    """Configs as the form on the page Train makes them: near one family or another, with some
    fields changed.
    """
    near = draw(
        st.sampled_from(
            [{}, LLAMA_LIKE, LLAMA_LIKE | NO_BIAS, {"positions": "rotary", "residual": "parallel"}]
        )
    )
    other = {
        "activation": st.sampled_from(["relu", "gelu", "gelu-tanh", "silu", "relu2"]),
        "tied": st.booleans(),
        "norm_gain": st.booleans(),
        "norm_bias": st.booleans(),
        "norm_eps": st.sampled_from([None, 1e-5, 1e-3]),
        "qkv_bias": st.booleans(),
        "output_bias": st.booleans(),
        "mlp_bias": st.booleans(),
        "unembed_bias": st.booleans(),
        "n_kv_head": st.sampled_from([None, 1]),
        "d_head": st.sampled_from([None, 8]),
        "residual": st.sampled_from(
            ["pre-norm", "post-norm", "parallel", "parallel-one-norm", "branch-norm", "double-norm"]
        ),
        "positions": st.sampled_from(["learned", "rotary", "alibi", "none"]),
        "rotary_fraction": st.sampled_from([0.34, 0.5]),
        "qk_norm": st.sampled_from(["shared", "separate", "whole"]),
        "window": st.sampled_from([None, 5, 24]),
        "window_pattern": st.sampled_from(["w", "fw", "wwf"]),
        "score_scale": st.sampled_from([1.0, 0.5]),
        "d_mlp": st.sampled_from([0, 96]),
        "dropout": st.just(0.1),
    }
    names = draw(st.lists(st.sampled_from(sorted(other)), max_size=4, unique=True))
    changes = {name: draw(other[name]) for name in names}
    changes |= {"unembed_bias": False} if changes.get("tied") else {}
    return Config(**BASICS | near | changes)


@settings(max_examples=60)
@given(config=trained_here())
@torch.inference_mode()
def test_a_model_trained_here_is_either_refused_or_has_the_same_logits_there(
    config: Config,
) -> None:
    model = scrambled(config)
    ids = some_ids(20, vocab=VOCAB)
    with tempfile.TemporaryDirectory() as folder:
        try:
            write_transformers(written(model), Path(folder))
        except NotExpressibleError as error:
            assert "which differs in" in str(error)
            return
        close(opened_there(Path(folder))(ids).logits, model(ids))


@pytest.mark.parametrize(
    ("config", "family"),
    [
        (Config(**BASICS), "gpt2"),
        (Config(**BASICS | NO_BIAS, norm_bias=False), "gpt2"),
        (Config(**BASICS | LLAMA_LIKE | NO_BIAS), "llama"),
        (Config(**BASICS | LLAMA_LIKE, n_kv_head=1), "llama"),
        (Config(**BASICS | LLAMA_LIKE | NO_BIAS, window=24), "llama"),
        (Config(**BASICS | LLAMA_LIKE | NO_BIAS, window=5), "mistral"),
        (Config(**BASICS | LLAMA_LIKE | NO_BIAS, qk_norm="separate"), "qwen3"),
        (Config(**BASICS, positions="rotary"), "gpt_neox"),
        (
            Config(**BASICS, qkv_bias=False, score_scale=1.0, window=5, window_pattern="fw"),
            "gpt_neo",
        ),
        (PRESETS["bpe"], "gpt2"),
        (PRESETS["reversal"], "gpt2"),
        (PRESETS["gpt2"], "gpt2"),
    ],
)
def test_the_family_is_the_one_that_computes_the_same(config: Config, family: str) -> None:
    assert express_model(config).family.model_type == family


@pytest.mark.parametrize(
    ("name", "lacks"),
    [
        ("shakespeare", "qk_norm (here shared)"),
        ("generator", "residual (here post-norm)"),
        ("classifier", "head (here flatten)"),
        ("seq2seq", "the nearest is Marian, which differs in positions (here sinusoidal)"),
        ("induction", "d_mlp (here 0)"),
        ("bigram", "positions (here none)"),
    ],
)
def test_what_no_family_has_is_named_in_one_line(name: str, lacks: str) -> None:
    with pytest.raises(NotExpressibleError, match=re.escape(lacks)) as refused:
        express_model(PRESETS[name])
    assert re.search("the nearest is .*, which differs in ", str(refused.value))
    assert "\n" not in str(refused.value)


# Tokenizers

TEXTS = [
    "",
    "to be, or not to be",
    "  two  spaces\n\nand a line\t",
    "Ω is unknown 🙂 here",
    "7 12 7",
    "\x1c7\x857\u20037",
]
TOKENIZERS = [
    CharTokenizer("to be, or not to be\n\t that is"),
    CharTokenizer("abc\ud800", unknown="?"),
    SymbolTokenizer.numbers(20),
    BPETokenizer.learn("to be, or not to be: that is the question", 280),
    PaddedTokenizer(CharTokenizer("to be\n"), 12),
]


@pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=lambda tokenizer: tokenizer.kind)
def test_a_tokenizer_written_there_gives_the_same_ids_and_texts(
    tokenizer: Tokenizer, tmp_path: Path
) -> None:
    transformers = pytest.importorskip("transformers")
    write_transformers(
        written(scrambled(Config(**BASICS | {"vocab_size": tokenizer.vocab_size})), tokenizer),
        tmp_path,
    )
    there = transformers.AutoTokenizer.from_pretrained(tmp_path)
    again = source_at(tmp_path).describe_model().tokenizer
    for text in TEXTS:
        ids = tokenizer.encode(text).ids
        assert there.encode(text) == ids
        assert there.decode(ids) == tokenizer.decode(ids)
        assert again.encode(text).ids == ids
        assert {one.character for one in again.encode(text).unknown} == {
            one.character for one in tokenizer.encode(text).unknown
        }


@pytest.mark.parametrize("kind", [LLAMA, GEMMA], ids=["llama", "gemma"])
def test_a_tokenizer_with_a_token_before_a_text_is_written_with_it(
    kind: dict[str, Any], tmp_path: Path
) -> None:
    transformers = pytest.importorskip("transformers")
    tokenizer = from_sentencepiece(trained(**kind), start=True)
    write_transformers(
        written(scrambled(Config(**BASICS | {"vocab_size": tokenizer.vocab_size})), tokenizer),
        tmp_path,
    )
    there = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for text in TEXTS[1:]:
        ids = tokenizer.encode(text).ids
        assert tokenizer.piece(ids[0]) == there.decode(ids[:1])
        assert there.encode(text) == ids
        assert there.decode(ids[1:]) == tokenizer.decode(ids[1:])


@given(
    text=st.text(
        alphabet=st.characters(codec="utf-8") | st.sampled_from("to be\n 712"), max_size=60
    )
)
def test_any_text_has_the_same_ids_in_the_library(text: str) -> None:
    from tokenizers import Tokenizer as Backend

    from gptviz.text.tokenizers.exported import tokenizers_json

    for tokenizer in TOKENIZERS:
        content = tokenizers_json(tokenizer)
        assert content is not None
        assert Backend.from_str(content).encode(text).ids == tokenizer.encode(text).ids


def test_the_written_model_writes_the_same_text_there_and_stops_at_the_same_token(
    tmp_path: Path,
) -> None:
    transformers = pytest.importorskip("transformers")
    tokenizer = CharTokenizer("the quick brown fox jumps over a lazy dog")
    model = scrambled(Config(**BASICS | LLAMA_LIKE | {"vocab_size": tokenizer.vocab_size}))
    ids = tokenizer.encode("the fox").ids
    with torch.inference_mode():
        for _ in range(12):
            ids.append(int(model(torch.tensor([ids]))[0, -1].argmax()))
    written_here = ids[7:]
    for ends in ((), written_here[8:9], [written_here[8], written_here[5]]):
        folder = tmp_path / str(len(ends))
        folder.mkdir()
        write_transformers(
            written(model, tokenizer, licence="mit", card="From a test.", ends=tuple(ends)), folder
        )
        there = opened_there(folder)
        reader = transformers.AutoTokenizer.from_pretrained(folder)
        made = there.generate(
            **reader("the fox", return_tensors="pt"), max_new_tokens=12, do_sample=False
        )
        most = min((written_here.index(end) + 1 for end in ends), default=12)
        assert made[0].tolist() == ids[: 7 + most]
    readme = (tmp_path / "0" / "README.md").read_text()
    assert 'license: "mit"' in readme
    assert "From a test." in readme


def test_weights_are_written_in_the_type_they_have(tmp_path: Path) -> None:
    for dtype, kind in ((torch.float16, torch.float32), (torch.bfloat16, torch.bfloat16)):
        model = scrambled(Config(**BASICS)).to(dtype)
        folder = tmp_path / str(dtype)
        folder.mkdir()
        write_transformers(written(model), folder)
        assert (folder / "model.safetensors").stat().st_size < 2.2 * sum(
            p.numel() for p in model.parameters()
        ) + 20_000
        assert opened_there(folder).dtype is kind


# nanoGPT


def nanogpt_forward(checkpoint: dict[str, Any], ids: Tensor) -> Tensor:
    """nanoGPT's model, from its published `model.py`: the logits [B, T, vocab_size] of `ids` [B,
    T].
    """
    weights = checkpoint["model"]
    sizes = checkpoint["model_args"]

    def linear(x: Tensor, name: str) -> Tensor:
        return F.linear(x, weights[f"{name}.weight"], weights.get(f"{name}.bias"))

    def norm(x: Tensor, name: str) -> Tensor:
        return F.layer_norm(
            x, x.shape[-1:], weights[f"{name}.weight"], weights.get(f"{name}.bias"), 1e-5
        )

    x = weights["transformer.wte.weight"][ids] + weights["transformer.wpe.weight"][: ids.shape[1]]
    for index in range(sizes["n_layer"]):
        block = f"transformer.h.{index}"
        q, k, v = (
            part.unflatten(-1, (sizes["n_head"], -1)).transpose(1, 2)
            for part in linear(norm(x, f"{block}.ln_1"), f"{block}.attn.c_attn").split(
                sizes["n_embd"], dim=2
            )
        )
        attended = (
            F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        )
        x = x + linear(attended, f"{block}.attn.c_proj")
        hidden = F.gelu(linear(norm(x, f"{block}.ln_2"), f"{block}.mlp.c_fc"))
        x = x + linear(hidden, f"{block}.mlp.c_proj")
    return linear(norm(x, "transformer.ln_f"), "lm_head")


@pytest.mark.parametrize("bias", [True, False])
@torch.inference_mode()
def test_nanogpts_own_forward_has_the_same_logits_and_it_opens_here_again(
    bias: bool, tmp_path: Path
) -> None:
    flags = {} if bias else NO_BIAS | {"norm_bias": False}
    tokenizer = CharTokenizer("".join(chr(ord("A") + place) for place in range(VOCAB)))
    model = scrambled(Config(**BASICS | {"d_mlp": 96, "tied": True, "dropout": 0.1} | flags))
    write_nanogpt(written(model, tokenizer), tmp_path)
    checkpoint = torch.load(tmp_path / "ckpt.pt", weights_only=True)
    ids = some_ids(20, vocab=VOCAB)
    assert checkpoint["model_args"]["bias"] is bias
    assert ("transformer.h.0.ln_1.bias" in checkpoint["model"]) is bias
    close(nanogpt_forward(checkpoint, ids), model(ids))
    again = source_at(tmp_path / "ckpt.pt")
    found = again.describe_model()
    assert not differences(found.config, model.config)
    assert found.config.dropout == 0.1
    assert found.tokenizer.to_json() == tokenizer.to_json()
    close(with_weights(again, found.config).eval()(ids), model(ids))


@pytest.mark.parametrize(
    ("change", "lacks"),
    [
        ({"tied": False}, "tied (here false)"),
        ({"activation": "relu"}, "activation (here relu)"),
        ({}, "d_mlp (here 20)"),
    ],
)
def test_what_nanogpt_has_not_is_named(change: dict[str, Any], lacks: str, tmp_path: Path) -> None:
    with pytest.raises(NotExpressibleError, match=f"nanoGPT differs in .*{re.escape(lacks)}"):
        write_nanogpt(written(scrambled(tiny(**{"tied": True} | change))), tmp_path)
    assert not list(tmp_path.iterdir())


def test_unused_tokens_are_never_written_here_nor_where_a_model_is_exported_to(
    tmp_path: Path,
) -> None:
    """The unused rows win everywhere: `transformers` alone writes them, and told not to, it writes
    what is written here.
    """
    tokenizer = BPETokenizer.learn("to be or not to be", vocab_size=256)
    n = tokenizer.vocab_size
    model = theirs("llama", GROUPED | {"vocab_size": n + 8, "eos_token_id": None})
    with torch.no_grad():
        model.lm_head.weight[n:] = 3 * model.lm_head.weight[:8] - model.lm_head.weight[8:16]
    mine = ours(model, tmp_path / "given")
    prompt = some_ids(3, vocab=n, batch=1)
    lengths = {"max_new_tokens": 20, "min_new_tokens": 20, "do_sample": False}
    assert (model.generate(prompt, **lengths) >= n).any()
    (tmp_path / "made").mkdir()
    padded = PaddedTokenizer(tokenizer, n + 8)
    write_transformers(written(mine, padded), tmp_path / "made")
    there = opened_there(tmp_path / "made").generate(prompt, **lengths)
    here = Generation(mine, prompt[0], Sampling(temperature=0), never=padded.unused_ids)
    assert there[0, 3:].tolist() == [int(step.tokens[0]) for step in islice(here, 20)]
    assert int(there.max()) < n
