"""The next token's probabilities and their order, against torch, loops and sorts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from gptviz.generate.sampling import Sampling
from gptviz.interp.reading import next_token
from gptviz.interp.reading.next_token import (
    guesses,
    logits_after,
    logits_at,
    predict,
    token_probabilities,
)
from tests.tiny import CONTEXT, VOCAB, scrambled, some_ids, tiny


def some_logits(size: int = VOCAB, seed: int = 0, spread: float = 3.0) -> torch.Tensor:
    return spread * torch.randn(size, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(("top_k", "top_p"), [(4, None), (None, 0.7), (5, 0.6), (VOCAB + 9, None)])
def test_cuts_are_those_of_a_loop_over_the_sorted_tokens(
    top_k: int | None, top_p: float | None
) -> None:
    logits = some_logits()
    temperature = 1.5
    prediction = predict(logits, Sampling(temperature=temperature, top_k=top_k, top_p=top_p))

    weights = {i: math.exp(z / temperature) for i, z in enumerate(logits.tolist())}
    by_rank = sorted(weights, key=lambda i: (-weights[i], i))
    expected = dict.fromkeys(by_rank[top_k:], "top-k") if top_k else {}
    left = [i for i in by_rank if i not in expected]
    reached = 0.0
    total = sum(weights[i] for i in left)
    for i in left:
        if top_p is not None and reached >= top_p:
            expected[i] = "top-p"
        reached += weights[i] / total
    kept = sum(weights[i] for i in by_rank if i not in expected)

    np.testing.assert_allclose(prediction.before, torch.softmax(logits.double(), -1), atol=1e-15)
    assert prediction.cut.tolist() == [expected.get(i, "") for i in range(VOCAB)]
    after = [0.0 if i in expected else weights[i] / kept for i in range(VOCAB)]
    np.testing.assert_allclose(prediction.after, after, rtol=1e-6)


@pytest.mark.parametrize("size", [7, 10, 14, 49, 65])
def test_a_sum_that_misses_top_p_by_rounding_alone_has_reached_it(size: int) -> None:
    for kept in range(1, size):
        cut = predict(torch.zeros(size), Sampling(top_p=kept / size)).cut
        assert cut.tolist() == [""] * kept + ["top-p"] * (size - kept)


def test_temperature_zero_leaves_the_likeliest_token_alone() -> None:
    logits = some_logits()
    prediction = predict(logits, Sampling(temperature=0))
    likeliest = int(logits.argmax())
    assert prediction.after[likeliest] == 1.0
    assert prediction.after.sum() == 1.0
    assert [i for i, reason in enumerate(prediction.cut) if not reason] == [likeliest]
    assert set(prediction.cut) == {"", "temperature 0"}


def test_the_order_is_that_of_a_sort_and_ties_go_to_the_smaller_id() -> None:
    logits = some_logits()
    logits[7] = logits[2]
    by_rank = sorted(range(VOCAB), key=lambda i: (-logits[i].item(), i))
    assert predict(logits, Sampling()).order().tolist() == by_rank


def test_logits_are_those_of_the_whole_pass_at_the_positions_asked_for() -> None:
    model = scrambled(tiny())
    ids = some_ids(batch=1)
    whole = model(ids)[0].detach().numpy()
    text = ids[0].tolist()
    np.testing.assert_allclose(logits_after(model, text, slice(None)), whole, atol=1e-6)
    np.testing.assert_allclose(logits_after(model, text, slice(3, 5)), whole[3:5], atol=1e-6)


def test_only_the_positions_asked_for_are_unembedded() -> None:
    model = scrambled(tiny())
    seen = []
    model.head.unembed.register_forward_hook(
        lambda module, inputs, output: seen.append(tuple(output.shape))
    )
    logits_after(model, some_ids(batch=1)[0].tolist(), slice(3, 4))
    assert seen == [(1, 1, VOCAB)]


def test_how_a_text_was_found_is_the_probability_of_each_token_given_those_before() -> None:
    model = scrambled(tiny())
    text = some_ids(batch=1)[0].tolist()
    seen = token_probabilities(logits_after(model, text, slice(None)), text, n=3)
    assert math.isnan(seen.probability[0])
    for place in range(1, CONTEXT):
        alone = torch.softmax(model(torch.tensor([text[:place]]))[0, -1].double(), -1)
        assert seen.probability[place] == pytest.approx(alone[text[place]].item(), rel=1e-5)
        likely = sorted(range(VOCAB), key=lambda i: -alone[i].item())[:3]
        assert seen.likely[place].tolist() == likely
        np.testing.assert_allclose(
            seen.likely_probability[place], alone[likely].detach(), rtol=1e-5
        )


def test_a_text_of_one_token_was_found_by_nobody() -> None:
    seen = token_probabilities(np.zeros((1, VOCAB), np.float32), [3], n=3)
    assert np.isnan(seen.probability).all()
    assert seen.likely.shape == seen.likely_probability.shape == (1, 3)


def test_the_logits_beside_a_source_are_those_of_the_model_that_reads_both() -> None:
    model = scrambled(tiny(n_encoder_layer=1))
    ids = (3, 1, 4)
    source = (1, 5, 9, 2)
    with torch.inference_mode():
        expected = model(torch.tensor([ids]), torch.tensor([source]))[0]
    np.testing.assert_allclose(
        logits_after(model, ids, slice(None), source), expected.numpy(), atol=1e-6
    )
    np.testing.assert_allclose(
        logits_after(model, ids, slice(-1, None), source), expected[-1:].numpy(), atol=1e-6
    )
    assert not np.allclose(
        logits_after(model, ids, slice(None), source[::-1]), expected.numpy(), atol=1e-3
    )


@pytest.mark.parametrize(
    "sizes", [{}, {"n_layer": 0}, {"mask": "full"}, {"final_norm": False, "residual": "post-norm"}]
)
@pytest.mark.parametrize("most", [1, 3 * VOCAB, 1_000_000])
def test_the_guesses_at_all_places_are_those_of_all_logits_however_few_are_computed_at_a_time(
    sizes: dict[str, Any], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(next_token, "MOST_LOGITS", most)
    model = scrambled(tiny(**sizes))
    text = some_ids(batch=1)[0].tolist()
    every = logits_after(model, text, slice(None))
    found = guesses(model, text, n=3)
    expected = token_probabilities(every, text, n=3)
    np.testing.assert_allclose(found.tokens.probability, expected.probability, rtol=1e-5)
    np.testing.assert_array_equal(found.tokens.likely, expected.likely)
    np.testing.assert_allclose(
        found.tokens.likely_probability, expected.likely_probability, rtol=1e-5
    )
    np.testing.assert_allclose(
        found.surest, torch.from_numpy(every).double().softmax(-1).max(-1).values, rtol=1e-5
    )
    for place in (0, 5, CONTEXT - 1):
        at = slice(place, place + 1)
        np.testing.assert_array_equal(
            logits_at(model, text, found.states, at), logits_after(model, text, at)
        )


def test_of_a_large_vocabulary_few_logits_are_in_memory_at_a_time() -> None:
    vocabulary = 49_152
    tokens = 300
    model = scrambled(
        tiny(vocab_size=vocabulary, d_model=8, n_head=2, n_layer=1, context_length=tokens)
    )
    rows = []
    model.head.unembed.register_forward_hook(
        lambda module, inputs, output: rows.append(output.shape[1])
    )
    found = guesses(model, some_ids(tokens, batch=1, vocab=vocabulary)[0].tolist())
    assert max(rows) * vocabulary <= next_token.MOST_LOGITS
    assert found.states.numel() == 8 * tokens
    assert np.isfinite(found.tokens.probability[1:]).all()
