"""Rows that a model writes side by side: against rows that are written one by one."""

from __future__ import annotations

import pytest
import torch

from gptviz.generate.rows import write_rows
from gptviz.generate.sampling import draw, uniform
from gptviz.model import Transformer
from tests.tiny import CONTEXT, scrambled, tiny


def one_by_one(model: Transformer, starts: list[int], length: int, seed: int) -> list[list[int]]:
    """Each row from whole passes over it, with the random numbers of its own place."""
    rows = []
    for row, start in enumerate(starts):
        ids = [start]
        for position in range(1, length):
            logits = model(torch.tensor([ids]))[0, -1].double()
            number = uniform(seed, position, row + 1)[row:]
            ids.append(int(draw(logits.softmax(-1)[None], number)))
        rows.append(ids)
    return rows


@pytest.mark.parametrize("mask", ["causal", "full"])
@torch.no_grad()
def test_rows_are_those_that_are_written_one_by_one(mask: str) -> None:
    model = scrambled(tiny(mask=mask))
    written = write_rows(model, torch.tensor([3, 3, 5]), CONTEXT, seed=4)
    assert written.tolist() == one_by_one(model, [3, 3, 5], CONTEXT, seed=4)
    # rows that begin alike go on in their own way
    assert written[0].tolist() != written[1].tolist()


def test_what_is_never_drawn_is_not_written() -> None:
    model = scrambled(tiny())
    never = (0, 1, 2, 3, 4, 5, 6)
    written = write_rows(model, torch.tensor([3] * 20), CONTEXT, never=never)
    assert not set(written[:, 1:].flatten().tolist()) & set(never)
