"""The grid of heads and MLPs: its lines, what travels to the browser, and which clicks count."""

from __future__ import annotations

import math

from gptviz.components.cell_grid.units import UnitNotes, payload, rows
from gptviz.components.kit import unpack
from gptviz.interp.units.unit import heads_and_mlps
from tests.tiny import tiny

ABOUT = UnitNotes("x", "<b>a model</b>", "a prompt", "nats per token", "code")


def lines(**config: int) -> dict[str, list[str | None]]:
    return {
        row.name: [one and one.name for one in row.units]
        for row in rows(heads_and_mlps(tiny(**config)))
    }


def test_a_line_is_an_attention_with_its_heads_and_the_mlp_of_its_block() -> None:
    heads = [f"blocks.1.attention.head.{head}" for head in range(3)]
    assert lines()["block 1"] == [*heads, "blocks.1.mlp"]
    assert lines(d_mlp=0)["block 1"] == heads
    pair = lines(n_encoder_layer=1)
    assert list(pair) == ["encoder block 0", "block 0", "block 0 cross", "block 1", "block 1 cross"]
    assert pair["encoder block 0"][-1] == "encoder.blocks.0.mlp"
    assert pair["block 1 cross"] == [
        *(f"blocks.1.cross_attention.head.{head}" for head in range(3)),
        None,
    ]


def test_every_piece_travels_once_with_its_edit_and_its_change() -> None:
    units = heads_and_mlps(tiny())
    changes = {unit: i / 8 for i, unit in enumerate(units)} | {units[1]: math.nan}
    del changes[units[2]]
    header, _ = unpack(
        payload(rows(units), {units[0]: "blocks.0.attention.head.0=mean"}, changes, ABOUT)
    )
    cells = [cell for row in header["rows"] for cell in row["cells"]]
    assert [cell["name"] for cell in cells] == [unit.name for unit in units]
    assert [cell["value"] for cell in cells] == [
        0.0,
        None,
        None,
        *(i / 8 for i in range(3, len(units))),
    ]
    assert [cell["state"] for cell in cells if cell["state"]] == ["blocks.0.attention.head.0=mean"]
    assert header["heads"] == ["head 0", "head 1", "head 2", "MLP"]
    most = (len(units) - 1) / 8
    assert header["ends"] == [-most, most], "the scale ends at the largest change, up or down"
    assert unpack(payload(rows(units), {}, {units[0]: math.nan}, ABOUT))[0]["ends"] == [0, 0]
    assert header["model"] == ABOUT.model
