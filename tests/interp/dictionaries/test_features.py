"""Single features of a dictionary: what they are active at, which are alike, and what writes one,
against loops.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from gptviz.interp.dictionaries.dictionary import Dictionary
from gptviz.interp.dictionaries.features import (
    EMBEDDING,
    LATER,
    MISSED,
    REST,
    direct_effects,
    nearest_features,
    observable_features,
    written_by_parts,
)
from gptviz.interp.explaining.attribution import attribute
from gptviz.interp.trace import run
from gptviz.model import Transformer
from gptviz.model.edited import EditedTransformer
from tests.tiny import scrambled, some_ids, tiny


def dictionary_of(model: Transformer, block: int = 1, k: int = 0) -> Dictionary:
    draw = torch.Generator().manual_seed(3)
    width = model.config.d_model
    encoder, decoder = (torch.randn(6, width, generator=draw) for _ in range(2))
    return Dictionary(
        block,
        encoder,
        torch.randn(6, generator=draw),
        decoder,
        torch.randn(width, generator=draw),
        torch.zeros(6),
        k,
    )


def test_the_numbers_of_features_are_their_activations_in_the_stream() -> None:
    model = scrambled(tiny())
    ids = some_ids(7, 2)
    dictionary = dictionary_of(model, k=2)
    units = observable_features(model, dictionary)
    expected = dictionary.encode(run(model, ids)["blocks.1.resid_post"])
    torch.testing.assert_close(units.values(ids), expected)
    np.testing.assert_allclose(
        units.lengths, [float(row.norm()) for row in dictionary.decoder], rtol=1e-6
    )


def test_the_nearest_features_have_the_largest_cosines() -> None:
    dictionary = dictionary_of(scrambled(tiny()))
    found = nearest_features(dictionary, 4, most=5)
    cosines = {
        other: float(torch.cosine_similarity(dictionary.decoder[4], dictionary.decoder[other], 0))
        for other in (0, 1, 2, 3, 5)
    }
    assert [int(one) for one in found.axes[0].labels] == sorted(
        cosines, key=lambda one: -cosines[one]
    )
    np.testing.assert_allclose(found.values, sorted(cosines.values(), reverse=True), rtol=1e-5)


@pytest.mark.parametrize("norm", ["layernorm", "rmsnorm"])
def test_what_the_parts_write_sums_to_the_activation_before_the_relu(norm: str) -> None:
    model = scrambled(tiny(norm=norm, residual="pre-norm", n_layer=3)).requires_grad_(False)
    ids = some_ids(7)[0]
    dictionary = dictionary_of(model)
    trace = run(model, ids[None])
    before = (trace["blocks.1.resid_post"][0] - dictionary.decoder_bias) @ dictionary.encoder[
        2
    ] + dictionary.encoder_bias[2]
    at, parts = written_by_parts(model, ids, dictionary, 2)
    assert at == int(before.argmax())
    assert parts.values.sum() == pytest.approx(float(before.max()), rel=1e-4)
    named = dict(zip(parts.axes[0].labels, parts.values, strict=True))
    assert REST not in named
    assert named[EMBEDDING] == pytest.approx(
        float((trace["embed"][0, at] + trace["positions"][at]) @ dictionary.encoder[2]), rel=1e-4
    )
    size = model.config.head_size
    for block in (0, 1):
        output = model.blocks[block].attention.output.weight
        for head in range(model.config.n_head):
            added = (
                output[:, head * size : (head + 1) * size]
                @ trace[f"blocks.{block}.attention.z"][0, head, at]
            )
            assert named[f"head {head} of block {block}"] == pytest.approx(
                float(added @ dictionary.encoder[2]), rel=1e-3, abs=1e-5
            )
        mlp = float(trace[f"blocks.{block}.mlp.out"][0, at] @ dictionary.encoder[2])
        assert named[f"MLP of block {block}"] == pytest.approx(mlp, rel=1e-4)


def test_where_norms_change_what_was_written_the_difference_is_a_part() -> None:
    model = scrambled(tiny(residual="post-norm"))
    ids = some_ids(7)[0]
    dictionary = replace(dictionary_of(model), k=0)
    _, parts = written_by_parts(model, ids, dictionary, 2)
    assert parts.axes[0].labels[-1] == REST


@pytest.mark.parametrize("residual", ["pre-norm", "branch-norm", "plain"])
def test_what_is_not_in_the_stream_yet_adds_what_the_later_parts_do(residual: str) -> None:
    model = scrambled(tiny(residual=residual, n_layer=3)).requires_grad_(False)
    ids = some_ids(7)[0].tolist()
    shares = direct_effects(model, ids, dictionary_of(model), token=3, position=4, against=5)
    whole = attribute(model, ids, 3, 4, 5)
    assert shares.unit == whole.unit
    later = sum(part.value for part in whole.parts if part.name.startswith(("blocks.2", "head.")))
    assert shares.values[shares.axes[0].labels.index(LATER)] == pytest.approx(later, abs=1e-6)
    assert shares.values.sum() == pytest.approx(whole.sum, abs=1e-9)


def test_without_a_norm_behind_it_a_feature_adds_what_the_logit_loses_when_it_is_switched_off() -> (
    None
):
    model = scrambled(tiny(residual="plain", final_norm=False, n_layer=2)).requires_grad_(False)
    ids = some_ids(7)[0]
    dictionary = dictionary_of(model, block=1)
    shares = direct_effects(model, ids.tolist(), dictionary, token=3)
    values = dict(zip(shares.axes[0].labels, shares.values, strict=True))
    plain = model(ids[None])[0, -1, 3]
    for feature in range(6):
        off = EditedTransformer(model, dict(dictionary.with_set({feature: 0.0})), {})
        lost = float(plain - off(ids[None])[0, -1, 3])
        assert values.get(f"feature {feature}", 0.0) == pytest.approx(lost, abs=1e-4)
    stream = run(model, ids[None])[dictionary.tap][0, -1]
    missed = model.head.unembed.weight[3] @ (stream - dictionary.reconstruct(stream))
    assert values[MISSED] == pytest.approx(float(missed), abs=1e-4)
    bias = model.head.unembed.bias
    assert values[LATER] == pytest.approx(0.0 if bias is None else float(bias[3]), abs=1e-6)
