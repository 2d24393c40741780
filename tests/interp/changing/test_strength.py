"""The loss along the strength of an adapter is that of the model with each strength."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from gptviz.interp.changing.ablation import Rows
from gptviz.interp.changing.edits import Inputs
from gptviz.interp.changing.strength import STRENGTHS, losses_along
from gptviz.model.lora import Factors, MergedTransformer, matrices
from tests.tiny import scrambled, some_ids, tiny


def test_each_loss_is_that_of_the_model_with_this_strength() -> None:
    generator = torch.Generator().manual_seed(0)
    adapter = {
        name: Factors(torch.randn(2, reads, generator=generator), torch.randn(out, 2, generator=generator))
        for name, (out, reads) in matrices(tiny()).items()
    }
    model = MergedTransformer(scrambled(tiny()), adapter)
    texts = {name: some_ids(seed=seed) for seed, name in enumerate(("one", "other"))}
    rows = {name: [Rows(Inputs(ids[:, :-1]), ids[:, 1:])] for name, ids in texts.items()}
    found = losses_along(model, rows, (0.0, 0.5, 2.0))
    assert [axis.labels for axis in found.axes] == [("one", "other"), ("0", "0.5", "2")]
    for row, ids in enumerate(texts.values()):
        for column, strength in enumerate((0.0, 0.5, 2.0)):
            with torch.no_grad():
                logits = model.at(strength)(ids[:, :-1])
            assert found.values[row, column] == pytest.approx(F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten()).item())
    assert (STRENGTHS[0], STRENGTHS[8], STRENGTHS[-1]) == (0.0, 1.0, 2.0)
