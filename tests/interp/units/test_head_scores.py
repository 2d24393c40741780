"""The scores of heads: against loops over queries and keys, on heads built by hand, and on the
model that ships.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings

import gptviz
from gptviz.interp.reading.overview import largest_head
from gptviz.interp.trace import run
from gptviz.interp.units.head_scores import (
    CLEARLY,
    N_SEQUENCES,
    SCORES,
    EarlierTokens,
    HeadScores,
    followers,
    head_scores,
    losses_without,
    repeated_tokens,
    scores_over_texts,
)
from gptviz.interp.units.head_weights import composition
from gptviz.interp.units.unit import heads_and_mlps
from gptviz.model import Config
from tests import hand_built
from tests.examples import tried
from tests.hand_built import CONTEXT, VOCAB
from tests.tiny import families, scrambled, some_ids, tiny

REPEATED = repeated_tokens(VOCAB, CONTEXT)


def by_loop(pattern: torch.Tensor, ids: list[int], visible: torch.Tensor) -> dict[str, list[float]]:
    """The scores of one head over one text at every query that counts; `visible` [query, key]."""
    found: dict[str, list[float]] = {
        name: [] for name in SCORES if name not in ("copying", "delta_loss")
    }
    for q in range(1, len(ids)):
        row = pattern[q].double().tolist()
        copies = [k for k in range(q) if ids[k] == ids[q]]
        found["previous_token"].append(row[q - 1])
        found["first_token"].append(row[0])
        found["self"].append(row[q])
        found["distance"].append(sum(share * abs(q - k) for k, share in enumerate(row)))
        if copies:
            found["duplicate_token"].append(sum(row[k] for k in copies))
        if behind := [k + 1 for k in copies if k + 1 < q]:
            found["induction"].append(sum(row[k] for k in behind))
        if (count := int(visible[q].sum())) > 1:
            found["entropy"].append(
                -sum(share * math.log(share) for share in row if share) / math.log(count)
            )
    return found


@settings(max_examples=25)
@given(families())
def test_scores_of_many_texts_at_once_are_those_of_a_loop(config: Config) -> None:
    if not config.n_layer:
        return
    model = scrambled(config)
    ids = some_ids(batch=3, vocab=5)
    patterns = run(model, ids, ["blocks.*.pattern"])
    scores = head_scores(model, ids)
    assert not scores.on_random
    for block in range(config.n_layer):
        visible = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool)
        if config.mask == "causal":
            visible = visible.tril()
        if config.has_window(block):
            visible = visible.triu(1 - config.window)
        for head in range(config.n_head):
            each = [
                by_loop(pattern, text, visible)
                for pattern, text in zip(
                    patterns[f"blocks.{block}.attention.pattern"][:, head],
                    ids.tolist(),
                    strict=True,
                )
            ]
            for name in each[0]:
                values = [value for one in each for value in one[name]]
                expected = np.mean(values) if values else math.nan
                assert scores.values[name][block, head] == pytest.approx(
                    expected, abs=2e-5, nan_ok=True
                ), name
                low = SCORES[name].low
                high = SCORES[name].high
                assert not values or low - 1e-6 <= expected <= (
                    math.inf if high is None else high + 1e-6
                )


def test_over_texts_of_several_lengths_every_query_counts_alike() -> None:
    config = tiny(window=3, window_pattern="fw")
    model = scrambled(config)
    drawn = some_ids(batch=5, vocab=5)
    texts = [ids[:length] for ids, length in zip(drawn, (6, 3, 6, 1, 4), strict=True)]
    scores = scores_over_texts(model, texts)
    for block in range(config.n_layer):
        patterns = [
            run(model, ids[None], ["blocks.*.pattern"])[f"blocks.{block}.attention.pattern"][0]
            for ids in texts
        ]
        for head in range(config.n_head):
            each = []
            for ids, pattern in zip(texts, patterns, strict=True):
                visible = torch.ones(len(ids), len(ids), dtype=torch.bool).tril()
                visible = visible.triu(1 - config.window) if config.has_window(block) else visible
                each.append(by_loop(pattern[head], ids.tolist(), visible))
            for name in each[0]:
                values = [value for one in each for value in one[name]]
                assert scores.values[name][block, head] == pytest.approx(
                    np.mean(values), abs=2e-5
                ), name
    different = torch.tensor([0, 1, 2])
    random = repeated_tokens(config.vocab_size, config.context_length)
    over = scores_over_texts(model, [different, different[:2]], random)
    assert over.on_random == {"induction", "duplicate_token"}
    np.testing.assert_array_equal(
        over.values["induction"], head_scores(model, random).values["induction"]
    )


def test_however_few_heads_are_computed_with_at_a_time_the_scores_are_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = scrambled(tiny())
    ids = some_ids(batch=3, vocab=5)
    whole = head_scores(model, ids).values
    monkeypatch.setattr("gptviz.interp.units.head_scores.AT_ONCE", 1)
    for name, values in head_scores(model, ids).values.items():
        np.testing.assert_allclose(values, whole[name], rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("previous_token", hand_built.previous_token()),
        ("first_token", hand_built.first_token()),
        ("self", hand_built.itself()),
        ("duplicate_token", hand_built.duplicate_token()),
        ("entropy", hand_built.copy()),
    ],
)
def test_a_head_built_by_hand_has_the_whole_score_of_its_kind_and_the_others_less(
    name: str, head: hand_built.Head
) -> None:
    """Copy attends evenly to all tokens: the largest entropy there is."""
    kinds = {
        "previous_token": hand_built.previous_token(),
        "first_token": hand_built.first_token(),
        "self": hand_built.itself(),
        "duplicate_token": hand_built.duplicate_token(),
        "entropy": hand_built.copy(),
    }
    others = [other for kind, other in kinds.items() if kind != name]
    found = head_scores(hand_built.hand_built((*others, head)), REPEATED).values[name][0]
    assert found[-1] == pytest.approx(1)
    assert max(found[:-1]) < 0.6


def test_the_induction_head_of_the_circuit_ranks_first_and_the_head_before_it_is_a_previous_token_head() -> (
    None
):
    found = head_scores(hand_built.induction_circuit(), REPEATED).values
    assert found["induction"][1, 2] == pytest.approx(1, abs=0.05)
    assert np.unravel_index(found["induction"].argmax(), (2, 3)) == (1, 2)
    assert np.unravel_index(found["previous_token"].argmax(), (2, 3)) == (0, 1)


def test_the_shipped_induction_model_has_an_induction_head_behind_a_previous_token_head() -> None:
    lm = gptviz.load("induction")
    ids = repeated_tokens(lm.model.config.vocab_size, lm.model.config.context_length)
    found = head_scores(lm.model, ids).values
    assert found["induction"].max() > 0.9
    reader = largest_head(found["induction"])
    writer = largest_head(found["previous_token"])
    assert (reader[0], writer[0]) == (1, 0)
    assert found["induction"][0].max() < 0.1, "no head of block 0 can be one"
    keys = np.nan_to_num(composition(lm.model, "key").values).reshape(2, 4, 2, 4)
    assert largest_head(keys[reader][0][None])[1] == writer[1], (
        "what it reads most was written by the previous-token head"
    )


def test_where_no_token_comes_back_repeats_are_scored_over_random_tokens_and_that_is_said() -> None:
    model = hand_built.induction_circuit()
    text = torch.tensor([[3, 5, 7, 1]])
    alone = head_scores(model, text)
    assert np.isnan(alone.values["induction"]).all()
    assert not alone.on_random
    found = head_scores(model, text, repeats=REPEATED)
    assert found.on_random == {"induction", "duplicate_token"}
    both = head_scores(model, REPEATED)
    for name, values in found.values.items():
        expected = both if SCORES[name].repeats else alone
        np.testing.assert_array_equal(values, expected.values[name])


def test_a_text_with_repeats_is_scored_by_itself() -> None:
    model = hand_built.induction_circuit()
    text = torch.tensor([[3, 5, 7, 3]])
    assert not head_scores(model, text, repeats=REPEATED).on_random


def test_cross_attention_has_the_scores_that_need_no_place_of_the_query() -> None:
    model = scrambled(tiny(n_encoder_layer=1, n_layer=2))
    ids = some_ids(5, 1)
    source = some_ids(7, 1, seed=1)
    found = head_scores(model, ids, source, crosses=True)
    patterns = run(model, ids, ["blocks.*.cross_attention.pattern"], source=source)
    for block in range(2):
        # [n_head, queries, keys]
        of = patterns[f"blocks.{block}.cross_attention.pattern"][0].double()
        np.testing.assert_allclose(
            found.values["first_token"][block], of[:, 1:, 0].mean(-1), rtol=1e-5
        )
        entropy = torch.special.entr(of[:, 1:]).sum(-1).mean(-1) / math.log(7)
        np.testing.assert_allclose(found.values["entropy"][block], entropy, rtol=1e-5)
    assert {name for name, values in found.values.items() if not np.isnan(values).any()} == {
        "first_token",
        "entropy",
    }


def test_repeated_tokens_are_two_equal_halves_of_different_tokens_between_what_stands_around_every_text() -> (
    None
):
    ids = repeated_tokens(30, 24, without=[7], before=(0,), after=(1, 2))
    assert ids.shape == (N_SEQUENCES, 1 + 20 + 2)
    for text in ids.tolist():
        half = text[1:11]
        assert text == [0, *half, *half, 1, 2]
        assert len(set(half)) == 10
        assert not {0, 1, 2, 7} & set(half)
    assert len({tuple(text) for text in ids.tolist()}) == N_SEQUENCES
    assert not torch.equal(
        ids, repeated_tokens(30, 24, without=[7], before=(0,), after=(1, 2), seed=1)
    )


@tried(6, 15, families(mask="causal"))
def test_the_loss_without_a_head_is_that_of_a_model_whose_output_matrix_has_zeros_in_its_place(
    config: Config,
) -> None:
    if not config.n_layer:
        return
    model = scrambled(config)
    ids = some_ids(batch=3)
    found = dict(
        losses_without(
            model, ids, [one for one in heads_and_mlps(config) if one.is_head], counted_from=3
        )
    )

    def mean_loss(of: torch.nn.Module) -> float:
        # each predicts the token behind it: those from position 3 on
        logits = of(ids)[:, 2:-1].detach()
        return float(torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 3:].flatten()))

    usual = mean_loss(model)
    size = config.head_size
    for head, change in found.items():
        twin = scrambled(config)
        columns = slice(head.index * size, (head.index + 1) * size)
        twin.blocks[head.block].attention.output.weight.data[:, columns] = 0
        assert change == pytest.approx(mean_loss(twin) - usual, abs=2e-5)


def test_followers_stand_behind_copies() -> None:
    ids = torch.tensor([4, 2, 4, 4, 2])
    text = EarlierTokens(ids)
    assert torch.argwhere(followers(ids)).tolist() == [[2, 1], [3, 1], [4, 2]]
    assert torch.argwhere(text.copies).tolist() == [[2, 0], [3, 0], [3, 2], [4, 1]]


@pytest.mark.parametrize("name", SCORES)
def test_the_sentence_names_the_highest_head_and_calls_it_of_a_kind_only_where_it_clearly_is(
    name: str,
) -> None:
    values = np.array([[math.nan, 0.02], [0.05, 0.01]])
    score = SCORES[name]
    clear = " ".join(HeadScores({name: values + CLEARLY}).answer(name))
    assert clear.startswith(f"Head 0 of block 1 {score.does}{'.' if score.is_kind else ': '}")
    assert ("2 of the other 3 heads do so too." in clear) == score.is_kind
    unclear = " ".join(HeadScores({name: values}).answer(name))
    assert unclear.startswith(f"No head clearly {score.does}. Head 0 of block 1") == score.is_kind
    alone, _ = HeadScores({name: np.where(values == 0.05, CLEARLY, values)}).answer(name)
    assert not score.is_kind or alone == f"Head 0 of block 1 {score.does}."
    # every value of a sentence is a number of the array
    assert "35.0 %" in clear or "0.35" in clear or "0.3 tokens" in clear or "0.4 tokens" in clear


def test_where_no_head_is_needed_the_sentence_says_so() -> None:
    scores = HeadScores({"delta_loss": np.array([[-0.1, 0.0]])})
    assert scores.answer("delta_loss")[0] == "The loss is no higher without any of the 2 heads."
