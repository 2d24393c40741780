"""Attention between words and sums over words, against loops over the tokens."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gptviz.interp.reading import attention
from gptviz.interp.reading.by_word import attention_of_words, in_words, sum_by_word
from tests.tiny import scrambled, tiny

IDS = (3, 1, 4, 1, 5, 9, 2)
WORDS = (range(1), range(1, 4), range(4, 5), range(5, 7))


def test_to_a_word_is_a_sum_and_from_a_word_a_mean() -> None:
    shares = np.random.default_rng(1).random((2, len(IDS), len(IDS)), np.float32)
    found = attention_of_words(shares, WORDS)
    assert found.shape == (2, len(WORDS), len(WORDS))
    for head in range(2):
        for i, query in enumerate(WORDS):
            for j, key in enumerate(WORDS):
                sums = [sum(float(shares[head, q, k]) for k in key) for q in query]
                assert found[head, i, j] == pytest.approx(sum(sums) / len(sums), rel=1e-5)


@pytest.mark.parametrize(
    "settings", [{"mask": "causal"}, {"mask": "full"}, {"mask": "causal", "window": 2}]
)
def test_rows_of_words_sum_to_one_and_no_word_reads_a_later_one(settings: dict[str, Any]) -> None:
    reading = attention.read_attention(scrambled(tiny(**settings)), IDS)
    found = in_words(reading, WORDS)
    for block in range(len(found.patterns.blocks)):
        np.testing.assert_allclose(found.patterns.blocks[block].sum(-1), 1, atol=1e-5)
        assert found.rolled is not None
        np.testing.assert_allclose(found.rolled[block].sum(-1), 1, atol=1e-5)
        hidden = np.isnan(found.pattern(block, 0))
        assert not found.patterns.blocks[block][:, hidden].any()
        assert hidden[np.triu_indices(len(WORDS), 1)].all() == (settings["mask"] == "causal")


def test_words_add_together_what_all_tokens_add() -> None:
    values = np.random.default_rng(2).normal(size=len(IDS))
    found = sum_by_word(values, WORDS)
    assert found.tolist() == pytest.approx([sum(values[place] for place in word) for word in WORDS])
    assert found.sum() == pytest.approx(values.sum())
