"""Fitting a dictionary: features that are known are found again."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from gptviz.interp.changing.ablation import NOT_COUNTED, Rows
from gptviz.interp.changing.edit import Inputs
from gptviz.interp.dictionaries import fitting
from gptviz.interp.dictionaries.dictionary import Dictionary
from gptviz.interp.dictionaries.fitting import (
    KINDS,
    Fit,
    FittedKind,
    tokens_that_count,
    vectors,
)
from gptviz.interp.trace import run
from gptviz.machine import progress
from tests.tiny import scrambled, some_ids, tiny

SIZE = 40
NUMBERS = 20


def fit(*given: Any, **settings: Any) -> Dictionary:
    return Fit(*given, **settings).finish()


def planted(active: int, count: int = 5_000) -> tuple[Tensor, Tensor]:
    """Twice as many features as the vectors have numbers, and vectors that are sums of so many of
    them, each 0.5 to 1.5 times, around a point away from 0, with little noise.
    """
    draw = torch.Generator().manual_seed(0)
    rows = F.normalize(torch.randn(SIZE, NUMBERS, generator=draw), dim=-1)
    is_active = torch.rand(count, SIZE, generator=draw).argsort(-1) < active
    values = is_active * (0.5 + torch.rand(count, SIZE, generator=draw))
    return rows, 7 * (values @ rows) + 3 + 0.02 * torch.randn(count, NUMBERS, generator=draw)


@pytest.mark.parametrize("kind", KINDS)
def test_features_that_are_known_are_found_again(
    monkeypatch: pytest.MonkeyPatch, kind: FittedKind
) -> None:
    monkeypatch.setattr(fitting, "BATCH", 64)
    rows, x = planted(3)
    found = fit(x, 0, 60, kind, k=3)
    nearest = (rows @ found.decoder.T).max(-1).values
    assert nearest.mean() > 0.95
    torch.testing.assert_close(found.decoder.norm(dim=-1), torch.ones(60))


def test_features_that_died_begin_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "BATCH", 256)
    rows, x = planted(1)
    crowded = torch.cat([x[:1].expand_as(x), x])  # half of the features begin at the same point
    dead = []
    near = []
    for patience in (fitting.PATIENCE, 10**9):
        monkeypatch.setattr(fitting, "PATIENCE", patience)
        found = fit(crowded, 0, SIZE, k=1, steps=500)
        dead.append(int((~(found.encode(x) > 0).any(0)).sum()))
        near.append(float((rows @ found.decoder.T).max(-1).values.mean()))
    assert dead[0] < dead[1] / 2
    assert near[0] > 0.9 > near[1]


def test_a_few_vectors_hundreds_of_times_as_long_leave_the_others_as_well_explained() -> None:
    _, x = planted(3)
    draw = torch.Generator().manual_seed(1)
    direction = F.normalize(torch.randn(NUMBERS, generator=draw), dim=-1)
    massive = 150 * float(x.norm(dim=-1).median()) * direction
    x_and = torch.cat([x, massive + torch.randn(12, NUMBERS, generator=draw)])

    def missed(vectors: Tensor) -> float:
        """The share of the variance of the usual vectors that is missed after a fit."""
        found = fit(vectors, 0, 60, k=3, steps=300)
        error = (x - found.decode(found.encode(x))).square().mean()
        return float(error / (x - x.mean(0)).square().mean())

    assert missed(x_and) < 2 * missed(x)
    found = fit(x_and, 0, 60, k=3, steps=300)
    cosines = F.cosine_similarity(found.decoder, massive - x.mean(0), dim=-1)
    assert int((cosines > 0.99).sum()) == 1, "they have one feature, which is theirs"
    given_back = found.decode(found.encode(massive[None]))[0]
    assert (massive - given_back).norm() < 0.05 * massive.norm()


def test_a_constant_more_or_another_scale_gives_the_same_features() -> None:
    _, x = planted(3, 2_000)
    one, other = (fit(some, 0, 30, k=3, steps=50) for some in (x, 5 * x + 11))
    torch.testing.assert_close(one.decoder, other.decoder, atol=1e-3, rtol=0)
    torch.testing.assert_close(5 * one.encode(x), other.encode(5 * x + 11), atol=0.05, rtol=0)


def test_the_fit_says_how_far_it_is_and_is_the_same_for_the_same_seed() -> None:
    _, x = planted(3, 500)
    heard: list[str] = []
    with progress.listen_to(lambda now: heard.append(now.words)):
        one = fit(x, 0, 30, k=3, steps=50)
    assert [words.partition(" (")[0] for words in heard] == [
        "step 20 of 50",
        "step 40 of 50",
        "step 50 of 50",
    ]
    assert heard[-1].endswith("% explained, 3.0 active at a token)")
    assert one.fitted_to == 500
    assert torch.equal(one.decoder, fit(x, 0, 30, k=3, steps=50).decoder)
    assert not torch.equal(one.decoder, fit(x, 0, 30, k=3, steps=50, seed=1).decoder)


def counted(*rows: list[int]) -> Rows:
    """Random tokens, of which the predictions at these places count."""
    targets = torch.full((len(rows), 8), NOT_COUNTED)
    for row, places in zip(targets, rows, strict=True):
        row[places] = 1
    return Rows(Inputs(some_ids(batch=len(rows))), targets)


def test_vectors_are_those_of_the_tokens_before_the_last_that_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = scrambled(tiny())
    rows = counted([1, 4], [], [7])
    assert tokens_that_count(rows).sum(1).tolist() == [5, 0, 8]
    stream = run(model, rows.reading.ids)["blocks.1.resid_post"]
    torch.testing.assert_close(vectors(model, 1, [rows]), torch.cat([stream[0, :5], stream[2]]))
    monkeypatch.setattr(fitting, "MOST_BYTES", 10 * 12 * 4)
    assert len(vectors(model, 1, iter([rows, rows]))) == 10


def test_what_cannot_be_fitted_is_refused() -> None:
    model = scrambled(tiny())
    rows = [counted([7])]
    for wrong, block in ((model, 2), (scrambled(tiny(head="mean", n_label=3, mask="full")), 0)):
        with pytest.raises(ValueError, match="after a block of a decoder"):
            vectors(wrong, block, rows)
    with pytest.raises(ValueError, match="too short"):
        vectors(model, 0, [counted([0])])
    with pytest.raises(ValueError, match="with 9 active"):
        fit(torch.randn(10, 4), 0, 8, k=9)
    with pytest.raises(ValueError, match="the same at all tokens"):
        fit(torch.ones(10, 4), 0, 8, k=1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_transcoder", [False, True])
def test_a_fit_that_goes_on_from_its_state_is_the_one_that_ran_through(
    kind: FittedKind, is_transcoder: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fitting, "BATCH", 64)
    # so that features die and begin again, with numbers drawn after the stop
    monkeypatch.setattr(fitting, "PATIENCE", 5)
    _, x = planted(3, 500)
    given = x.roll(1, -1) if is_transcoder else None

    def begun() -> Fit:
        return Fit(x, 0, 30, kind, k=3, steps=40, given=given)

    whole = list(begun())
    through = begun()
    assert [(event.step, event.error) for event in through] == [
        (event.step, event.error) for event in whole
    ]
    for stop in (0, 1, 17, 40):
        first = begun()
        errors = [event.error for event in islice(first, stop)]
        # what is kept does not change with the fit that goes on
        state = {name: value.clone() for name, value in first.state().items()}
        second = begun()
        second.restore(state)
        errors += [event.error for event in second]
        assert errors == [event.error for event in whole]
        for name, value in through.dictionary.tensors().items():
            assert torch.equal(value, second.dictionary.tensors()[name]), (stop, name)


def test_the_state_of_another_fit_is_refused() -> None:
    _, x = planted(3, 500)
    fit_of_30 = Fit(x, 0, 30, k=3, steps=4)
    for wrong in (
        Fit(x, 0, 20, k=3, steps=4).state(),
        Fit(x, 0, 30, k=3, steps=4).state() | {"step": torch.tensor(5)},
        {},
    ):
        with pytest.raises(ValueError, match="the saved state"):
            fit_of_30.restore(wrong)
    assert [event.step for event in fit_of_30] == [1, 2, 3, 4]


def test_a_fit_whose_error_is_no_number_ends_with_a_word() -> None:
    _, x = planted(3, 500)
    diverging = Fit(x, 0, 30, k=3, steps=4)
    with torch.no_grad():
        diverging.parts["decoder_bias"].fill_(torch.nan)
    with pytest.raises(ValueError, match="the fit diverged"):
        list(diverging)
