"""What fewer bits do to a model, held to loops over numbers and to the losses of copies."""

from __future__ import annotations

import math
from copy import deepcopy

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import gptviz
from gptviz.interp.changing import edits as unit_edits
from gptviz.interp.changing import fewer_bits
from gptviz.interp.changing.edit import Inputs
from gptviz.interp.changing.edits import edits, quantisers
from gptviz.interp.changing.fewer_bits import (
    OUTLIER,
    by_block,
    divergences,
    errors,
    most_first,
    weight,
)
from gptviz.model import Transformer, parameter_count
from gptviz.model.quantising import matrices, quantiser
from tests.tiny import TinyModel, scrambled, some_ids, tiny

UP = "blocks.1.mlp.up.weight"


def edited(model: Transformer, *texts: str) -> Transformer:
    return unit_edits.edit_model(model, edits(texts, model.config))


def test_an_edit_of_weights_puts_their_rounded_numbers_in_the_model_and_that_of_one_matrix_counts_more() -> (
    None
):
    model = scrambled(tiny())
    twin = edited(model, f"{UP}=8bit.row", "weights=2bit.row")
    for name, own in matrices(model).items():
        kept = quantiser("8bit.row" if name == UP else "2bit.row")
        assert torch.equal(matrices(twin)[name], kept.brought_back(own))
    alone = edited(model, f"{UP}=Q4_0")
    assert [name for name, own in matrices(alone).items() if own is not matrices(model)[name]] == [
        UP
    ]
    assert [
        one.text for one in edits(["positions", f"{UP}=Q4_0", "weights=4bit.g32"], model.config)
    ] == [*("weights=4bit.g32", f"{UP}=Q4_0", "positions")]


def test_other_edits_act_on_the_model_with_fewer_bits() -> None:
    model = scrambled(tiny(positions="learned"))
    ids = some_ids()
    copied = deepcopy(model)
    with torch.no_grad():
        for name, one in matrices(copied).items():
            one.copy_(quantiser("3bit.row").brought_back(matrices(model)[name]))
        reference = [Inputs(some_ids(seed=5))]
        texts = ("blocks.0.mlp=mean", "blocks.1.attention.head.1")
        found = unit_edits.edit_model(
            model, edits(("weights=3bit.row", *texts), model.config), reference
        )
        expected = unit_edits.edit_model(copied, edits(texts, model.config), reference)
        torch.testing.assert_close(found(ids), expected(ids))
        ((_, one),) = unit_edits.edited_by_each(model, edits(["weights=3bit.row"], model.config))
        torch.testing.assert_close(one(ids), copied(ids))


def test_too_little_memory_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    model = scrambled(tiny())
    monkeypatch.setattr("gptviz.interp.changing.weight_edits.room", lambda needed, device: 100)
    with pytest.raises(ValueError, match=r"100 bytes is free: .* quantise only one matrix"):
        edited(model, "weights=4bit.g32")


def test_the_error_of_a_matrix_is_that_of_a_loop_over_its_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fewer_bits, "AT_ONCE", 40)
    model = scrambled(tiny())
    with torch.no_grad():
        matrices(model)[UP][0, :3] = 9.0  # three outliers
    kept = quantisers(edits(["weights=3bit.row"], model.config), model.config)
    twin = edited(model, "weights=3bit.row")
    found = {one.name: one for one in errors(model, twin, kept)}
    assert list(found) == list(matrices(model))
    for name, one in found.items():
        before, after = (matrices(each)[name].double().flatten().tolist() for each in (model, twin))
        rms = math.sqrt(sum(w * w for w in before) / len(before))
        moved = [abs(b - a) for a, b in zip(before, after, strict=True)]
        assert one.relative == pytest.approx(
            math.sqrt(sum(m * m for m in moved)) / math.sqrt(sum(w * w for w in before))
        )
        assert one.largest == pytest.approx(max(moved))
        assert one.farthest == pytest.approx(max(map(abs, before)) / rms)
        assert one.outliers == sum(abs(w) > OUTLIER * rms for w in before) / len(before)
    assert found[UP].outliers == 3 / matrices(model)[UP].numel()
    ordered = [one.relative for one in most_first(list(found.values()))]
    assert ordered == sorted(ordered, reverse=True)
    assert all(one.relative == one.largest == 0 for one in errors(model, model))


@torch.no_grad()
def test_the_last_column_is_the_error_of_all_matrices_of_a_block_together() -> None:
    model = scrambled(tiny(n_encoder_layer=1, padding=0))
    twin = edited(model, "weights=4bit.row")
    table = by_block(errors(model, twin))
    assert table is not None
    assert table.axes[0].labels == ("0", "1", "encoder 0")
    for row, path in enumerate(("blocks.0.", "blocks.1.", "encoder.blocks.0.")):
        pairs = [
            (own, matrices(twin)[name])
            for name, own in matrices(model).items()
            if name.startswith(path)
        ]
        moved = math.sqrt(sum(float((b - a).double().square().sum()) for a, b in pairs))
        assert table.values[row, -1] == pytest.approx(
            moved / math.sqrt(sum(float(a.double().square().sum()) for a, _ in pairs))
        )
    assert np.isnan(table.values[2, table.axes[1].labels.index("cross_attention.q")])
    assert by_block(errors(scrambled(tiny(n_layer=0)), scrambled(tiny(n_layer=0)))) is None


def test_each_guess_moves_by_the_divergence_that_torch_computes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = scrambled(tiny(), std=0.6)
    ids = some_ids(batch=1)[0].tolist()
    twin = edited(model, "weights=2bit.row")
    with torch.no_grad():
        p, q = (each(torch.tensor([ids]))[0].double().log_softmax(-1) for each in (model, twin))
    expected = F.kl_div(q, p, log_target=True, reduction="none").sum(-1)
    found = divergences(model, twin, ids)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert found.max() > 1e-3
    assert not divergences(model, model, ids).any()
    monkeypatch.setattr(fewer_bits, "MOST_LOGITS", 3 * model.config.vocab_size)
    np.testing.assert_allclose(divergences(model, twin, ids), expected[-3:], atol=1e-5)


@pytest.mark.parametrize("tied", [False, True])
def test_the_weight_counts_each_number_once(tied: bool) -> None:
    model = scrambled(tiny(tied=tied))
    kept = quantisers(edits(["weights=8bit.row"], model.config), model.config)
    found = weight(model.config, kept)
    numbers = sum(own.numel() for own in matrices(model).values())
    rest = parameter_count(model.config) - numbers
    scales = sum(len(own) for own in matrices(model).values())
    assert found.float32 == 4 * parameter_count(model.config)
    assert found.kept == 4 * rest + numbers + 2 * scales
    assert found.bits == pytest.approx(8 + 16 * scales / numbers)


def test_the_library_says_what_a_text_loses(tiny_model: TinyModel) -> None:
    tiny_model("small")
    lm = gptviz.load("small")
    found = lm.fewer_bits("2bit.row", "the fox", matrix=UP)
    twin = lm.edited(f"{UP}=2bit.row")
    assert found.edits == twin.edits == (f"{UP}=2bit.row",)
    assert [one.name for one in found.matrices] == [UP]
    assert found.text == "the prompt"
    ids = lm.encode("the fox")
    for own, value in zip((lm, twin), found.loss or (), strict=True):
        with torch.no_grad():
            expected = F.cross_entropy(own.model(ids[None])[0, :-1], ids[1:])
        assert value == pytest.approx(float(expected), abs=1e-5)
    assert found.divergence is not None
    assert len(found.divergence) == len(ids)
    content = found.to_dict()
    assert (
        content["loss"] == {"before": found.loss[0], "after": found.loss[1]}
        if found.loss
        else False
    )
    assert content["matrices"][0]["bytes"] == quantiser("2bit.row").size(
        *matrices(lm.model)[UP].shape
    )
