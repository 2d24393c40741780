"""What a model costs by formula, against torch's counter of operations, what autograd saves, and
the tensors themselves.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from gptviz.model import Config, KVCache, Transformer, build, parameter_count, preset
from gptviz.model.builder import lay_out
from gptviz.model.costs import operations as costing
from gptviz.model.costs.activations import kept_activations
from gptviz.model.precision import place
from tests.examples import tried
from tests.tiny import families, scrambled, some_ids, tiny

LABELS: dict[str, Any] = {"mask": "full", "padding": 0, "n_label": 3, "final_norm": False}
ENCODER: dict[str, Any] = {"n_encoder_layer": 3, "padding": 0}
KINDS: list[dict[str, Any]] = [
    *({**LABELS, "head": head} for head in ("flatten", "mean", "sum", "first", "first-relu")),
    *(ENCODER | {"n_layer": n_layer} for n_layer in (0, 1, 4)),
    ENCODER | {"positions": "relative", "qk_norm": "shared"},
    {"n_layer": 5, "window": 3, "window_pattern": "wwf"},
    {"n_layer": 4, "attention_dropout": 0.1, "dropout": 0.1},
]
SHAPES = [(3, 7), (1, 5), (2, 1)]


def loss_of(model: Transformer, ids: Tensor) -> Tensor:
    logits = model(ids, ids.clone() if model.encoder is not None else None)
    return F.cross_entropy(
        logits.flatten(0, -2), torch.zeros(logits.shape[:-1], dtype=torch.long).flatten()
    )


def operations(config: Config, batch: int, tokens: int) -> tuple[int, int]:
    """The operations of a real step's forward pass, and of all of it, as torch counts them."""
    model = build(config, seed=0).train()
    with FlopCounterMode(display=False) as counter:
        loss = loss_of(model, some_ids(tokens, batch, config.vocab_size))
        forward = counter.get_total_flops()
        loss.backward()
    return int(forward), int(counter.get_total_flops())


def saved(config: Config, batch: int, tokens: int) -> int:
    """The bytes that autograd saves in a real step beside weights and fixed tables, every storage
    once.
    """
    model = build(config, seed=0).train()
    fixed = {tensor.data_ptr() for tensor in (*model.parameters(), *model.buffers())}
    held: dict[int, Tensor] = {}

    def save(tensor: Tensor) -> Tensor:
        if tensor.dim():
            held[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with saved_tensors_hooks(save, lambda tensor: tensor):
        loss_of(model, some_ids(tokens, batch, config.vocab_size))
    return sum(
        tensor.untyped_storage().nbytes()
        for pointer, tensor in held.items()
        if pointer not in fixed
    )


def check(config: Config, batch: int, tokens: int) -> None:
    assert costing.flops(config, batch, tokens) == operations(config, batch, tokens)
    kept = kept_activations(config, batch, tokens).total(batch, tokens)
    if config.mlp == "experts" and config.mlp_size and config.n_layer + config.n_encoder_layer:
        assert kept >= saved(config, batch, tokens), "as if every token passed every expert"
    else:
        assert kept == saved(config, batch, tokens)
    assert sum(size.parameters for size in costing.sizes(config)) == parameter_count(config)


@tried(6, 40, config=families())
def test_operations_are_those_torch_counts_and_activations_those_autograd_saves(
    config: Config,
) -> None:
    check(config, 3, 7)


# In `make test` each kind with one of the shapes, and each shape with several kinds.
CASES = [
    pytest.param(changes, shape, marks=[] if i % len(SHAPES) == j else pytest.mark.full)
    for i, changes in enumerate(KINDS)
    for j, shape in enumerate(SHAPES)
]


@pytest.mark.parametrize(("changes", "shape"), CASES, ids=str)
def test_that_holds_for_every_kind_of_model_for_single_texts_and_single_tokens(
    changes: dict[str, Any], shape: tuple[int, int]
) -> None:
    check(tiny(**changes), *shape)


def test_a_formula_in_letters_gives_the_number_beside_it() -> None:
    config = tiny(residual="double-norm", window=3, dropout=0.1)
    for part, size in (found := kept_activations(config)).by_part(5, 6).items():
        letters = (
            found.formula(part)
            .replace(",", "")
            .replace("T²", "36")
            .replace("T", "6")
            .replace("B", "5")
            .replace("·", "*")
        )
        assert eval(letters) == size
    for product in costing.products(config, 5, 6):
        letters = (
            product.formula.replace(",", "").replace("B", "5").replace("T", "6").replace("·", "*")
        )
        assert product.times * eval(letters) == product.forward


def test_gpt2_small_has_the_published_parameters_and_six_operations_for_each_and_token() -> None:
    config = preset("gpt2")
    parts = costing.by_part([(size.part, size.parameters) for size in costing.sizes(config)])
    assert parts == {
        "embedding": 50_257 * 768,
        "positions": 1_024 * 768,
        "norms": 25 * 2 * 768,
        "attention": 12 * (4 * 768**2 + 4 * 768),
        "MLP": 12 * (8 * 768**2 + 5 * 768),
    }
    # Kaplan et al. 2020: 6 N operations a token, N without embedding and positions; and those
    # between tokens, 12 n_layer d T.
    # a bias is added and not multiplied
    in_blocks = sum(parts[part] for part in ("attention", "MLP")) - 12 * 9 * 768
    training = costing.flops(config, 1, 1_024)[1]
    assert training == 1_024 * (6 * (in_blocks + 50_257 * 768) + 12 * 12 * 768 * 1_024)


@pytest.mark.parametrize(
    "changes",
    [{}, {"tied": True}, {"positions": "relative"}, ENCODER, {**LABELS, "head": "flatten"}],
)
def test_weights_take_what_their_tensors_take_in_every_precision(changes: dict[str, Any]) -> None:
    config = tiny(**changes)
    for name, number in (("float32", 4), ("bfloat16", 2), ("float16", 2)):
        model = place(lay_out(config), list(scrambled(config).named_parameters()), precision=name)
        assert costing.weight_bytes(config, number) == sum(
            parameter.nbytes for parameter in model.parameters()
        )


@pytest.mark.parametrize(
    "changes", [{"n_layer": 3}, {"n_head": 4, "d_model": 16, "n_kv_head": 2, "d_head": 6}]
)
def test_a_cache_holds_as_many_numbers_as_is_said(changes: dict[str, Any]) -> None:
    config = tiny(**changes)
    cache = KVCache(config, 2)
    with torch.no_grad():
        scrambled(config)(some_ids(5), cache=cache)
    assert 4 * costing.cache_numbers(config, 2, 5) == sum(cache.bytes_by_block)


def test_the_cache_of_an_encoder_decoder_also_holds_what_is_read_of_the_source() -> None:
    config = tiny(**ENCODER)
    model = scrambled(config)
    cache = model.new_cache(2)
    with torch.no_grad():
        model(some_ids(3), some_ids(5), cache=cache)
    crossed = sum(tensor.nbytes for layer in cache.layers for tensor in layer.cross or ())
    assert 4 * costing.cache_numbers(config, 2, 3, source=5) == sum(cache.bytes_by_block) + crossed
