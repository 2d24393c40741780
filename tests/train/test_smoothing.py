"""Label smoothing: what the training asks for instead of certainty."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from gptviz.data.classification import LabelledSource
from gptviz.model import Config, build
from gptviz.text import LabelledTexts
from gptviz.train.smoothing import nearby_targets
from gptviz.train.trainer import Trainer
from tests.small_runs import recipe
from tests.tiny import tiny

STARS = ("1", "2", "3", "4")
CLASSIFIER = tiny(head="mean", n_label=4, mask="full", padding=0, ordered=True)


@pytest.mark.parametrize("smoothing", [0.1, 0.37, 0.9])
def test_each_step_away_from_the_right_label_multiplies_its_share(smoothing: float) -> None:
    targets = nearby_targets(CLASSIFIER, smoothing)
    for label, row in enumerate(targets.tolist()):
        weights = [smoothing ** abs(label - other) for other in range(4)]
        assert row == pytest.approx([weight / sum(weights) for weight in weights])


def test_without_an_order_or_without_smoothing_nothing_is_nearby() -> None:
    assert nearby_targets(replace(CLASSIFIER, ordered=False), 0.3) is None
    assert nearby_targets(CLASSIFIER, 0.0) is None


@pytest.mark.parametrize("ordered", [True, False])
def test_the_loss_of_a_step_is_the_cross_entropy_with_the_smoothed_answers(ordered: bool) -> None:
    smoothing = 0.3
    texts = tuple(f"{word} film" for word in ("bad", "dull", "good", "great") for _ in range(4))
    source = LabelledSource(
        LabelledTexts("mine", texts, (0, 1, 2, 3) * 4, STARS if ordered else ("a", "b", "c", "d"))
    )
    tokenizer = source.tokenizer("words", 20)
    config: Config = source.fit_config(CLASSIFIER, tokenizer)
    assert config.ordered is ordered
    model = build(config, seed=1)
    data = source.data(tokenizer, config)
    trainer = Trainer(model, data, recipe(label_smoothing=smoothing))
    batch = data.training(8, 5)
    logits = model(*batch.inputs).detach()
    found, counted = trainer._loss(batch)
    expected = 0.0
    for row, label in zip(logits.log_softmax(-1).tolist(), batch.targets.tolist(), strict=True):
        if ordered:
            weights = [smoothing ** abs(label - other) for other in range(4)]
            asked = [weight / sum(weights) for weight in weights]
        else:
            asked = [smoothing / 4 + (1 - smoothing) * (other == label) for other in range(4)]
        expected -= sum(share * logarithm for share, logarithm in zip(asked, row, strict=True)) / 8
    assert int(counted) == 8
    assert found.item() == pytest.approx(expected, abs=1e-5)
    assert math.isfinite(torch.as_tensor(expected).item())
