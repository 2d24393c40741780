"""Norms, the MLP and the residual stream, against their equations."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from torch import Tensor

from gptviz.model import IDENTITY, Record
from gptviz.model.parts.blocks import Block
from gptviz.model.parts.mlps import MLP
from gptviz.model.parts.norms import new_norm
from gptviz.model.parts.part import sharing
from tests.tiny import scrambled, some_ids, tiny

ACTIVATIONS: dict[str, Callable[[float], float]] = {
    "relu": lambda x: max(x, 0.0),
    "gelu": lambda x: x * 0.5 * (1 + math.erf(x / math.sqrt(2))),
    "gelu-tanh": lambda x: (
        0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    ),
    "relu2": lambda x: max(x, 0.0) ** 2,
}


@pytest.mark.parametrize(
    ("gain", "bias"), [(True, True), (True, False), (False, True), (False, False)]
)
@pytest.mark.parametrize("kind", ["layernorm", "rmsnorm"])
def test_a_norm_is_its_formula(kind: str, gain: bool, bias: bool) -> None:
    part = new_norm(tiny(norm=kind, norm_gain=gain, norm_bias=bias), 5).double()
    weights = dict(part.named_parameters())
    assert set(weights) == ({"weight"} if gain else set()) | (
        {"bias"} if gain and bias and kind == "layernorm" else set()
    )
    for parameter in weights.values():
        torch.nn.init.normal_(parameter)
    x = np.array([3.0, -1.0, 0.5, 0.001, 2.0])
    if kind == "layernorm":
        expected = (x - x.mean()) / np.sqrt(((x - x.mean()) ** 2).mean() + 1e-5)
    else:
        expected = x / np.sqrt((x**2).mean() + 1e-6)
    expected = expected * weights["weight"].detach().numpy() if gain else expected
    expected = expected + weights["bias"].detach().numpy() if "bias" in weights else expected
    np.testing.assert_allclose(part(torch.tensor(x)).detach().numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("kind", ["layernorm", "rmsnorm"])
def test_a_norm_of_nearly_nothing_stays_finite(kind: str) -> None:
    part = new_norm(tiny(norm=kind), 4)
    x = torch.tensor([1e-4, -1e-4, 2e-4, 0.0])
    eps = {"layernorm": 1e-5, "rmsnorm": 1e-6}[kind]
    centred = x - x.mean() if kind == "layernorm" else x
    torch.testing.assert_close(part(x), centred / (centred.square().mean() + eps).sqrt())
    assert (part(torch.zeros(4)) == 0).all()


@pytest.fixture
def each_warning_is_an_error() -> Iterator[None]:
    """PyTorch says most things once in a process alone."""
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
    torch.set_warn_always(before)


@pytest.mark.parametrize("kind", ["layernorm", "rmsnorm"])
def test_a_norm_of_bfloat16_is_computed_in_float32_without_a_warning(
    kind: str, each_warning_is_an_error: None
) -> None:
    """As in training in bfloat16, where gains stay in float32."""
    part = new_norm(tiny(norm=kind), 8)
    for parameter in part.parameters():
        torch.nn.init.normal_(parameter)
    x = torch.randn(3, 8, generator=torch.Generator().manual_seed(0)).bfloat16().requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = part(x)
        y.float().sum().backward()
    assert y.dtype is torch.bfloat16
    torch.testing.assert_close(y, part(x.float()).bfloat16(), rtol=2**-7, atol=0)
    assert all(
        parameter.grad is not None and parameter.grad.dtype is torch.float32
        for parameter in part.parameters()
    )


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("bias", [True, False])
def test_the_mlp_is_two_products_with_an_activation_between(activation: str, bias: bool) -> None:
    model = scrambled(tiny(activation=activation, mlp_bias=bias)).double()
    mlp = model.blocks[0].mlp
    assert isinstance(mlp, MLP)
    x = torch.randn(1, 3, 12, dtype=torch.float64)
    record = Record()
    out = mlp(x, record)
    zero = np.zeros(20)
    up = mlp.up.weight.detach().numpy()
    down = mlp.down.weight.detach().numpy()
    up_bias, down_bias = (
        part.bias.detach().numpy() if bias else zero[: part.out_features]
        for part in (mlp.up, mlp.down)
    )
    for t in range(3):
        neurons = [
            ACTIVATIONS[activation](float(up[i] @ x[0, t].numpy() + up_bias[i])) for i in range(20)
        ]
        np.testing.assert_allclose(
            record.values["neurons"][0, t].detach().numpy(), neurons, rtol=1e-9, atol=1e-12
        )
        np.testing.assert_allclose(
            out[0, t].detach().numpy(), down @ neurons + down_bias, rtol=1e-9, atol=1e-12
        )


def layernormed(x: Tensor, part: torch.nn.Module) -> Tensor:
    centred = x - x.mean(-1, keepdim=True)
    scaled = centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    return scaled * part.get_parameter("weight") + part.get_parameter("bias")


@pytest.mark.parametrize("d_mlp", [20, 0])
@pytest.mark.parametrize("residual", ["pre-norm", "post-norm", "plain", "norm-only", "none"])
def test_a_block_joins_its_parts_by_the_equation_of_its_residual(residual: str, d_mlp: int) -> None:
    block = scrambled(tiny(residual=residual, d_mlp=d_mlp)).double().blocks[1]
    assert isinstance(block, Block)
    x = torch.randn(2, 4, 12, dtype=torch.float64)
    ids = some_ids(4)
    blocked = torch.ones(4, 4, dtype=torch.bool).triu(1)

    def attention(h: Tensor) -> Tensor:
        return block.attention(h, ids, blocked, slice(0, 4), None, IDENTITY)

    def joined(x: Tensor, f: Callable[[Tensor], Tensor], join: torch.nn.Module) -> Tensor:
        if residual == "pre-norm":
            return x + f(layernormed(x, join.get_submodule("norm")))
        if residual == "post-norm":
            return layernormed(x + f(x), join.get_submodule("norm"))
        if residual == "norm-only":
            return layernormed(f(x), join.get_submodule("norm"))
        return x + f(x) if residual == "plain" else f(x)

    middle = joined(x, attention, block.attention_residual)
    record = Record()
    out = block(x, ids, blocked, slice(0, 4), None, None, record)
    assert ("resid_mid" in record.values) == (d_mlp > 0)
    if d_mlp:
        mlp = block.mlp
        join = block.mlp_residual
        assert join is not None
        torch.testing.assert_close(record.values["resid_mid"], middle, rtol=1e-10, atol=1e-10)
        middle = joined(middle, lambda h: mlp(h, IDENTITY), join)
    torch.testing.assert_close(out, middle, rtol=1e-10, atol=1e-10)
    assert torch.equal(record.values["resid_pre"], x)
    assert torch.equal(record.values["resid_post"], out)


@pytest.mark.parametrize("positions", ["learned", "rotary"])
def test_embeddings_and_what_every_part_adds_sum_to_the_stream_that_is_unembedded(
    positions: str,
) -> None:
    model = scrambled(tiny(positions=positions)).double()
    record = Record()
    model(some_ids(), tap=record)
    seen = record.values
    parts = [
        seen["embed"],
        *(value for name, value in seen.items() if name.endswith((".out", "positions"))),
    ]
    assert len(parts) == 1 + 4 + (positions == "learned")
    torch.testing.assert_close(sum(parts), seen["blocks.1.resid_post"], rtol=1e-12, atol=1e-12)
    head = model.head
    assert head.final_norm is not None
    stream = layernormed(seen["blocks.1.resid_post"], head.final_norm)
    torch.testing.assert_close(seen["final_norm"], stream, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(
        seen["logits"], stream @ head.unembed.weight.T, rtol=1e-10, atol=1e-10
    )


def test_a_model_of_no_blocks_is_a_table_of_next_tokens() -> None:
    model = scrambled(tiny(n_layer=0, positions="none", final_norm=False, unembed_bias=True))
    table = model.embed.weight @ model.head.unembed.weight.T + model.head.unembed.bias
    ids = some_ids()
    torch.testing.assert_close(model(ids), table[ids])


def test_a_part_that_is_put_in_place_of_another_is_the_one_that_is_found() -> None:
    block = scrambled(tiny()).blocks[0]
    old = block.attention_residual.norm
    new = copy.deepcopy(block.attention_residual.norm)
    twin = sharing(block.attention_residual, norm=new)
    assert (twin.norm, dict(twin.named_children())["norm"]) == (new, new)
    assert block.attention_residual.norm is old
    twin.norm = None
    assert twin.norm is None
    assert new not in twin.modules()


@pytest.mark.parametrize("gain", [True, False])
def test_rmsnorm_gives_the_numbers_of_torch_with_gradients_and_without(gain: bool) -> None:
    part = new_norm(tiny(norm="rmsnorm", norm_gain=gain, norm_bias=False), 5)
    x = torch.stack(
        (
            torch.randn(5, generator=torch.Generator().manual_seed(3)),
            torch.zeros(5),
            1e3 * torch.randn(5, generator=torch.Generator().manual_seed(3)),
        )
    ).requires_grad_()
    expected = torch.rms_norm(x, (5,), part.weight, part.eps)
    torch.testing.assert_close(part(x), expected)
    with torch.no_grad():
        torch.testing.assert_close(part(x.detach()), expected.detach())
        for alone, of_all in zip(x.detach(), expected.detach(), strict=True):
            torch.testing.assert_close(part(alone[None, None]), of_all[None, None])
