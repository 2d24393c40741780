"""Swaps of two tokens in the stream: against matrices by hand, and what a model says whose right
answers are known.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import gptviz
from gptviz.interp.changing.edits import edit_model, edits, fitting
from gptviz.interp.explaining.attribution import attribute
from gptviz.interp.reading.layers import layers
from gptviz.interp.trace import run
from gptviz.model import Transformer
from gptviz.runs import fitted
from tests.tiny import scrambled, some_ids, tiny

KINDS: list[dict[str, Any]] = [
    {},
    {"norm": "rmsnorm", "tied": True},
    {"residual": "parallel"},
    {"residual": "post-norm", "final_norm": False},
    {"mix_embedding": True, "backout": True},
]


pytestmark = pytest.mark.usefixtures("home")


def with_swap(model: Transformer, layer: str, strength: float = 1, lens: str = "") -> Transformer:
    return edit_model(model, edits([f"swap.{layer}.3.7{lens}={strength:g}"], model.config))


@torch.inference_mode()
def rows_of(model: Transformer) -> Tensor:
    """What the head reads tokens 3 and 7 along, by hand, each 1 long: [2, d_model]."""
    norm = model.head.final_norm
    rows = model.head.unembed.weight[[3, 7]]
    if norm is not None:
        rows = rows * norm.weight
        rows = rows - rows.mean(-1, keepdim=True) if model.config.norm == "layernorm" else rows
    return rows / rows.norm(dim=-1, keepdim=True)


@pytest.mark.parametrize("changes", KINDS, ids=str)
def test_at_every_layer_both_tokens_change_places_and_nothing_else_changes(
    changes: dict[str, Any],
) -> None:
    model = scrambled(tiny(n_layer=3, **changes))
    ids = some_ids()
    plain = run(model, ids)
    rows = rows_of(model)
    across = torch.eye(12) - torch.linalg.pinv(rows) @ rows  # what lies along neither token
    for layer in layers(model.config):  # even and odd ones
        swapped = run(with_swap(model, layer.name), ids)
        before = plain[layer.tap]
        after = swapped[layer.tap]
        torch.testing.assert_close(after @ rows.T, (before @ rows.T).flip(-1), atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(after @ across, before @ across, atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(after.norm(dim=-1), before.norm(dim=-1))
        earlier = [each.tap for each in layers(model.config)[: layers(model.config).index(layer)]]
        assert all(torch.equal(swapped[tap], plain[tap]) for tap in earlier)


def test_strength_0_is_equal_to_the_bit_and_half_the_way_both_are_alike() -> None:
    model = scrambled(tiny())
    ids = some_ids()
    for layer in layers(model.config):
        assert torch.equal(
            run(with_swap(model, layer.name, 0), ids)["logits"], run(model, ids)["logits"]
        )
        half = run(with_swap(model, layer.name, 0.5), ids)[layer.tap] @ rows_of(model).T
        torch.testing.assert_close(half[..., 0], half[..., 1])
        torch.testing.assert_close(
            half.sum(-1), (run(model, ids)[layer.tap] @ rows_of(model).T).sum(-1)
        )


def test_a_second_swap_brings_everything_back() -> None:
    model = scrambled(tiny())
    ids = some_ids()
    without = "blocks.1.mlp"  # then nothing is written between the two layers
    once = ["swap.blocks.1.attention.3.7=1"]
    twice = ["swap.blocks.1.attention.3.7=1", "swap.blocks.1.mlp.3.7=1"]
    plain, once, twice = (
        run(edit_model(model, edits([without, *swaps], model.config)), ids)["logits"]
        for swaps in ([], once, twice)
    )
    assert not torch.allclose(once, plain, atol=1e-2)
    torch.testing.assert_close(twice, plain, atol=1e-4, rtol=1e-4)


def test_by_a_fitted_lens_the_directions_are_those_that_it_reads() -> None:
    model = scrambled(tiny())
    ids = some_ids()
    name = "0" * 32
    maps = torch.randn(5, 12, 12, generator=torch.Generator().manual_seed(0))
    fitted.keep(name, {"at": torch.arange(5), "matrices": maps})
    rows = rows_of(model) @ maps[2]
    rows = rows / rows.norm(dim=-1, keepdim=True)
    plain, swapped = (
        run(each, ids)["blocks.0.resid_post"] @ rows.T
        for each in (model, with_swap(model, "blocks.0.mlp", lens=f".{name}"))
    )
    torch.testing.assert_close(swapped, plain.flip(-1), atol=1e-4, rtol=1e-4)
    gone = fitting([f"swap.blocks.0.mlp.3.7.{'1' * 32}=1"], model)
    assert "the lens is not on this machine" in gone.rejected[0]
    fitted.keep(name, {"at": torch.arange(5), "matrices": maps[:, :6, :6]})
    assert (
        "that of another model" in fitting([f"swap.blocks.0.mlp.3.7.{name}=1"], model).rejected[0]
    )


@pytest.mark.parametrize("changes", KINDS, ids=str)
def test_a_logit_is_still_the_sum_of_its_parts_and_the_swap_is_one_of_them(
    changes: dict[str, Any],
) -> None:
    model = scrambled(tiny(**changes))
    ids = some_ids(batch=1)[0].tolist()
    for layer in layers(model.config):
        found = attribute(with_swap(model, layer.name), ids)
        assert found.adds_up
        (part,) = (part for part in found.parts if part.name.endswith(".edits.bias"))
        at_end = layer.tap.endswith("resid_post")
        assert (
            part.title
            == f"what edits add after {f'block {layer.block}' if at_end else layer.title}"
        )


def test_tokens_with_one_direction_have_no_places_to_change() -> None:
    model = scrambled(tiny())
    with torch.no_grad():
        model.head.unembed.weight[7] = 2 * model.head.unembed.weight[3]
    assert "both tokens have the same direction" in fitting(["swap.embed.3.7=1"], model).rejected[0]


def test_in_sentences_a_swap_turns_is_into_are() -> None:
    lm = gptviz.load("sentences")
    prompt = "The king near the old tree"
    assert lm.generate(prompt, 1, temperature=0).strip() == "is"
    for layer, strength in (("blocks.2.mlp", 1), ("blocks.2.attention", 2)):
        swapped = lm.edited(lm.swap(layer, "is", "are", strength))
        assert swapped.generate(prompt, 1, temperature=0).strip() == "are"
    assert lm.swap("blocks.2.mlp", "are", lm.token("is")) == lm.swap("blocks.2.mlp", "is", "are")
    with pytest.raises(ValueError, match="no single token"):
        lm.swap("blocks.2.mlp", "is", "is are")
