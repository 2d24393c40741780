"""The ways of telling order, against closed forms."""

from __future__ import annotations

import math

import pytest
import torch

from gptviz.model import IDENTITY, Record, sinusoid
from gptviz.model.parts.positions import (
    Alibi,
    Learned,
    Relative,
    Rotary,
    SinesFirst,
    Sinusoidal,
    alibi_slopes,
)
from tests.tiny import scrambled, some_ids, tiny


@pytest.mark.parametrize(
    ("length", "d_model", "base"), [(50, 32, 10_000.0), (7, 6, 100.0), (3, 5, 10_000.0)]
)
def test_the_sinusoidal_table_is_the_papers_formula(length: int, d_model: int, base: float) -> None:
    table = sinusoid(length, d_model, base)
    assert table.shape == (length, d_model)
    for p in range(length):
        for column in range(d_model):
            angle = p / base ** (2 * (column // 2) / d_model)
            expected = math.cos(angle) if column % 2 else math.sin(angle)
            assert table[p, column].item() == pytest.approx(expected, abs=1e-7)


def test_sines_may_stand_before_the_cosines() -> None:
    table = SinesFirst(tiny()).table
    for p in range(8):
        for i in range(6):
            angle = p / 10_000 ** (2 * i / 12)
            assert table[p, i].item() == pytest.approx(math.sin(angle), abs=1e-7)
            assert table[p, 6 + i].item() == pytest.approx(math.cos(angle), abs=1e-7)


def test_far_positions_keep_their_precision() -> None:
    # In float32 the angle itself would be off by 0.004 here.
    assert sinusoid(100_001, 2)[100_000, 0].item() == pytest.approx(math.sin(100_000), abs=1e-7)


@pytest.mark.parametrize("kind", [Learned, Sinusoidal])
def test_a_table_of_positions_is_added_at_the_positions_asked_for(
    kind: type[Learned] | type[Sinusoidal],
) -> None:
    part = kind(tiny())
    for parameter in part.parameters():
        torch.nn.init.normal_(parameter)
    table = part.table.weight if isinstance(part, Learned) else sinusoid(8, 12)
    x = torch.randn(2, 3, 12)
    record = Record()
    assert torch.equal(part.embed(x, slice(4, 7), record), x + table[4:7])
    assert torch.equal(record.values["positions"], table[4:7])


def test_the_alibi_slopes_of_a_power_of_two_are_a_geometric_sequence() -> None:
    assert alibi_slopes(8).tolist() == [1 / 2**h for h in range(1, 9)]
    assert alibi_slopes(16).tolist() == pytest.approx([2 ** (-h / 2) for h in range(1, 17)])
    assert alibi_slopes(1).tolist() == [2**-8]


def test_the_alibi_slopes_of_other_numbers_of_heads_follow_the_paper() -> None:
    # Its rule: the slopes of 8 heads, then every other one of 16.
    assert alibi_slopes(12).tolist() == pytest.approx(
        [2.0**-h for h in range(1, 9)] + [2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5]
    )
    assert alibi_slopes(3).tolist() == pytest.approx([2**-4, 2**-8, 2**-2])


@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "rotary", "relative", "alibi"])
def test_order_matters_with_positions_and_without_them_only_through_the_mask(
    positions: str,
) -> None:
    ids = torch.tensor([[1, 2, 3, 4], [3, 1, 2, 4]])

    def last(**changes: str) -> tuple[torch.Tensor, torch.Tensor]:
        logits = scrambled(tiny(n_layer=1, **changes)).double()(ids)[:, -1]
        return logits[0], logits[1]

    one, other = last(positions=positions)
    assert not torch.isclose(one, other).all()
    one, other = last(positions="none")
    torch.testing.assert_close(one, other)


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary", "alibi"])
def test_fixed_positions_hold_no_weights_and_move_with_the_model(positions: str) -> None:
    model = scrambled(tiny(positions=positions))
    assert [name for name in model.state_dict() if "positions" in name] == []
    assert {buffer.device.type for buffer in model.to("meta").buffers()} == {"meta"}


def test_what_acts_elsewhere_leaves_the_embeddings_alone() -> None:
    x = torch.randn(1, 4, 12)
    for kind in (Rotary, Relative, Alibi):
        assert kind(tiny()).embed(x, slice(0, 4), IDENTITY) is x
    record = Record(["positions"])
    scrambled(tiny(positions="rotary"))(some_ids(), tap=record)
    assert record.values == {}
