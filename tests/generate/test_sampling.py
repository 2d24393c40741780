"""From logits to a token, against a plain implementation in Python's own numbers."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from scipy import stats

from gptviz.generate.sampling import Sampling, choose_tokens, draw, ledger, uniform

many = settings(max_examples=150)


def softmax(logits: list[float]) -> list[float]:
    largest = max(logits)
    weights = [math.exp(x - largest) for x in logits]
    total = math.fsum(weights)
    return [weight / total for weight in weights]


def plain(
    logits: list[float], temperature: float, top_k: int | None, top_p: float | None
) -> tuple[list[int], list[int], list[float]]:
    """The tokens top-k keeps, those top-p keeps of them, likeliest first, and the probabilities
    drawn from.

    No verdict (in hypothesis, another example) where a sum touches top_p up to rounding.
    """
    order = sorted(range(len(logits)), key=lambda token: (-logits[token], token))
    if temperature == 0:
        scaled = [0.0 if token == order[0] else -math.inf for token in range(len(logits))]
    else:
        scaled = [(x - logits[order[0]]) / temperature for x in logits]
    in_top_k = order[: top_k or len(order)]
    of_kept = dict(zip(in_top_k, softmax([scaled[token] for token in in_top_k]), strict=True))
    in_top_p: list[int] = []
    reached = 0.0
    for token in in_top_k:
        if top_p not in (None, 1) and abs(reached - top_p) < 1e-9:
            reject()
        if top_p is None or top_p == 1 or reached < top_p:
            in_top_p.append(token)
        reached += of_kept[token]
    kept_probabilities = dict(
        zip(in_top_p, softmax([scaled[token] for token in in_top_p]), strict=True)
    )
    return in_top_k, in_top_p, [kept_probabilities.get(token, 0.0) for token in range(len(logits))]


# Few distinct values, so that ties are common, beside any others.
logit = st.sampled_from([-3.0, 0.0, 0.5, 2.0]) | st.floats(-30, 30, width=32)


@many
@given(
    st.lists(logit, min_size=1, max_size=12),
    st.sampled_from([0.0, 0.01, 0.5, 1.0, 2.0]),
    st.none() | st.integers(1, 13),
    st.none() | st.sampled_from([1e-9, 0.25, 0.5, 0.9, 1 - 1e-9, 1.0]) | st.floats(0.001, 1),
)
def test_the_ledger_is_what_plain_python_computes(
    logits: list[float], temperature: float, top_k: int | None, top_p: float | None
) -> None:
    in_top_k, in_top_p, after = plain(logits, temperature, top_k, top_p)
    sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p)
    stages = ledger(torch.tensor(logits), sampling)
    assert after[choose_tokens(torch.tensor([logits]), sampling, 0)] > 0
    assert set(stages.in_top_k.nonzero().flatten().tolist()) == set(in_top_k)
    assert set(stages.in_top_p.nonzero().flatten().tolist()) == set(in_top_p)
    assert stages.logits.tolist() == logits
    assert stages.before.tolist() == pytest.approx(softmax(logits), rel=1e-9)
    assert stages.after.tolist() == pytest.approx(after, rel=1e-9)
    assert all(stage.dtype in (torch.float64, torch.bool) for stage in vars(stages).values())


@pytest.mark.parametrize("vocab", [65, 50_257])
@pytest.mark.parametrize("temperature", [0.0, 0.01, 0.5, 1.0, 2.0])
@pytest.mark.parametrize(("top_k", "top_p"), [(None, None), (1, None), (40, 0.5), (10**6, 0.9)])
def test_every_stage_is_finite_and_sums_to_one(
    vocab: int, temperature: float, top_k: int | None, top_p: float | None
) -> None:
    rows = 3 if vocab == 65 else 1
    logits = 20 * torch.randn(rows, vocab, generator=torch.Generator().manual_seed(vocab))
    sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p)
    stages = ledger(logits, sampling)
    for probabilities in (stages.before, stages.after):
        assert probabilities.isfinite().all()
        assert probabilities.sum(-1).tolist() == pytest.approx([1.0] * rows, abs=1e-12)
    assert (stages.scaled <= 0).all()
    assert stages.in_top_k.sum(-1).tolist() == [min(top_k or vocab, vocab)] * rows
    assert (stages.in_top_p <= stages.in_top_k).all()
    assert ((stages.after > 0) <= stages.in_top_p).all()
    for row in range(rows):
        _, kept, after = plain(logits[row].tolist(), temperature, top_k, top_p)
        assert set(stages.in_top_p[row].nonzero().flatten().tolist()) == set(kept)
        np.testing.assert_allclose(stages.after[row].numpy(), after, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize(
    ("top_p", "n_kept"),
    [(0.25, 1), (0.26, 2), (0.5, 2), (0.75, 3), (0.750001, 4), (1.0, 4), (None, 4)],
)
def test_top_p_keeps_the_fewest_tokens_that_reach_it(top_p: float | None, n_kept: int) -> None:
    stages = ledger(torch.zeros(4), Sampling(top_p=top_p))
    assert stages.in_top_p.tolist() == [token < n_kept for token in range(4)]


def test_top_p_counts_within_what_top_k_left() -> None:
    # Half and half once the third is gone: 0.5 is reached by the first alone, where of all three it
    # would take two.
    stages = ledger(torch.zeros(3), Sampling(top_k=2, top_p=0.5))
    assert stages.in_top_p.tolist() == [True, False, False]


def test_nothing_is_cut_where_nothing_is_to_be_cut() -> None:
    # Many equal probabilities: their rounded sum falls short of 1 before the last.
    for vocab in (3, 10, 49, 65, 1_000):
        assert ledger(torch.zeros(vocab), Sampling(top_p=1.0)).in_top_p.all()
        assert ledger(torch.zeros(vocab), Sampling(top_k=vocab + 1)).in_top_k.all()


@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.0])
@pytest.mark.parametrize(("top_k", "top_p"), [(None, None), (3, None), (100, 0.6)])
def test_tokens_that_are_never_drawn_leave_the_draw_as_if_they_were_not_there(
    temperature: float, top_k: int | None, top_p: float | None
) -> None:
    sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p, seed=3)
    logits = torch.randn(50, 65, generator=torch.Generator().manual_seed(0))
    logits[:, 60:] += 5  # the likeliest of all
    never = range(60, 65)
    stages = ledger(logits, sampling, never)
    alone = ledger(logits[:, :60], sampling)
    assert torch.equal(stages.before, logits.double().softmax(-1)), (
        "the model's own probabilities stay"
    )
    torch.testing.assert_close(stages.after[:, :60], alone.after, rtol=1e-12, atol=0)
    assert not (stages.in_top_k | (stages.after > 0))[:, 60:].any()
    assert torch.equal(stages.in_top_p[:, :60], alone.in_top_p)
    assert torch.equal(
        choose_tokens(logits, sampling, 7, never), choose_tokens(logits[:, :60], sampling, 7)
    )


def test_a_number_draws_the_token_whose_interval_it_falls_into() -> None:
    probabilities = torch.tensor([[0.0, 0.5, 0.0, 0.25, 0.25, 0.0]], dtype=torch.float64)
    just_below = np.nextafter
    cases = {
        0.0: 1,
        just_below(0.5, 0): 1,
        0.5: 3,
        just_below(0.75, 0): 3,
        0.75: 4,
        just_below(1.0, 0): 4,
    }
    for number, token in cases.items():
        assert draw(probabilities, torch.tensor([number], dtype=torch.float64)).tolist() == [token]


def test_rounding_never_draws_beyond_the_vocabulary() -> None:
    # The sum of these falls short of 1.
    probabilities = torch.full((1, 10), 0.1, dtype=torch.float64)
    assert probabilities.cumsum(-1)[0, -1] < 1
    almost_one = torch.tensor([np.nextafter(1.0, 0)], dtype=torch.float64)
    assert draw(probabilities, almost_one).tolist() == [9]


@pytest.mark.parametrize(
    "sampling",
    [Sampling(seed=3), Sampling(temperature=0.7, top_k=4, seed=3), Sampling(top_p=0.8, seed=3)],
)
def test_ten_thousand_draws_have_the_frequencies_of_the_ledger(sampling: Sampling) -> None:
    logits = torch.tensor([[2.0, 1.0, 0.0, 0.5, -1.0, 1.5]])
    draws = [choose_tokens(logits, sampling, position).item() for position in range(10_000)]
    observed = np.bincount(draws, minlength=6)
    expected = 10_000 * ledger(logits, sampling).after[0].numpy()
    assert (observed[expected == 0] == 0).all()
    assert stats.chisquare(observed[expected > 0], expected[expected > 0]).pvalue > 1e-3


def test_samples_side_by_side_are_drawn_apart() -> None:
    logits = torch.zeros(5_000, 4)
    observed = np.bincount(choose_tokens(logits, Sampling(), 0).numpy(), minlength=4)
    assert stats.chisquare(observed).pvalue > 1e-3


def test_seed_and_position_and_sample_decide_a_number_and_nothing_else_does() -> None:
    assert torch.equal(uniform(5, 7, 3), uniform(5, 7, 3))
    assert torch.equal(uniform(5, 7, 3)[:2], uniform(5, 7, 2))
    torch.manual_seed(1)
    assert torch.equal(uniform(5, 7, 1), uniform(5, 7, 3)[:1])
    seeds = [0, 1, -1, 2**32, 2**63, 2**64, 10**30]
    numbers = [
        number
        for seed in seeds
        for position in range(50)
        for number in uniform(seed, position, 4).tolist()
    ]
    assert len(set(numbers)) == len(seeds) * 50 * 4


def test_the_numbers_are_uniform_and_neighbours_are_unrelated() -> None:
    grid = np.array(
        [[uniform(seed, position).item() for position in range(150)] for seed in range(100)]
    )
    assert grid.min() >= 0
    assert grid.max() < 1
    assert stats.kstest(grid.ravel(), "uniform").pvalue > 1e-3
    flat = grid.ravel()
    pairs = [(grid[:, :-1], grid[:, 1:]), (grid[:-1], grid[1:]), (flat[:-1], flat[1:])]
    for one, other in pairs:
        # Four standard errors of the correlation of unrelated numbers.
        assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 4 / math.sqrt(one.size)
    assert all(a != b for a, b in pairwise(flat))
