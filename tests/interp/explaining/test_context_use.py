"""How much context is used, against loops over single guesses, a head that copies over a known
distance, and no positions.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gptviz.interp.explaining import context_use as module
from gptviz.interp.explaining.context_use import (
    ByWindow,
    by_position,
    by_window,
    context_use,
    left_out,
    losses,
    mean_embedding,
    windows_for,
)
from gptviz.interp.trace import run
from gptviz.model import Config, Transformer
from gptviz.settings.fields import info_of
from gptviz.settings.kinds import HowLeftOut
from tests.hand_built import CONTEXT, LOUD, VOCAB, hand_built, lagged
from tests.tiny import configs, families, scrambled, some_ids, tiny

LAG = 5


def ids_of(length: int = 8, vocab: int = 11, seed: int = 0) -> list[int]:
    return some_ids(length, batch=1, vocab=vocab, seed=seed)[0].tolist()


@torch.inference_mode()
def one_loss(model: Transformer, read: list[int], token: int) -> float:
    """−ln p of a token after those read, a pass for this one guess."""
    logits = model(torch.tensor([read]))[0, -1].double()
    return float(logits.logsumexp(0) - logits[token])


@given(families())
@settings(max_examples=30)
def test_the_loss_by_window_is_that_of_a_loop_over_single_guesses(config: Config) -> None:
    model = scrambled(config)
    ids = ids_of()
    seen = by_window(model, ids, [1, 3, 50])
    assert seen.targets == tuple(range(1, 8))
    for row, window in enumerate(seen.windows):
        for column, place in enumerate(seen.targets):
            expected = one_loss(model, ids[max(place - window, 0) : place], ids[place])
            assert seen.loss[row, column] == pytest.approx(expected, abs=1e-4)
    guess, mean = seen.labelled("a").values.tolist()
    assert guess == seen.loss[:, -1].tolist()
    assert mean == pytest.approx(seen.loss.mean(1).tolist())


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_what_is_kept_stands_before_every_window(kept: int) -> None:
    model = scrambled(tiny())
    ids = ids_of()
    seen = by_window(model, ids, [2], kept=kept)
    for column, place in enumerate(seen.targets):
        read = ids[:kept] + ids[max(place - 2, kept) : place]
        assert seen.loss[0, column] == pytest.approx(one_loss(model, read, ids[place]), abs=1e-5)
    assert left_out(model, ids, kept=kept).places == tuple(range(kept, 7))


@given(configs(mask="causal"))
@settings(max_examples=20)
def test_the_largest_window_is_the_loss_of_the_whole_text(config: Config) -> None:
    model = scrambled(config)
    ids = ids_of()
    seen = by_window(model, ids)
    assert seen.windows == (1, 2, 3, 4, 5, 6, 7)
    np.testing.assert_allclose(seen.loss[-1], losses(model, ids)[1:], atol=1e-4)


@pytest.mark.parametrize("limit", [1, 9, 40])
@pytest.mark.parametrize("how", info_of(HowLeftOut).choices)
def test_passes_of_any_size_give_the_same_numbers(
    limit: int, how: HowLeftOut, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = scrambled(tiny())
    ids = ids_of()
    whole = left_out(model, ids, how).rise
    windows = by_window(model, ids).loss
    monkeypatch.setattr(module, "MOST_TOKENS", limit)
    again = left_out(model, ids, how)
    np.testing.assert_allclose(again.rise, whole, atol=1e-5)
    np.testing.assert_allclose(by_window(model, ids).loss, windows, atol=1e-5)


@given(families(), st.data())
@settings(max_examples=30)
def test_a_token_that_is_replaced_has_the_mean_embedding_and_all_others_stay(
    config: Config, data: st.DataObject
) -> None:
    model = scrambled(config)
    ids = ids_of()
    place = data.draw(st.integers(0, 6))
    mean = torch.stack([model.embed(torch.tensor([[i]]))[0, 0] for i in range(11)]).mean(0)
    torch.testing.assert_close(mean_embedding(model), mean, rtol=1e-4, atol=1e-5)

    def replace(value: torch.Tensor) -> torch.Tensor:
        value[0, place] = mean
        return value

    logits = run(model, torch.tensor([ids[:-1]]), ["logits"], edits={"embed": replace})["logits"][
        0
    ].double()
    found = left_out(model, ids, "replaced", [place]).rise[:, 0]
    before = losses(model, ids)
    assert np.isnan(found[: place + 1]).all()
    for t in range(place + 1, 8):
        expected = float(logits[t - 1].logsumexp(0) - logits[t - 1, ids[t]]) - before[t]
        assert found[t] == pytest.approx(expected, abs=1e-4)


@given(families(mask="causal"), st.data())
@settings(max_examples=30)
def test_a_token_that_is_removed_is_a_text_without_it(config: Config, data: st.DataObject) -> None:
    model = scrambled(config)
    ids = ids_of()
    place = data.draw(st.integers(0, 6))
    found = left_out(model, ids, "removed", [place]).rise[:, 0]
    before = losses(model, ids)
    for t in range(place + 1, 8):
        read = ids[:place] + ids[place + 1 : t]
        if read:
            assert found[t] == pytest.approx(one_loss(model, read, ids[t]) - before[t], abs=1e-4)
        else:
            assert np.isnan(found[t]), "nothing is left to read"


def copies() -> Transformer:
    """A model that says the token LAG places before the one it guesses, with a logit of LOUD."""
    return hand_built([lagged(LAG - 1)])


def repeated(length: int = 20) -> list[int]:
    """A text in which the token LAG places before is always the one that follows."""
    block = [3, 1, 7, 0, 9]
    return [block[t % LAG] for t in range(length)]


# the loss of a token whose logit is LOUD above all others
SURE = math.log1p((VOCAB - 1) * math.exp(-LOUD))


@pytest.mark.parametrize("how", info_of(HowLeftOut).choices)
def test_the_loss_of_a_copy_jumps_where_the_window_is_shorter_than_its_lag(how: HowLeftOut) -> None:
    model = copies()
    ids = repeated()
    seen = by_window(model, ids, range(1, CONTEXT))
    later = [column for column, place in enumerate(seen.targets) if place >= LAG]
    for row, window in enumerate(seen.windows):
        if window >= LAG:
            assert seen.loss[row, later] == pytest.approx(SURE, rel=0.01)
        else:
            assert (seen.loss[row, later] > 1).all()
    assert seen.enough == seen.enough_for_last == LAG
    whole = context_use(model, ids, how)
    assert np.nanmean(whole.loss[LAG:]) == pytest.approx(SURE, rel=0.01)


@given(families(), st.integers(1, 60))
@settings(max_examples=20)
def test_the_loss_by_position_is_the_mean_of_a_loop_over_rows_of_any_length(
    config: Config, at_once: int
) -> None:
    model = scrambled(config)
    rows = [ids_of(length, seed=seed) for seed, length in enumerate((3, 8, 2, 8, 8, 5))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MOST_TOKENS", at_once)
        found = by_position(model, rows)
    assert math.isnan(found.values[0])
    for place in range(1, 8):
        expected = np.mean([losses(model, row)[place] for row in rows if len(row) > place])
        assert found.values[place] == pytest.approx(expected, abs=1e-4)
    assert found.unit == "mean loss over 6 texts (nats)"


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        (2, (1,)),
        (3, (1, 2)),
        (25, tuple(range(1, 25))),
        (26, (1, 2, 4, 8, 16, 25)),
        (33, (1, 2, 4, 8, 16, 32)),
    ],
)
def test_windows_are_all_of_a_short_text_and_double_in_a_long_one(
    length: int, expected: tuple[int, ...]
) -> None:
    assert windows_for(length) == expected


def test_one_guess_may_need_more_than_the_mean_and_each_says_so() -> None:
    loss = np.array([[4.0, 4.0, 4.0], [1.0, 1.0, 3.0], [1.0, 1.0, 0.1]])
    seen = ByWindow((1, 2, 3), (1, 2, 3), loss)
    np.testing.assert_allclose(seen.probability, np.exp([-4.0, -3.0, -0.1]))
    assert seen.enough_for_last == 3
    assert seen.enough == 3
    assert "the last 2 do not serve as well as all 3" in seen.sentence
    seen = ByWindow((1, 2, 3), (1, 2, 3), np.array([[9.0, 9.0, 0.1], [1.0, 1.0, 0.1], [1, 1, 0.0]]))
    assert (seen.enough_for_last, seen.enough) == (1, 2)
    assert "the last 2 tokens serve nearly as well as all 3" in seen.sentence


def test_targets_lie_evenly_over_the_text() -> None:
    model = scrambled(tiny(context_length=60))
    targets = by_window(model, ids_of(60), [1], targets=7).targets
    assert (len(targets), targets[0], targets[-1]) == (7, 1, 59)
    assert set(np.diff(targets)) <= {9, 10}


@pytest.mark.parametrize(
    ("config", "length", "message"),
    [
        (tiny(), 1, "the text has 1 token; at least 2"),
        (tiny(), 10, "9 tokens do not fit in a context of 8"),
        (
            tiny(mask="full", head="mean", n_label=3),
            4,
            "only a decoder guesses each token from those before it",
        ),
        (tiny(n_encoder_layer=1), 4, "only a decoder guesses each token from those before it"),
    ],
)
def test_what_cannot_be_measured_is_refused(config: Config, length: int, message: str) -> None:
    model = scrambled(config)
    for measure in (losses, by_window, left_out, context_use):
        with pytest.raises(ValueError, match=message):
            measure(model, ids_of(length))
