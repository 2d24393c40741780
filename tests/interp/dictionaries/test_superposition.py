"""The toy model of superposition against closed forms and a plain loop, and a dictionary that finds
its features.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gptviz.interp.dictionaries.superposition import (
    FEATURES,
    SPARSITIES,
    Toy,
    draw_vectors,
    find,
    losses,
    train,
)


@pytest.fixture(scope="module")
def toy() -> Toy:
    return train()


def test_the_loss_is_that_of_a_plain_loop() -> None:
    draw = torch.Generator().manual_seed(1)
    x = torch.rand(2, 7, 5, generator=draw)
    arrows = torch.randn(2, 2, 5, generator=draw)
    bias = torch.randn(2, 5, generator=draw)
    importance = torch.tensor([1.0, 0.9, 0.8, 0.7, 0.6])
    for model, value in enumerate(losses(x, arrows, bias, importance)):
        whole = 0.0
        for vector in x[model].tolist():
            h = [
                sum(arrows[model, row, i].item() * vector[i] for i in range(5)) for row in range(2)
            ]
            for i in range(5):
                back = max(
                    0.0,
                    sum(arrows[model, row, i].item() * h[row] for row in range(2))
                    + bias[model, i].item(),
                )
                whole += importance[i].item() * (vector[i] - back) ** 2
        assert value.item() == pytest.approx(whole / 7, rel=1e-5)


def test_a_feature_is_absent_as_often_as_the_sparsity_says() -> None:
    x = draw_vectors(torch.tensor(SPARSITIES), 20_000, torch.Generator().manual_seed(2))
    np.testing.assert_allclose((x == 0).double().mean((1, 2)), SPARSITIES, atol=0.01)
    assert x.min() >= 0
    assert x.max() <= 1


def test_of_dense_features_the_two_most_important_are_kept_as_principal_components_do(
    toy: Toy,
) -> None:
    """Features of the variance 1/12 each: the best two dimensions keep two of them, and the error
    of the others is theirs.
    """
    lengths = toy.lengths.values[SPARSITIES.index(0.0)]
    np.testing.assert_allclose(lengths, [1, 1, 0, 0, 0], atol=0.15)
    given_up = sum(0.9**i / 12 for i in range(2, FEATURES))
    assert float(toy.loss[0]) == pytest.approx(given_up, rel=0.02)


@pytest.mark.parametrize("sparsity", [0.9, 0.95, 0.98])
def test_sparse_features_are_all_kept_as_a_pentagon(toy: Toy, sparsity: float) -> None:
    at = SPARSITIES.index(sparsity)
    np.testing.assert_allclose(toy.lengths.values[at], 1.1, atol=0.1)
    angles = np.sort(np.degrees(np.arctan2(*toy.arrows[at].numpy())))
    np.testing.assert_allclose(np.diff(angles, append=angles[0] + 360), 72, atol=8)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_dictionary_finds_the_arrows_where_two_features_are_hardly_ever_there_together(
    toy: Toy, seed: int
) -> None:
    """Five equal steps around the circle, turned at random, would have sin(36°) / (π / 5) =
    0.935.
    """
    cosines = find(toy, 0.98, seed).cosines
    assert len(cosines) == FEATURES
    assert float(cosines.mean()) > 0.99
