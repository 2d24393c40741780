"""Shannon's guessing game, against a loop that guesses and against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from gptviz.interp.reading.guessing import bits_of_guesses, guesses_of_chance, play, play_game
from tests.tiny import CONTEXT, VOCAB, scrambled, some_ids, tiny

CHOICES = (2, 5, 65, 50_257)


@pytest.mark.parametrize("first", [1, 4, CONTEXT, CONTEXT + 3])
@pytest.mark.parametrize("mask", ["causal", "full"])
def test_a_game_is_that_of_a_loop_that_guesses_the_likeliest_token_left(
    first: int, mask: str
) -> None:
    model = scrambled(tiny(mask=mask))
    ids = some_ids(length=CONTEXT + 8, batch=1)[0].tolist()
    found = play(model, ids, first)
    read = min(CONTEXT, first)
    for number, place in enumerate(range(first, len(ids))):
        shares = (
            model(torch.tensor([ids[place - read : place]]))[0, -1].double().softmax(-1).tolist()
        )
        left = set(range(VOCAB))
        count = 1
        while (guess := max(left, key=lambda token: shares[token])) != ids[place]:
            left.remove(guess)
            count += 1
        assert found.guesses[number] == count
        assert found.surprise[number] == pytest.approx(-math.log2(shares[ids[place]]), rel=1e-5)
    assert len(found.guesses) == len(ids) - first
    assert found.bits == bits_of_guesses(found.guesses.mean(), VOCAB)


def test_who_knows_nothing_needs_the_guesses_of_chance_and_all_bits() -> None:
    found = play_game(np.zeros((4, 65), np.float32), (0, 7, 31, 64))
    assert found.guesses.tolist() == [33.0] * 4
    np.testing.assert_allclose(found.surprise, math.log2(65))
    assert found.bits == math.log2(65)


def test_who_knows_all_needs_one_guess_and_no_bits() -> None:
    tokens = (3, 0, 2)
    found = play_game(1e4 * np.eye(5, dtype=np.float32)[list(tokens)], tokens)
    assert found.guesses.tolist() == [1.0] * 3
    assert found.bits == 0
    np.testing.assert_allclose(found.surprise, 0, atol=1e-12)


def test_chance_is_the_mean_over_all_orders() -> None:
    for wrong in range(4):
        assert guesses_of_chance(5, wrong) == np.mean(
            [wrong + nth for nth in range(1, 5 - wrong + 1)]
        )


@pytest.mark.parametrize("choices", CHOICES)
def test_bits_rise_with_the_mean_from_0_to_those_of_chance_and_stay_there(choices: int) -> None:
    means = np.linspace(1, guesses_of_chance(choices), 12)
    bits = [bits_of_guesses(mean, choices) for mean in means]
    assert bits[0] == 0
    assert bits[-1] == bits_of_guesses(choices, choices) == math.log2(choices)
    assert (np.diff(bits) > 0).all()


@pytest.mark.parametrize("choices", CHOICES[:3])
def test_no_numbers_of_guesses_with_this_mean_have_a_larger_entropy(choices: int) -> None:
    draw = np.random.default_rng(0)
    for _ in range(200):
        shares = draw.dirichlet(np.full(choices, draw.choice([0.05, 0.5, 5])))
        mean = min(max(float(shares @ np.arange(1, choices + 1)), 1.0), choices)
        entropy = -sum(p * math.log2(p) for p in shares if p > 0)
        assert entropy <= bits_of_guesses(mean, choices) + 1e-9


def test_the_bits_are_those_of_a_binary_choice_and_of_a_geometric_distribution() -> None:
    # Of two choices, the mean decides the distribution.
    assert bits_of_guesses(1.25, 2) == pytest.approx(
        -0.25 * math.log2(0.25) - 0.75 * math.log2(0.75)
    )
    # Of very many, the distribution of largest entropy with the mean m is geometric: m h(1/m) with
    # the binary entropy h.
    assert bits_of_guesses(4, 50_257) == pytest.approx(
        4 * (-0.25 * math.log2(0.25) - 0.75 * math.log2(0.75))
    )
