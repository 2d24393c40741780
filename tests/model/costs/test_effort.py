"""The effort of passes, against a count by hand."""

from __future__ import annotations

import pytest

from gptviz.model import build
from gptviz.model.costs.effort import effort
from tests.tiny import tiny


@pytest.mark.parametrize("tied", [False, True])
def test_each_pass_multiplies_each_token_by_each_parameter_once(tied: bool) -> None:
    model = build(tiny(tied=tied))
    tokens = 5
    passes = 3
    weights = {
        parameter.data_ptr(): parameter
        for _, parameter in model.named_parameters(remove_duplicate=False)
    }
    count = 0
    for weight in weights.values():
        for _number in weight.detach().flatten().tolist():
            count += 1
    assert effort(model, tokens, passes) == passes * tokens * count
    assert effort(model, tokens) == tokens * count
