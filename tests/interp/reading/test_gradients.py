"""Gradient sizes by depth, against finite differences, a product of matrices and the trainer's own
backward pass.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from gptviz.interp.reading import gradients
from gptviz.model import Edit, build
from tests.tiny import VOCAB, some_ids, tiny


def rms(values: Any) -> float:
    return math.sqrt(np.mean(np.asarray(values, np.float64) ** 2))


@pytest.mark.parametrize("residual", gradients.RESIDUALS)
def test_the_gradient_of_the_stream_is_that_of_finite_differences(residual: str) -> None:
    config = tiny(residual=residual, d_model=4, n_head=1, d_mlp=6)
    model = gradients.fresh_model(config, seed=1, std=0.3, shrink=False)
    ids = some_ids(3, batch=1)
    targets = some_ids(3, batch=1, seed=1)

    def loss(name: str, place: int, step: float) -> float:
        def moved(x: torch.Tensor) -> torch.Tensor:
            x.view(-1)[place] += step
            return x

        with torch.no_grad():
            logits = model(ids, tap=Edit({name: moved}))
        return float(F.cross_entropy(logits[0], targets[0]))

    found = gradients.sizes(model, ids, targets).values[0]
    for index, name in enumerate(
        ("blocks.0.resid_pre", "blocks.1.resid_pre", "blocks.1.resid_post")
    ):
        slopes = [
            (loss(name, place, 1e-5) - loss(name, place, -1e-5)) / 2e-5 for place in range(3 * 4)
        ]
        assert found[index] == pytest.approx(rms(slopes), rel=1e-4)


def test_without_residuals_the_gradient_is_the_product_of_the_blocks_matrices() -> None:
    # One token attends to itself alone, so a block without an MLP is the matrix W_O W_V.
    config = tiny(residual="none", n_layer=3, d_mlp=0, final_norm=False, positions="none")
    model = gradients.fresh_model(config, seed=0, std=0.1)
    ids = torch.tensor([[3]])
    target = torch.tensor([[5]])
    x = [model.embed.weight[3].detach().numpy()]
    parts = []
    for block in model.blocks:
        value = block.attention.qkv.weight[2 * 12 :].detach().numpy()  # type: ignore[union-attr, index]
        output = block.attention.output.weight.detach().numpy()  # type: ignore[union-attr, operator]
        parts.append((output, value))
        x.append(output @ value @ x[-1])
    unembed = model.head.unembed.weight.detach().numpy()  # type: ignore[union-attr, operator]
    odds = np.exp(unembed @ x[-1])
    gradient = [unembed.T @ (odds / odds.sum() - np.eye(VOCAB)[5])]
    of_weights: list[float] = []
    for (output, value), entering in zip(parts[::-1], x[-2::-1], strict=True):
        by_output = np.outer(gradient[0], value @ entering)
        by_value = np.outer(output.T @ gradient[0], entering)
        # Queries and keys change nothing where there is one token to read.
        of_weights.insert(
            0, rms(np.concatenate([by_output.ravel(), by_value.ravel(), np.zeros(2 * value.size)]))
        )
        gradient.insert(0, (output @ value).T @ gradient[0])
    found = gradients.sizes(model, ids, target).values
    assert found[0] == pytest.approx([rms(g) for g in gradient], rel=1e-9)
    assert found[1] == pytest.approx([rms(stream) for stream in x], rel=1e-9)
    assert found[2, :-1] == pytest.approx(of_weights, rel=1e-9)
    assert math.isnan(found[2, -1])


def test_the_gradient_of_the_weights_is_what_training_computes_and_is_left_nowhere() -> None:
    model = gradients.fresh_model(tiny(residual="post-norm"), seed=0)
    ids = some_ids()
    targets = some_ids(seed=1)
    targets[0, :3] = -100
    found = gradients.sizes(model, ids, targets).values[2]
    assert all(weight.grad is None for weight in model.parameters())
    F.cross_entropy(model(ids).flatten(0, 1), targets.flatten()).backward()
    for block, size in zip(model.blocks, found, strict=False):
        numbers = np.concatenate(
            [
                w.grad.numpy().ravel()
                for w in block.parameters()
                if w.dim() > 1 and w.grad is not None
            ]
        )
        assert size == pytest.approx(rms(numbers), rel=1e-9)


def test_a_fresh_model_is_the_one_that_build_makes() -> None:
    built = build(tiny(), seed=4)
    same = gradients.fresh_model(tiny(), seed=4)
    assert all(
        torch.equal(weight.double(), same.get_parameter(name))
        for name, weight in built.named_parameters()
    )


def test_another_start_changes_the_spread_of_the_blocks_matrices_alone() -> None:
    config = tiny(d_model=96, d_mlp=None, n_layer=8)
    before = build(config, seed=0)
    after = gradients.fresh_model(config, seed=0, std=0.1, shrink=False)
    for name, weight in after.named_parameters():
        if name.startswith("blocks.") and weight.dim() > 1:
            # Four standard errors of a standard deviation over this many numbers.
            assert weight.std().item() == pytest.approx(
                0.1, rel=4 / math.sqrt(2 * weight.numel())
            ), name
        else:
            assert torch.equal(weight, before.get_parameter(name).double()), name


def test_compared_models_differ_in_their_residual_alone() -> None:
    ids = some_ids()
    targets = some_ids(seed=1)
    table = gradients.compare(tiny(), ids, targets, seed=2, std=0.1)
    assert not {"parallel", "parallel-one-norm"} & set(gradients.compared_residuals())
    for index, residual in enumerate(gradients.compared_residuals()):
        config = tiny(
            residual=residual, final_norm=residual in ("pre-norm", "branch-norm", "double-norm")
        )
        alone = gradients.sizes(gradients.fresh_model(config, seed=2, std=0.1), ids, targets)
        assert np.array_equal(table.values[:, index], alone.values, equal_nan=True)
    # All read the same embeddings.
    assert len(set(gradients.one_quantity(table, gradients.STREAM).values[:, 0].tolist())) == 1


def test_the_gradient_vanishes_with_depth_without_residuals_and_arrives_with_them() -> None:
    ids = some_ids()
    targets = some_ids(seed=1)
    shares = {
        depth: gradients.reaching(gradients.compare(tiny(n_layer=depth), ids, targets, seed=0))
        for depth in (2, 4, 8)
    }
    assert shares[2]["none"] > 1e3 * shares[4]["none"] > 1e12 * shares[8]["none"] > 0
    assert all(
        0.5 < shares[depth]["plain"] < 2 and shares[depth]["pre-norm"] > 0.5 for depth in shares
    )


def test_a_size_below_the_root_of_the_smallest_number_is_not_lost() -> None:
    # Squared, these gradients are 0 in float64 too.
    table = gradients.compare(tiny(n_layer=32, d_mlp=20), some_ids(), some_ids(seed=1), seed=0)
    sizes = gradients.one_quantity(table, gradients.GRADIENT).values[
        list(gradients.compared_residuals()).index("none")
    ]
    assert (np.diff(np.log10(sizes[sizes > 0])) > 0).all()
    assert 0 < sizes[sizes > 0].min() < 1e-165


def test_an_overflow_is_no_number_and_no_error() -> None:
    table = gradients.compare(
        tiny(n_layer=12, activation="relu2"),
        some_ids(),
        some_ids(seed=1),
        seed=0,
        std=2.0,
        shrink=False,
    )
    shares = gradients.reaching(table)
    assert math.isnan(shares["plain"])
    assert math.isfinite(shares["pre-norm"])


def test_each_quantity_stands_under_its_name() -> None:
    table = gradients.compare(tiny(), some_ids(), some_ids(seed=1), seed=0)
    for index, quantity in enumerate(gradients.QUANTITIES):
        one = gradients.one_quantity(table, quantity)
        assert np.array_equal(one.values, table.values[index, :, : one.values.shape[1]])
        assert np.isfinite(one.values).all()
        assert one.axes[1].labels == (
            ("0", "1") if quantity == gradients.WEIGHTS else ("0", "1", "out")
        )
