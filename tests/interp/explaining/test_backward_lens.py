"""The backward lens: what a step writes into an MLP, computed by hand in float64."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import gptviz
from gptviz.interp.explaining.backward_lens import backward_lens, blocks_with_mlp, largest
from gptviz.interp.trace import run
from gptviz.model import Config, Transformer
from gptviz.train.recipe import Recipe
from tests.examples import tried
from tests.tiny import configs, scrambled, some_ids, tiny

IDS = some_ids(6, 1)[0].tolist()
# W becomes W − 0.5 · gradient, and nothing else.
PLAIN_STEP = Recipe(
    steps=1, optimiser="sgd", learning_rate=0.5, beta1=0.0, clip=0.0, weight_decay=0.0
)


def gelu(x: float) -> float:
    return x * (1 + math.erf(x / math.sqrt(2))) / 2


def mean_loss(model: Transformer, block: int, added: Tensor) -> float:
    """The loss of the text if `added` [T, d_model] is added to what an MLP writes."""
    edits = {f"blocks.{block}.mlp.out": lambda value: value + added}
    logits = run(model, torch.tensor([IDS[:-1]]), ("logits",), edits=edits)["logits"][0]
    return float(F.cross_entropy(logits, torch.tensor(IDS[1:])))


def in_words(model: Transformer, vector: list[float]) -> list[float]:
    """A vector of the stream as the unembedding reads it, behind the linear part of a layer norm,
    by loops.
    """
    mean = sum(vector) / len(vector)
    gain = model.head.final_norm.weight.tolist()  # type: ignore[union-attr]
    read = [g * (x - mean) for g, x in zip(gain, vector, strict=True)]
    logits = [
        sum(w * x for w, x in zip(row, read, strict=True))
        for row in model.head.unembed.weight.tolist()  # type: ignore[union-attr]
    ]
    centre = sum(logits) / len(logits)
    return [logit - centre for logit in logits]


def test_what_a_step_writes_is_that_of_a_step_taken_by_hand() -> None:
    block = 1
    model = scrambled(tiny(activation="gelu", residual="pre-norm", norm="layernorm"))
    found = backward_lens(model, IDS, block, PLAIN_STEP)
    exact = copy.deepcopy(model).double()
    read = len(IDS) - 1

    # δ: how the loss changes with each number that the MLP writes, by finite differences
    h = 1e-5
    delta = torch.zeros(read, 12, dtype=torch.float64)
    for t in range(read):
        for d in range(12):
            added = torch.zeros(read, 12, dtype=torch.float64)
            added[t, d] = h
            delta[t, d] = (mean_loss(exact, block, added) - mean_loss(exact, block, -added)) / (
                2 * h
            )
    asked = [in_words(exact, (-delta[t]).tolist()) for t in range(read)]
    np.testing.assert_allclose(found.asked, asked, atol=1e-8)

    # what the MLP reads, and its neurons: up · x + b, then the activation
    trace = run(exact, torch.tensor([IDS[:-1]]))
    mlp = exact.blocks[block].mlp
    stream = trace[f"blocks.{block}.resid_mid"][0].clone()
    norm = exact.blocks[block].mlp_residual.norm  # type: ignore[union-attr]
    x = F.layer_norm(stream, (12,), norm.weight, norm.bias, 1e-5).detach()  # type: ignore[union-attr]
    up, up_bias = mlp.up.weight.detach(), mlp.up.bias.detach()  # type: ignore[union-attr]
    down, down_bias = mlp.down.weight.detach(), mlp.down.bias.detach()  # type: ignore[union-attr]

    def forward(up: Tensor, up_bias: Tensor, down: Tensor, down_bias: Tensor) -> Tensor:
        before = x @ up.T + up_bias
        neurons = torch.tensor(
            [[gelu(value) for value in row] for row in before.tolist()], dtype=torch.float64
        )
        return neurons @ down.T + down_bias

    before = x @ up.T + up_bias
    neurons = torch.tensor(
        [[gelu(value) for value in row] for row in before.tolist()], dtype=torch.float64
    )
    slope = torch.tensor(  # of the gelu: Φ(x) + x φ(x)
        [
            [
                (1 + math.erf(v / math.sqrt(2))) / 2
                + v * math.exp(-v * v / 2) / math.sqrt(2 * math.pi)
                for v in row
            ]
            for row in before.tolist()
        ],
        dtype=torch.float64,
    )
    back = (delta @ down) * slope
    stepped = forward(
        up - 0.5 * back.T @ x,
        up_bias - 0.5 * back.sum(0),
        down - 0.5 * delta.T @ neurons,
        down_bias - 0.5 * delta.sum(0),
    )
    first = [in_words(exact, row) for row in forward(up, up_bias, down, down_bias).tolist()]
    np.testing.assert_allclose(found.written_before, first, atol=1e-9)
    # the trainer's step is in float32
    second = [in_words(exact, row) for row in stepped.tolist()]
    np.testing.assert_allclose(found.written_after, second, atol=1e-5)
    assert abs(found.change).max() > 1e-2

    # and the probability of each next token, with nothing else changed
    with torch.no_grad():
        probability = exact(torch.tensor([IDS[:-1]]))[0].softmax(-1)
    np.testing.assert_allclose(
        found.probability_before, [probability[t, IDS[t + 1]] for t in range(read)], atol=1e-9
    )
    edits = {f"blocks.{block}.mlp.out": lambda value: stepped[None]}
    changed = run(exact, torch.tensor([IDS[:-1]]), ("logits",), edits=edits)["logits"][0].softmax(
        -1
    )
    np.testing.assert_allclose(
        found.probability_after, [changed[t, IDS[t + 1]] for t in range(read)], atol=1e-5
    )


@tried(6, 40, config=configs(mask="causal"))
def test_every_decoder_with_an_mlp_is_read_and_stays_as_it_is(config: Config) -> None:
    model = scrambled(config)
    before = copy.deepcopy(model.state_dict())
    if not blocks_with_mlp(model):
        with pytest.raises(ValueError, match="have no MLP"):
            backward_lens(model, IDS)
        return
    found = backward_lens(model, IDS)
    assert found.block == config.n_layer - 1
    for reading in (found.asked, found.written_before, found.written_after):
        assert reading.shape == (len(IDS) - 1, config.vocab_size)
        np.testing.assert_allclose(reading.mean(-1), 0, atol=1e-9)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_one_sentence_teaches_the_model_of_jobs_that_a_nurse_may_be_he() -> None:
    lm = gptviz.load("jobs-90")
    found = lm.backward_lens("the nurse said that he", 0)
    he, she = lm.token("he"), lm.token("she")
    assert largest(found.asked[-1], 1)[0][0] == he, "the loss asks for it"
    assert largest(found.change[-1], 1)[0][0] == he, "the step writes it"
    assert found.change[-1, he] > found.change[-1, she]
    assert found.probability_before[-1] == pytest.approx(0.1, abs=0.01), "as often as in its data"
    assert found.probability_after[-1] > 1.1 * found.probability_before[-1]
    changed = found.changed_words(lm.tokenizer.label, 4)
    assert changed.axes[1].labels == ("the", "nurse", "said", "that")
    row = changed.axes[0].labels.index("he")
    np.testing.assert_array_equal(changed.values[row], found.change[:, he])


def test_what_has_no_such_step_is_refused() -> None:
    model = scrambled(tiny())
    for ids, block, said in (
        (IDS[:1], None, "at least two tokens"),
        (IDS, 2, "no block 2; blocks are counted from 0 to 1"),
        (IDS, -1, "no block -1"),
    ):
        with pytest.raises(ValueError, match=said):
            backward_lens(model, ids, block)
    with pytest.raises(ValueError, match="only of decoders"):
        backward_lens(scrambled(tiny(head="mean", n_label=3, mask="full")), IDS)
