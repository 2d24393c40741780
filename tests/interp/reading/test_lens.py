"""The logit lens against the head applied row by row, the model's own logits, and transformers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from gptviz.interp.reading import lens as module
from gptviz.interp.reading.layers import layers
from gptviz.interp.reading.lens import applied_norm, course, leaders, lens, settled_layers
from gptviz.interp.trace import run
from gptviz.model import Config
from tests.pretrained.test_families import MODELS, ours, theirs
from tests.pretrained.test_families import VOCAB as THEIR_VOCAB
from tests.tiny import families, scrambled, some_ids, tiny


def ids_of(length: int = 6, vocab: int = 11) -> list[int]:
    return some_ids(length, batch=1, vocab=vocab)[0].tolist()


@settings(max_examples=40)
@given(families())
def test_the_last_row_is_the_models_own_guess_for_every_kind_of_decoder(config: Config) -> None:
    model = scrambled(config)
    ids = ids_of()
    seen = lens(model, ids, top=3)
    own = model(torch.tensor([ids]))[0].softmax(-1)
    torch.testing.assert_close(
        torch.from_numpy(seen.probability[-1]), own.topk(3).values, rtol=1e-4, atol=1e-5
    )
    assert seen.final_error < 1e-4
    assert [layer.name for layer in seen.layers] == [layer.name for layer in layers(config)]
    assert len(seen.layers) == len(seen.top)


@settings(max_examples=15)
@given(families(n_encoder_layer=1))
def test_a_decoder_beside_an_encoder_has_a_row_after_cross_attention(config: Config) -> None:
    model = scrambled(config)
    ids = ids_of(5)
    source = ids_of(7)
    seen = lens(model, ids, source, following=3)
    names = [layer.name for layer in seen.layers]
    assert names.count("blocks.0.cross_attention") == (config.n_layer > 0)
    assert seen.final_error < 1e-4
    own = model(torch.tensor([ids]), torch.tensor([source]))[0].softmax(-1)
    assert seen.true_probability[-1, -1] == pytest.approx(own[-1, 3].item(), abs=1e-5)


@torch.inference_mode()
def test_every_number_is_that_of_a_loop_over_layers_and_positions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = scrambled(tiny(logit_cap=4.0))
    ids = ids_of()
    monkeypatch.setattr(module, "LOGITS_AT_ONCE", 5 * 11)  # parts that end within a layer
    monkeypatch.setattr(module, "CACHED", 2 * 11)
    seen = lens(model, ids, following=7, top=4)
    trace = run(model, torch.tensor([ids]))
    true = [*ids[1:], 7]
    taps = [
        "blocks.0.resid_pre",
        "blocks.0.resid_mid",
        "blocks.0.resid_post",
        "blocks.1.resid_mid",
        "blocks.1.resid_post",
    ]
    for row, tap in enumerate(taps):
        for place, token in enumerate(true):
            vector = trace[tap][0, place]
            scores = model.head.unembed(model.head.final_norm(vector)).double()  # type: ignore[operator, union-attr]
            shares = (4.0 * torch.tanh(scores / 4.0)).softmax(-1)
            order = sorted(range(11), key=lambda i, shares=shares: -shares[i].item())  # type: ignore[misc]
            assert seen.top[row, place].tolist() == order[:4]
            np.testing.assert_allclose(seen.probability[row, place], shares[order[:4]], rtol=1e-4)
            assert seen.entropy[row, place] == pytest.approx(
                -sum(p * np.log(p) for p in shares.tolist()), abs=1e-4
            )
            assert seen.rank[row, place] == 1 + order.index(token)
            assert seen.true_probability[row, place] == pytest.approx(
                shares[token].item(), rel=1e-4
            )
            assert seen.final_probability[row, place] == pytest.approx(
                shares[seen.top[-1, place, 0]].item(), rel=1e-4
            )


@pytest.mark.parametrize(
    ("kind", "norm"),
    [
        ("gpt2", "transformer.ln_f"),
        ("llama", "model.norm"),
        ("gpt_neox", "gpt_neox.final_layer_norm"),
    ],
)
@torch.inference_mode()
def test_after_every_block_it_is_the_head_of_transformers_on_its_hidden_state(
    kind: str, norm: str, tmp_path: Path
) -> None:
    model = theirs(kind, MODELS[kind][0])
    mine = ours(model, tmp_path)
    ids = ids_of(12, THEIR_VOCAB)
    states = model(torch.tensor([ids]), output_hidden_states=True).hidden_states
    seen = lens(mine, ids, top=THEIR_VOCAB)
    block_ends = [row for row, layer in enumerate(seen.layers) if layer.tap.endswith("resid_post")]
    for row, state in zip([0, *block_ends], states, strict=True):
        # the last hidden state that transformers gives has passed the final norm
        is_normed = row == block_ends[-1]
        shares = model.get_output_embeddings()(
            state if is_normed else model.get_submodule(norm)(state)
        )[0].softmax(-1)
        given = torch.from_numpy(seen.probability[row])
        torch.testing.assert_close(
            given, shares.gather(-1, torch.from_numpy(seen.top[row])), rtol=1e-3, atol=1e-5
        )


def test_the_true_token_is_the_next_one_and_unknown_after_the_last() -> None:
    model = scrambled(tiny())
    ids = ids_of()
    seen = lens(model, ids)
    assert seen.true.tolist() == [*ids[1:], -1]
    assert (seen.rank[:, -1] == 0).all()
    assert np.isnan(seen.true_probability[:, -1]).all()
    assert (seen.rank[:, :-1] >= 1).all()


def test_the_end_of_a_text_is_read_as_in_the_whole_text() -> None:
    model = scrambled(tiny())
    ids = ids_of()
    whole = lens(model, ids)
    end = lens(model, ids, last=2)
    assert list(end.positions) == [4, 5]
    np.testing.assert_array_equal(end.top, whole.top[:, -2:])
    np.testing.assert_allclose(end.probability, whole.probability[:, -2:], rtol=1e-5)
    np.testing.assert_array_equal(end.true, whole.true[-2:])
    assert end.final_error < 1e-5


@settings(max_examples=15)
@given(families())
def test_blocks_alone_have_the_rows_of_the_ends_of_blocks_and_no_others_are_computed(
    config: Config,
) -> None:
    model = scrambled(config)
    ids = ids_of()
    read = list[int]()
    whole = lens(model, ids, following=3)
    kept = [
        row
        for row, layer in enumerate(whole.layers)
        if layer.tap.endswith("resid_post") or row == 0
    ]
    # where the middle is taken out, the last block ends behind that
    kept[-1] = len(whole.layers) - 1
    with pytest.MonkeyPatch.context() as patch:
        logits = module._logits
        patch.setattr(
            module,
            "_logits",
            lambda model, stream: read.append(len(stream)) or logits(model, stream),
        )
        ends = lens(model, ids, following=3, blocks_only=True)
    assert sum(read) == len(kept) * len(ids)
    assert [(one.name, one.tap) for one in ends.layers] == [
        (whole.layers[row].name, whole.layers[row].tap) for row in kept
    ]
    assert [one.short for one in ends.layers] == [
        "embedding",
        *(f"block {block}" for block in range(len(kept) - 1)),
    ]
    np.testing.assert_array_equal(ends.rank, whole.rank[kept])
    for name in ("probability", "entropy", "true_probability"):
        np.testing.assert_allclose(
            getattr(ends, name), getattr(whole, name)[kept], rtol=1e-4, atol=1e-6
        )
    assert ends.final_error < 1e-4


def test_the_error_at_the_end_is_measured_against_the_pass_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = scrambled(tiny())
    ids = ids_of()
    read = module._logits
    monkeypatch.setattr(module, "_logits", lambda model, stream: read(model, stream) + 0.5)
    assert lens(model, ids).final_error == pytest.approx(0.5, abs=1e-5)


def test_the_leaders_of_a_column_are_the_tokens_that_were_first_after_some_layer_the_final_guess_before_all() -> (
    None
):
    model = scrambled(tiny(n_layer=5))
    ids = ids_of()
    seen = lens(model, ids)
    for index in range(len(ids)):
        first = seen.top[:, index, 0].tolist()
        found = leaders(seen, index)
        assert found[0] == first[-1]
        assert sorted(found) == sorted(set(first))
        times = [first.count(token) for token in found[1:]]
        assert times == sorted(times, reverse=True)


def test_the_course_of_a_cell_has_its_likeliest_tokens_and_the_leaders_in_every_layer() -> None:
    model = scrambled(tiny())
    ids = ids_of()
    seen = lens(model, ids, top=11)
    labels = [f"t{i}" for i in range(11)]
    found = course(model, seen, 2, 4, labels, count=6)
    led = leaders(seen, 4)[: module.MOST_LED]
    likeliest = seen.top[2, 4, :6].tolist()
    assert list(found.ids) == [*led, *(i for i in likeliest if i not in led)]
    assert len(led) > 1
    assert found.probability.axes[0].labels == tuple(labels[i] for i in found.ids)
    for row in range(len(seen.layers)):
        by_id = dict(zip(seen.top[row, 4].tolist(), seen.probability[row, 4], strict=True))
        np.testing.assert_allclose(
            found.probability.values[:, row], [by_id[i] for i in found.ids], rtol=1e-4, atol=1e-6
        )


@pytest.mark.parametrize("place", [0, 10], ids=["likeliest in the cell", "unlikeliest in the cell"])
def test_a_token_that_is_asked_for_is_followed_wherever_it_stands_in_the_cell(place: int) -> None:
    model = scrambled(tiny())
    ids = ids_of()
    seen = lens(model, ids, top=11)
    token = int(seen.top[2, 4, place])
    others = [*leaders(seen, 4)[: module.MOST_LED], *seen.top[2, 4, :3].tolist()]
    found = course(model, seen, 2, 4, [str(i) for i in range(11)], count=3, follow=token)
    assert found.ids == (token, *dict.fromkeys(i for i in others if i != token))
    in_layers = [
        seen.probability[row, 4][seen.top[row, 4] == token].item()
        for row in range(len(seen.layers))
    ]
    np.testing.assert_allclose(found.probability.values[0], in_layers, rtol=1e-4, atol=1e-6)


def test_settled_is_the_first_layer_from_which_the_answer_stays() -> None:
    seen = lens(scrambled(tiny()), ids_of())
    for place, row in enumerate(settled_layers(seen)):
        answers = seen.top[:, place, 0]
        assert (answers[row:] == answers[-1]).all()
        assert row == 0 or answers[row - 1] != answers[-1]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "own final norm and its unembedding"),
        ({"final_norm": False}, "none is put there"),
        ({"final_norm": False, "residual": "post-norm"}, "every sublayer ends in a norm"),
        ({"residual": "none"}, "replaces the stream"),
        ({"residual": "parallel"}, "each block has one row"),
        ({"logit_cap": 3.0}, "cap"),
    ],
)
def test_what_is_applied_is_said(changes: dict[str, object], words: str) -> None:
    assert words in applied_norm(tiny(**changes))
    if changes:
        assert applied_norm(tiny(**changes)) != applied_norm(tiny())


@pytest.mark.parametrize("size", [1, 11, 639, 640, 1_000, 4_097])
def test_the_likeliest_of_a_large_vocabulary_are_the_largest_of_all(size: int) -> None:
    logits = torch.randn(7, size, generator=torch.Generator().manual_seed(size))
    logits[0, -2:] += 10  # the last tokens, which may be in no group
    count = min(5, size)
    values, tokens = module._likeliest_tokens(logits, module._maxima(logits, count), count)
    expected = logits.topk(count)
    assert torch.equal(values, expected.values)
    assert torch.equal(tokens, expected.indices)


def test_logits_far_apart_have_the_probabilities_of_their_softmax() -> None:
    model = scrambled(tiny())
    ids = ids_of()
    with torch.no_grad():
        model.head.unembed.weight.mul_(300)  # type: ignore[operator, union-attr]
    seen = lens(model, ids, top=11)
    own = model(torch.tensor([ids]))[0].double().softmax(-1)
    for place in range(len(ids)):
        np.testing.assert_allclose(
            seen.probability[-1, place],
            own[place][seen.top[-1, place]].detach(),
            rtol=1e-4,
            atol=1e-30,
        )
        entropy = torch.special.entr(own[place]).sum().item()
        assert seen.entropy[-1, place] == pytest.approx(entropy, abs=1e-4)
