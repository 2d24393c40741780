"""Activation patching against a loop of single edits, and against what it must be where everything
or nothing is patched.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from torch import Tensor

from gptviz.interp.changing import edits, patching
from gptviz.interp.changing.attribution_patching import preview
from gptviz.interp.changing.patchable import quantities, quantity
from gptviz.interp.changing.patching import PatchedPiece, PromptPair, answers, patch
from gptviz.interp.trace import run
from gptviz.machine import progress
from gptviz.machine.progress import Progress
from gptviz.model import Config, Transformer
from tests.examples import tried
from tests.hand_built import induction_circuit
from tests.tiny import NO_SHORTCUTS, VOCAB, families, scrambled, some_ids, tiny


def pair_for(config: Config, length: int = 6, seed: int = 0) -> PromptPair:
    """Two prompts that differ from position 2 on, for a model of any kind."""
    clean, other = some_ids(length, seed=seed).tolist()
    corrupted = [
        *clean[:2],
        *(
            (token + 1) % VOCAB if token == was else token
            for token, was in zip(other[2:], clean[2:], strict=True)
        ),
    ]
    sources = some_ids(5, seed=seed + 1).tolist() if config.n_encoder_layer else (None, None)
    count = config.n_label or VOCAB
    one, two = (None if source is None else tuple(source) for source in sources)
    return PromptPair(tuple(clean), tuple(corrupted), 1 % count, count - 1, one, two)


def by_a_loop(model: Transformer, pair: PromptPair, what: str) -> np.ndarray:
    """The answers [block, place], each from a pass of its own over the corrupted prompt."""
    ids = torch.tensor([pair.clean, pair.corrupted])
    sources = pair.sources(torch.device("cpu"))
    of_clean, of_corrupted = (
        {"source": None if sources is None else sources[i : i + 1]} for i in (0, 1)
    )
    clean = run(model, ids[:1], **of_clean)
    chosen = quantity(what, model.config)

    def answer(tap: str, place: int) -> float:
        def put(value: Tensor) -> Tensor:
            value[:, place] = clean[tap][:, place]
            return value

        logits = run(model, ids[1:], ["logits"], edits={tap: put}, **of_corrupted)["logits"]
        last = logits.reshape(-1, logits.shape[-1])[-1]
        return float(last[pair.right] - last[pair.wrong])

    taps = [chosen.tap(block) for block in range(chosen.blocks(model.config))]
    return np.array([[answer(tap, place) for place in range(clean[tap].shape[1])] for tap in taps])


@tried(8, 25, families())
def test_many_patches_in_a_pass_are_as_a_loop_of_single_ones(config: Config) -> None:
    model = scrambled(config).double()
    pair = pair_for(config)
    for one in quantities(config):
        found = patch(model, pair, one.name)
        np.testing.assert_allclose(
            found.answers, by_a_loop(model, pair, one.name), atol=1e-9, err_msg=one.name
        )


ENCODER: dict[str, Any] = {"n_encoder_layer": 1, "padding": 0}
LABELS: dict[str, Any] = {"head": "mean", "n_label": 3, "mask": "full"}


@pytest.mark.parametrize(
    "changes",
    [
        ENCODER,
        LABELS,
        LABELS | {"padding": 0},
        {"n_kv_head": 1, "mlp": "gated"},
        {"residual": "parallel"},
    ],
)
def test_every_kind_of_model_is_patched_as_in_a_loop(changes: dict[str, Any]) -> None:
    config = tiny(**changes)
    model = scrambled(config).double()
    pair = pair_for(config)
    assert {one.name for one in quantities(config)} >= {"resid_pre", "attention.z"}
    for one in quantities(config):
        np.testing.assert_allclose(
            patch(model, pair, one.name).answers, by_a_loop(model, pair, one.name), atol=1e-9
        )


@settings(max_examples=25)
@given(families(**NO_SHORTCUTS))
def test_to_patch_everything_restores_the_answer_and_to_patch_nothing_leaves_it(
    config: Config,
) -> None:
    model = scrambled(config).double()
    pair = pair_for(config)
    ids = pair.ids(torch.device("cpu"))
    expected = pair.answer(model(ids)).tolist()
    everything = [
        [PatchedPiece(f"blocks.{block}.resid_pre", place) for place in range(6)]
        for block in range(config.n_layer)
    ]
    clean, corrupted, (nothing, *restored) = answers(model, pair, [[], *everything])
    assert [clean, corrupted] == pytest.approx(expected, abs=1e-9)
    assert nothing == pytest.approx(corrupted, abs=1e-9)
    assert restored == pytest.approx([clean] * config.n_layer, abs=1e-9)


def test_the_share_is_one_as_after_the_clean_prompt_and_zero_as_without_a_patch() -> None:
    model = scrambled(tiny()).double()
    pair = pair_for(tiny())
    found = patch(model, pair, "resid_post")
    shares = found.restored.values
    np.testing.assert_allclose(
        shares, (found.answers - found.corrupted) / (found.clean - found.corrupted)
    )
    # the last position after the last block decides alone
    assert shares[-1, -1] == pytest.approx(1, abs=1e-9)
    assert np.abs(shares[-1, :-1]).max() < 1e-9
    assert np.all(shares[:, :2] == 0)  # before the prompts differ there is nothing to put in


def test_where_both_prompts_have_one_answer_no_share_is_defined() -> None:
    model = scrambled(tiny())
    pair = pair_for(tiny())
    same = patch(model, replace(pair, corrupted=pair.clean), "attention.z")
    assert not same.is_defined
    assert np.isnan(same.restored.values).all()
    np.testing.assert_allclose(same.raw.values, same.clean, atol=1e-5)


def test_few_rows_at_a_time_change_nothing_and_progress_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = scrambled(tiny()).double()
    pair = pair_for(tiny())
    seen = list[Progress]()
    at_once = patch(model, pair, "attention.out")
    monkeypatch.setattr(patching, "MOST_TOKENS", 18)  # three rows, one of them for the clean prompt
    with progress.listen_to(seen.append), progress.part(0, 8, 8, doing="patch"):
        in_parts = patch(model, pair, "attention.out")
    np.testing.assert_allclose(in_parts.answers, at_once.answers, atol=1e-9)
    shares = [now.share for now in seen]
    assert shares == sorted(shares)
    assert {(now.done, now.of) for now in seen} == {(done, 8) for done in range(9)}


def test_a_pass_over_a_long_text_of_a_large_model_stays_within_its_memory() -> None:
    gpt2 = Config(vocab_size=50_257, context_length=1_024, d_model=768, n_layer=12, n_head=12)
    assert patching.rows_at_once(gpt2, 1_024) == 1
    assert 16 < patching.rows_at_once(gpt2, 32) <= patching.MOST_TOKENS // 32


def test_a_key_head_names_the_heads_that_it_serves() -> None:
    config = tiny(n_head=6, d_head=2, n_kv_head=2)
    assert quantity("attention.k", config).places(config, 5).labels == (
        "0 (heads 0–2)",
        "1 (heads 3–5)",
    )
    assert quantity("attention.q", config).places(config, 5).labels == tuple("012345")
    assert quantity("attention.k", tiny()).by == "head"


def restored(pair: PromptPair, what: str) -> list[list[float]]:
    """The shares of the circuit built by hand, [block][head or position], rounded."""
    shares: list[list[float]] = patch(induction_circuit(), pair, what).shares.round(2).tolist()
    return shares


def test_of_a_circuit_built_by_hand_patches_find_what_carries_the_token_that_is_said() -> None:
    # "2 5 1 2" goes on with 5: the induction head reads the second position. With another token
    # there it says that one.
    pair = PromptPair((2, 5, 1, 2), (2, 7, 1, 2), 5, 7)
    assert restored(pair, "resid_pre") == [[0, 1, 0, 0], [0, 1, 0, 0]]
    assert restored(pair, "attention.out") == [[0, 0, 0, 0], [0, 0, 0, 1]]
    assert restored(pair, "attention.z") == restored(pair, "attention.v") == [[0, 0, 0], [0, 0, 1]]
    assert (
        restored(pair, "attention.pattern")
        == restored(pair, "attention.k")
        == [[0, 0, 0], [0, 0, 0]]
    )


def test_and_what_decides_where_it_looks() -> None:
    # In both prompts 5 and 7 follow a 2 or a 3; the last token decides which of the two the
    # induction head looks for.
    pair = PromptPair((2, 5, 3, 7, 2), (2, 5, 3, 7, 3), 5, 7)
    assert (
        restored(pair, "attention.q")
        == restored(pair, "attention.pattern")
        == [[0, 0, 0], [0, 0, 1]]
    )
    assert restored(pair, "attention.v") == [[0, 0, 0], [0, 0, 0]]
    # Here the first tokens change places: only what the previous-token head writes says after which
    # of them 5 came.
    pair = PromptPair((2, 5, 3, 7, 2), (3, 5, 2, 7, 2), 5, 7)
    assert restored(pair, "attention.z") == [[0, 1, 0], [0, 0, 1]]
    assert restored(pair, "attention.v") == [[0, 1, 0], [0, 0, 0]]
    assert restored(pair, "attention.k") == [[0, 0, 0], [0, 0, 1]]


def test_a_model_with_edits_is_patched_as_it_is() -> None:
    model = scrambled(tiny()).double()
    pair = pair_for(tiny())
    given = edits.edits(
        ["blocks.0.mlp", "blocks.1.attention.head.2=uniform", "blocks.0.attention.head.1"],
        model.config,
    )
    edited = edits.edit_model(model, given)
    for what in ("resid_pre", "attention.z", "attention.pattern", "mlp.out"):
        found = patch(edited, pair, what)
        np.testing.assert_allclose(found.answers, by_a_loop(edited, pair, what), atol=1e-9)
    assert preview(edited, pair, ["attention.z"])["attention.z"].shares[0, 1] == 0
