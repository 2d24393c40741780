"""The loss without each piece is that of a loop over models edited one at a time, prediction by
prediction.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from gptviz.interp.changing import ablation
from gptviz.interp.changing.ablation import Rows, loss, loss_with_each
from gptviz.interp.changing.before_after import guess, guess_and_loss
from gptviz.interp.changing.edit import MEAN, ZERO, Inputs
from gptviz.interp.changing.edits import edit_model, edit_unit
from gptviz.interp.units.unit import heads_and_mlps
from tests.tiny import scrambled, some_ids, tiny

KINDS: dict[str, dict[str, Any]] = {
    "decoder": {},
    "classifier": {"head": "mean", "n_label": 3, "mask": "full", "padding": 0},
    "encoder-decoder": {"n_encoder_layer": 2, "padding": 0},
}


def texts(kind: str) -> list[Rows]:
    ids = some_ids(7, 3).clamp(min=1)
    source = some_ids(5, 3, seed=2).clamp(min=1) if kind == "encoder-decoder" else None
    targets = torch.tensor([2, 0, 1]) if kind == "classifier" else some_ids(7, 3, seed=4)
    if kind != "classifier":
        targets[0, 2] = targets[2] = -100
    return [
        Rows(Inputs(ids, source), targets),
        Rows(Inputs(ids[:1], None if source is None else source[:1]), targets[:1]),
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("to", [ZERO, MEAN])
def test_the_loss_without_each_piece_is_that_of_a_loop(
    kind: str, to: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ablation, "MOST_LOGITS", 100)  # some rows at a time
    model = scrambled(tiny(**KINDS[kind]))
    rows = texts(kind)
    edits = [edit_unit(unit, to) for unit in heads_and_mlps(model.config)]
    reference = [rows[0].reading]
    found = dict(loss_with_each(model, rows, edits, reference))
    assert list(found) == edits
    for one in edits:
        twin = edit_model(model, (one,), reference)
        each = []
        for (ids, source), targets in rows:
            for b in range(len(ids)):
                logits = twin(ids[b : b + 1], None if source is None else source[b : b + 1])[
                    0
                ].detach()
                of_row = (
                    [(logits, targets[b])]
                    if kind == "classifier"
                    else list(zip(logits, targets[b], strict=True))
                )
                each += [
                    -float(scores.log_softmax(-1)[target])
                    for scores, target in of_row
                    if target != -100
                ]
        assert found[one] == pytest.approx(sum(each) / len(each), rel=1e-4)
    assert len({round(value, 4) for value in found.values()}) > len(edits) // 2


def test_a_text_without_predictions_has_no_loss() -> None:
    rows = Rows(Inputs(some_ids(3, 1)), torch.full((1, 3), -100))
    assert torch.isnan(torch.tensor(loss(scrambled(tiny()), [rows])))


@pytest.mark.parametrize("most", [40, ablation.MOST_LOGITS])
def test_a_pass_for_both_gives_the_guess_and_the_loss(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ablation, "MOST_LOGITS", most)  # logits of some places at a time, or of all
    model = scrambled(tiny())
    rows = texts("decoder")[1]
    found, nats = guess_and_loss(model, rows.reading, rows.targets)
    assert found == pytest.approx(guess(model, rows.reading), abs=1e-6)
    assert nats == pytest.approx(loss(model, [rows]), rel=1e-5)
