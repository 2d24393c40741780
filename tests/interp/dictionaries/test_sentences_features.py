"""The dictionary of `sentences`: features are found by what makes them active, and without one its
task breaks, and no other.
"""

from __future__ import annotations

from functools import cache

import pytest
import torch
from torch import Tensor

import gptviz
from gptviz.interp.trace import run
from gptviz.language_model import LanguageModel
from gptviz.model import Transformer

# What a feature stands for, the answers that follow where it does, and the most of these that are
# right without it.
CONCEPTS = {
    "the verb is plural": (("are", "were"), 0.2),
    "[ is open": (("]",), 0.1),
    "( is open": ((")",), 0.6),
    "Ann gets it": (("Ann",), 0.1),
    "Paul gets it": (("Paul",), 0.1),
}


@cache
def sentences() -> LanguageModel:
    return gptviz.load("sentences")


@cache
def answers() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Held-out sentences [B, T]; where an answer counts [B, T]; and of each answer [n] the token
    and the task.
    """
    assert sentences().task is not None
    held_out = sentences().task.held_out(600)
    ids = torch.from_numpy(held_out.ids)
    counted = torch.from_numpy(held_out.counted)
    task = torch.from_numpy(held_out.part)[:, None].expand_as(counted)
    return ids[:, :-1], counted, ids[:, 1:][counted], task[counted]


def right(model: Transformer) -> Tensor:
    """Whether the likeliest token is the right one, for each answer [n]."""
    ids, counted, token, _ = answers()
    with torch.inference_mode():
        return model(ids).argmax(-1)[counted] == token


def found(words: tuple[str, ...]) -> tuple[int, Tensor, Tensor]:
    """The feature that is more active before these answers than before others, by the most; how
    active it is before each answer [n]; and which of them are these.
    """
    lm, (ids, counted, token, _) = sentences(), answers()
    dictionary = lm.dictionary("sentences-features")
    # [n, feature]
    active = dictionary.encode(run(lm.model, ids, [dictionary.tap])[dictionary.tap])[counted]
    these = torch.isin(token, torch.tensor([lm.token(word) for word in words]))
    feature = int((active[these].mean(0) - active[~these].mean(0)).argmax())
    return feature, active[:, feature], these


@pytest.mark.parametrize("concept", CONCEPTS)
def test_a_feature_is_active_where_its_concept_is_and_seldom_elsewhere(concept: str) -> None:
    _, active, these = found(CONCEPTS[concept][0])
    assert (active[these] > 0).float().mean() > 0.95
    assert (active[~these] > 0).float().mean() < 0.3


@pytest.mark.parametrize("concept", CONCEPTS)
def test_without_a_feature_its_task_breaks_and_no_other(concept: str) -> None:
    words, most = CONCEPTS[concept]
    feature, _, these = found(words)
    lm = sentences()
    task = answers()[3]
    assert right(lm.model).all()
    without = right(lm.edited(lm.dictionary("sentences-features").edit(feature)).model)
    of_its_task = task == task[these][0]
    assert without[these].float().mean() < most
    assert without[of_its_task & ~these].float().mean() > 0.9
    assert without[~of_its_task].float().mean() > 0.99
