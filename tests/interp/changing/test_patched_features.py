"""Patching of features, against a pass of the corrupted prompt with the change made by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import gptviz
from gptviz.interp.changing.patched_features import MOST_FEATURES
from gptviz.interp.trace import run
from tests.command_line import Capture, answered

CLEAN = "When Mary and John went to the shop, John gave a book to"
CORRUPTED = "When Mary and John went to the shop, Mary gave a book to"


@pytest.mark.parametrize("name", ["sentences-features", "sentences-mlp-1"])
def test_a_feature_that_is_put_in_is_its_row_as_often_as_its_activation_changes(
    home: object, name: str
) -> None:
    lm = gptviz.load("sentences")
    dictionary = lm.dictionary(name)
    pair = lm.pair(CLEAN, CORRUPTED)
    found = lm.patch(CLEAN, CORRUPTED, what=f"dictionary.{name}")
    assert found.restored.axes[0].labels == (str(dictionary.block),)
    taps = [dictionary.tap, dictionary.target_tap, "logits"]
    clean, corrupted = (
        run(lm.model, torch.tensor([ids]), taps) for ids in (pair.clean, pair.corrupted)
    )
    active = [dictionary.encode(one[dictionary.tap][0]) for one in (clean, corrupted)]
    differs = (active[0] - active[1]).abs().amax(0)
    order = differs.argsort(descending=True, stable=True)[:MOST_FEATURES].tolist()
    expected = [one for one in order if differs[one] > 0]
    assert found.places.labels == tuple(map(str, expected))
    answer = [pair.answer(one["logits"]).item() for one in (clean, corrupted)]
    assert [found.clean, found.corrupted] == pytest.approx(answer, abs=1e-5)
    for feature, value in list(zip(expected, found.answers[0], strict=True))[:12]:
        by = torch.stack(
            [
                (now - before) * dictionary.decoder[feature]
                for now, before in zip(active[0][:, feature], active[1][:, feature], strict=True)
            ]
        )
        given = corrupted[dictionary.target_tap] + by
        edits = {dictionary.target_tap: lambda _, given=given: given}
        logits = run(lm.model, torch.tensor([pair.corrupted]), ["logits"], edits=edits)["logits"]
        assert value == pytest.approx(pair.answer(logits).item(), abs=1e-4)
    assert np.abs(found.shares).max() > 0.001


def test_where_nothing_differs_or_there_is_no_dictionary_that_is_said(
    home: object,
) -> None:
    lm = gptviz.load("sentences")
    with pytest.raises(ValueError, match="no feature of sentences-features differs"):
        lm.patch(CLEAN, CLEAN, "Mary", "John", what="dictionary.sentences-features")
    with pytest.raises(ValueError, match="there is no dictionary none"):
        lm.patch(CLEAN, CORRUPTED, what="dictionary.none")


def test_the_command_has_the_same(home: object, capsys: Capture) -> None:
    asked = ("--prompt", CLEAN, "--corrupted", CORRUPTED, "--what", "dictionary.sentences-features")
    said = answered(capsys, "patch", "sentences", *asked)
    found = gptviz.load("sentences").patch(CLEAN, CORRUPTED, what="dictionary.sentences-features")
    assert said["by"] == "feature"
    assert said["places"] == list(found.places.labels)
    np.testing.assert_allclose(said["restored"], found.shares, atol=1e-6)
