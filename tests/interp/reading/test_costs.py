"""What a model costs, gathered: what the library, the command line and the page say is what the
formulas of the model give.
"""

from __future__ import annotations

import json

import pytest

import gptviz
from gptviz.interp.reading import costs as gathered
from gptviz.machine.memory import FLOAT32
from gptviz.model import parameter_count, preset
from tests.command_line import Capture, answered
from tests.tiny import CONTEXT, tiny

DECODER = tiny(n_kv_head=1)
CLASSIFIER = tiny(mask="full", padding=0, head="mean", n_label=3)
PAIR = tiny(n_encoder_layer=2, padding=0)


@pytest.mark.parametrize("config", [DECODER, CLASSIFIER, PAIR], ids=lambda config: str(config.kind))
def test_over_many_lengths_every_column_is_what_that_length_costs(
    config: gptviz.model.Config,
) -> None:
    lengths = (1, 2, 5, CONTEXT)
    forward, training = (
        gathered.operations_over(config, 3, lengths, of) for of in ("forward", "training")
    )  # type: ignore[arg-type]
    memory = gathered.memory_over(config, 3, lengths, "adamw")
    for column, length in enumerate(lengths):
        found = gathered.costs(config, 3, length)
        assert forward.values[:, column].sum() == found.forward
        assert training.values[:, column].sum() == found.training
        held = dict(zip(memory.axes[0].labels, memory.values[:, column].tolist(), strict=True))
        assert held.pop(gathered.CACHE, None) == found.cache
        assert held == {
            "weights": found.weights["float32"],
            "gradients": found.gradients,
            "optimiser": found.optimiser["adamw"],
            "activations": found.activations,
        }


def test_tensors_that_are_alike_in_all_blocks_are_counted_together_and_sum_to_the_model() -> None:
    table = gathered.by_tensor(config := preset("gpt2"))
    counts = dict(zip(table.axes[0].labels, table.values.tolist(), strict=True))
    assert sum(counts.values()) == parameter_count(config)
    assert counts["blocks.*.mlp.up.weight"] == 12 * 768 * 3_072
    assert counts["head.unembed.weight"] == 0, "tied: counted where tokens are embedded"


def test_only_a_model_that_writes_token_by_token_keeps_keys_and_values() -> None:
    assert gathered.costs(DECODER, 2, 5).cache == FLOAT32 * 2 * 2 * 2 * 5 * 1 * 4
    assert gathered.costs(CLASSIFIER).cache is None
    assert gathered.costs(tiny(mask="full")).cache is None


def test_the_share_between_tokens_is_that_of_the_operations_that_grow_with_the_square_of_the_length() -> (
    None
):
    one = gathered.costs(DECODER, 1, 4).forward
    two = gathered.costs(DECODER, 1, 8).forward
    square = (two - 2 * one) / 2  # a·T + b·T² at 4 and at 8 tokens
    assert gathered.share_between_tokens(DECODER, 4) == pytest.approx(square / one)


def test_the_library_says_what_the_command_line_says(capsys: Capture) -> None:

    said = answered(capsys, "costs", "reversal", "--batch", "3", "--context", "7")
    lm = gptviz.load("reversal", "cpu")
    assert said == json.loads(json.dumps(lm.costs(3, 7).to_dict()))
    assert said["parameters"] == sum(parameter.numel() for parameter in lm.model.parameters())
