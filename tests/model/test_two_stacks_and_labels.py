"""Encoders: cross-attention, padding, and the heads that tell labels apart, against loops and
properties.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from gptviz.model import Config, KVCache, Record, describe, parameter_count
from gptviz.model.parts.heads import HEADS
from gptviz.model.parts.positions import POSITIONS
from tests.tiny import CONTEXT, VOCAB, families, scrambled, some_ids, tiny

many = settings(max_examples=40)
PADDING = VOCAB - 1
LABELS = 3


def words(length: int = 5, seed: int = 0) -> Tensor:
    """Ids without padding, [2, length]."""
    return some_ids(length, vocab=PADDING, seed=seed)


def padded(ids: Tensor, by: int) -> Tensor:
    return F.pad(ids, (0, by), value=PADDING)


def assert_close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


def trace(config: Config, *inputs: Tensor) -> dict[str, Tensor]:
    record = Record()
    scrambled(config).double()(*inputs, tap=record)
    return record.values


def test_cross_attention_is_what_loops_over_heads_queries_and_keys_compute() -> None:
    config = tiny(n_layer=1, n_encoder_layer=1, d_head=6, padding=PADDING)
    model = scrambled(config).double()
    record = Record()
    source = torch.cat((words(3), torch.full((2, 1), PADDING)), 1)
    model(words(5), source, tap=record)
    cross = model.blocks[0].cross_attention
    values = {name: value.detach().numpy() for name, value in record.values.items()}
    norm = model.blocks[0].cross_residual.norm
    x = norm(record.values["blocks.0.resid_self"]).detach().numpy()
    memory = values["memory"]
    weights = {name: p.detach().numpy() for name, p in cross.named_parameters()}
    d = config.head_size
    heads = config.n_head
    for b in range(2):
        out = np.tile(weights["output.bias"], (5, 1))
        for h in range(heads):
            rows = slice(h * d, (h + 1) * d)
            more = slice((heads + h) * d, (heads + h + 1) * d)
            k = [
                weights["kv.weight"][rows] @ memory[b, s] + weights["kv.bias"][rows]
                for s in range(3)
            ]
            v = [
                weights["kv.weight"][more] @ memory[b, s] + weights["kv.bias"][more]
                for s in range(3)
            ]
            for t in range(5):
                q = weights["q.weight"][rows] @ x[b, t] + weights["q.bias"][rows]
                each = [math.exp(q @ k[s] / math.sqrt(d)) for s in range(3)]
                pattern = [*(one / sum(each) for one in each), 0.0]
                np.testing.assert_allclose(
                    values["blocks.0.cross_attention.pattern"][b, h, t], pattern, atol=1e-12
                )
                out[t] += weights["output.weight"][:, rows] @ sum(
                    pattern[s] * v[s] for s in range(3)
                )
        np.testing.assert_allclose(values["blocks.0.cross_attention.out"][b], out, atol=1e-12)


@pytest.mark.parametrize("name", ["attention", "cross_attention"])
def test_products_of_stacks_of_matrices_are_loops_over_rows_and_heads(name: str) -> None:
    seen = trace(tiny(n_layer=1, n_encoder_layer=1), some_ids(5), some_ids(4))
    q, k, v, z = (seen[f"blocks.0.{name}.{part}"] for part in ("q", "k", "v", "z"))
    scores = seen[f"blocks.0.{name}.scores"]
    pattern = seen[f"blocks.0.{name}.pattern"]
    for b in range(2):
        for h in range(3):
            assert_close(scores[b, h], q[b, h] @ k[b, h].T / math.sqrt(4))
            assert_close(z[b, h], pattern[b, h] @ v[b, h])


@many
@given(
    families(padding=PADDING, head="unembed", n_encoder_layer=1),
    st.integers(1, 2),
    st.integers(1, 3),
)
def test_padding_the_source_changes_no_output_and_nothing_the_encoder_makes_of_a_word(
    config: Config, n_encoder_layer: int, by: int
) -> None:
    model = scrambled(
        Config(**config.to_dict() | {"n_encoder_layer": n_encoder_layer, "mask": "causal"})
    ).double()
    source = words()
    ids = words(seed=1)
    assert_close(model(ids, padded(source, by)), model(ids, source))
    assert_close(model.encode(padded(source, by)).states[:, :5], model.encode(source).states)


@many
@given(families(padding=PADDING, head="unembed", mask="causal", n_layer=2), st.integers(1, 3))
def test_padding_at_the_end_of_an_output_changes_nothing_before_it(config: Config, by: int) -> None:
    model = scrambled(config).double()
    assert_close(model(padded(words(), by))[:, :5], model(words()))


@pytest.mark.parametrize("head", [name for name, kind in HEADS.items() if kind.classifies])
@pytest.mark.parametrize("positions", POSITIONS)
def test_padding_changes_no_label_and_each_word_can(head: str, positions: str) -> None:
    config = tiny(padding=PADDING, mask="full", head=head, n_label=LABELS, positions=positions)
    model = scrambled(config).double()
    logits = model(words())
    assert logits.shape == (2, LABELS)
    assert_close(model(padded(words(), 3)), logits)
    for place in range(5):
        other = words()
        other[:, place] = (other[:, place] + 1) % PADDING
        assert not torch.isclose(model(other), logits).all()


@pytest.mark.parametrize("head", ["flatten", "mean", "sum"])
@pytest.mark.parametrize("final_norm", [True, False])
def test_what_each_word_adds_and_the_bias_sum_to_the_logits(head: str, final_norm: bool) -> None:
    config = tiny(padding=PADDING, mask="full", head=head, n_label=LABELS, final_norm=final_norm)
    model = scrambled(config).double()
    values = trace(config, padded(words(), 2))
    assert_close(values["shares"].sum(1) + model.head.label.bias, values["logits"])
    assert (values["shares"][:, 5:] == 0).all()
    x = values["final_norm" if final_norm else "blocks.1.resid_post"].detach().numpy()
    weight = model.head.label.weight.detach().numpy()
    for t in range(5):
        if head == "flatten":
            number = (
                model.head.token.weight.detach().numpy()[0] @ x[0, t] + model.head.token.bias.item()
            )
            expected = number * weight[:, t]
        else:
            expected = weight @ x[0, t] / (5 if head == "mean" else math.sqrt(5))
        np.testing.assert_allclose(
            values["shares"][0, t].detach().numpy(), expected, rtol=1e-9, atol=1e-12
        )


@pytest.mark.parametrize(
    ("head", "curve"), [("first", math.tanh), ("first-relu", lambda x: max(0.0, x))]
)
def test_the_head_of_the_first_token_reads_that_one_alone_through_a_layer(
    head: str, curve: Callable[[float], float]
) -> None:
    config = tiny(mask="full", head=head, n_label=LABELS, final_norm=False)
    model = scrambled(config).double()
    values = trace(config, words())
    part = {name: tensor.detach().numpy() for name, tensor in model.head.named_parameters()}
    for row in range(2):
        x = values["blocks.1.resid_post"][row, 0].detach().numpy()
        pooled = [
            curve(row @ x + bias)
            for row, bias in zip(part["pool.weight"], part["pool.bias"], strict=True)
        ]
        np.testing.assert_allclose(values["pooled"][row].detach().numpy(), pooled, rtol=1e-9)
        expected = part["label.weight"] @ np.array(pooled) + part["label.bias"]
        np.testing.assert_allclose(values["logits"][row].detach().numpy(), expected, rtol=1e-9)


def test_the_norm_after_the_embedding_stands_after_the_positions_too() -> None:
    config = tiny(embed_norm=True)
    model = scrambled(config).double()
    values = trace(config, words())
    assert_close(model.embed_norm(values["embed"] + values["positions"]), values["embed_norm"])
    assert_close(values["embed_norm"], values["blocks.0.resid_pre"])


def test_a_tied_unembedding_may_have_a_bias_of_its_own() -> None:
    config = tiny(tied=True, unembed_bias=True)
    model = scrambled(config).double()
    values = trace(config, words())
    assert parameter_count(config) == parameter_count(tiny(tied=True)) + VOCAB
    assert_close(
        values["final_norm"] @ model.embed.weight.T + model.head.unembed.bias, values["logits"]
    )


@many
@given(families(n_encoder_layer=1, mask="causal"), st.integers(1, CONTEXT - 1))
def test_no_later_output_token_changes_an_earlier_prediction_but_every_word_of_the_source_may(
    config: Config, changed: int
) -> None:
    model = scrambled(config).double()
    ids = some_ids()
    source = some_ids(4, seed=1)
    other = ids.clone()
    other[:, changed:] = (other[:, changed:] + 1) % VOCAB
    before = model(ids, source)
    assert_close(model(other, source)[:, :changed], before[:, :changed])
    if config.n_layer:
        for place in range(4):
            read = source.clone()
            read[:, place] = (read[:, place] + 1) % VOCAB
            assert not torch.isclose(model(ids, read), before).all()


@many
@given(
    families(n_encoder_layer=2, mask="causal", padding=PADDING),
    st.lists(st.integers(1, CONTEXT), min_size=1),
)
def test_the_encoder_runs_once_and_a_cached_output_has_the_logits_of_a_whole_one(
    config: Config, chunks: list[int]
) -> None:
    model = scrambled(config).double()
    ids = some_ids()
    source = padded(words(4), 2)
    whole = model(ids, source)
    memory = model.encode(source)
    cache = KVCache(config, batch=2, dtype=torch.float64)
    record = Record(["encoder.*", "*cross_attention.k"])
    for chunk in chunks:
        start = cache.length
        end = min(cache.length + chunk, CONTEXT)
        if start == end:
            break
        assert_close(
            model(ids[:, start:end], memory=memory, cache=cache, tap=record), whole[:, start:end]
        )
    assert not any(name.startswith("encoder") for name in record.values)
    assert all(cache.layers[i].cross is not None for i in range(config.n_layer))


@pytest.mark.parametrize("sources", [1, 2])
def test_rows_of_a_cache_are_chosen_with_their_sources_or_share_one_memory(sources: int) -> None:
    model = scrambled(tiny(n_encoder_layer=1)).double()
    ids = some_ids()
    source = some_ids(4, batch=sources, seed=1)
    rows = torch.tensor([1, 1])
    memory = model.encode(source)
    cache = KVCache(model.config, batch=2, dtype=torch.float64)
    model(ids[:, :3], memory=memory, cache=cache)
    cache.reorder(rows)
    again = model(ids[:, 3:5], memory=memory, cache=cache)
    assert_close(
        again, model(torch.cat((ids[rows, :3], ids[:, 3:5]), 1), source.expand(2, -1)[rows])[:, 3:]
    )


def test_an_encoder_that_is_given_nothing_says_so() -> None:
    model = scrambled(tiny(n_encoder_layer=1))
    with pytest.raises(ValueError, match="give it a source"):
        model(some_ids())
    with pytest.raises(ValueError, match=f"{CONTEXT + 1} tokens do not fit"):
        model(some_ids(), some_ids(CONTEXT + 1))
    with pytest.raises(ValueError, match="no encoder"):
        scrambled(tiny()).encode(some_ids())
    with pytest.raises(ValueError, match="no encoder"):
        scrambled(tiny())(some_ids(), some_ids())


def test_both_stacks_share_one_embedding_and_are_described_part_by_part() -> None:
    config = tiny(n_encoder_layer=1)
    model = scrambled(config)
    assert model.encoder.embed is model.embed
    layers = {layer.name: layer.parameters for layer in describe(config)}
    assert (
        sum(layers.values())
        == parameter_count(config)
        == sum(p.numel() for p in model.parameters())
    )
    assert "encoder.embed" not in layers
    assert layers["encoder.blocks.0.attention.qkv"] == 3 * 12 * 12 + 3 * 12
    assert layers["blocks.1.cross_attention.q"] == 12 * 12 + 12
    assert layers["blocks.1.cross_attention.kv"] == 2 * 12 * 12 + 2 * 12
