"""The loss on a text, against a loop over its tokens."""

from __future__ import annotations

import math

import pytest
import torch

from gptviz.learn import evaluation
from gptviz.learn.evaluation import evaluate
from gptviz.model import Transformer
from tests.tiny import CONTEXT, VOCAB, scrambled, some_ids, tiny


def by_loop(model: Transformer, ids: list[int]) -> float:
    """Minus the logarithm of the probability of every token but the first, by windows that begin anew every context."""
    losses = []
    for start in range(0, len(ids) - 1, CONTEXT):
        for end in range(start + 1, min(start + CONTEXT, len(ids) - 1) + 1):
            with torch.inference_mode():
                logits = model(torch.tensor([ids[start:end]]))[0, -1].double().tolist()
            total = math.fsum(math.exp(x) for x in logits)
            losses.append(math.log(total) - logits[ids[end]])
    assert len(losses) == len(ids) - 1
    return math.fsum(losses) / len(losses)


@pytest.mark.parametrize("length", [2, CONTEXT, CONTEXT + 1, CONTEXT + 2, 3 * CONTEXT, 3 * CONTEXT + 1, 5 * CONTEXT + 4])
@pytest.mark.parametrize("batch_tokens", [1, 2 * CONTEXT, 10_000])
def test_the_loss_is_that_of_a_loop_over_every_token_the_last_short_window_included(length: int, batch_tokens: int) -> None:
    model, ids = scrambled(tiny()), some_ids(length)[0]
    loss, count = evaluate(model, ids, batch_tokens)
    assert count == length - 1
    assert loss == pytest.approx(by_loop(model, ids.tolist()), rel=1e-5)


def test_a_model_that_finds_all_tokens_equal_has_the_logarithm_of_the_vocabulary() -> None:
    model = scrambled(tiny(unembed_bias=True))
    torch.nn.init.zeros_(model.head.unembed.weight)
    torch.nn.init.constant_(model.head.unembed.bias, 3.0)
    assert evaluate(model, some_ids(50)[0])[0] == pytest.approx(math.log(VOCAB), rel=1e-6)


def test_dropout_is_off_and_the_model_is_left_as_it_was() -> None:
    model, ids = scrambled(tiny(dropout=0.5)), some_ids(30)[0]
    loss = evaluate(model, ids)
    for training in (True, False):
        assert evaluate(model.train(training), ids) == loss
        assert all(module.training == training for module in model.modules())


def test_a_large_vocabulary_is_taken_in_smaller_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    model, ids = scrambled(tiny()), some_ids(20 * CONTEXT)[0]
    loss = evaluate(model, ids)[0]
    rows = []
    model.register_forward_pre_hook(lambda _, inputs: rows.append(len(inputs[0])))
    monkeypatch.setattr(evaluation, "MOST_LOGITS", 3 * CONTEXT * VOCAB)
    assert evaluate(model, ids)[0] == pytest.approx(loss, rel=1e-6)
    assert max(rows) == 3


@pytest.mark.parametrize("length", [0, 1])
def test_a_text_with_nothing_to_predict_is_said(length: int) -> None:
    with pytest.raises(ValueError, match=f"at least 2 tokens, the text has {length}"):
        evaluate(scrambled(tiny()), some_ids(length)[0])
