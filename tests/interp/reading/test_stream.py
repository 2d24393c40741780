"""The residual stream against loops over positions, closed forms, and what the taps recorded."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from gptviz.interp.reading.stream import (
    about_length,
    cosines,
    explain_written,
    lengths,
    map_after,
    maps,
    rows,
    shares,
    stream,
)
from gptviz.interp.trace import run
from gptviz.model import Config
from tests.tiny import families, scrambled, some_ids, tiny

TOKENS = list("abcdef")


def ids_of(length: int = 6) -> list[int]:
    return some_ids(length, batch=1)[0].tolist()


@settings(max_examples=40)
@given(families())
def test_the_embedding_and_all_that_is_written_sum_to_the_stream_for_every_kind_of_decoder(
    config: Config,
) -> None:
    seen = stream(scrambled(config), ids_of())
    torch.testing.assert_close(
        seen.states[0] + seen.written.sum(0), seen.states[-1], rtol=1e-4, atol=1e-4
    )
    assert len(seen.writers) == len(seen.written) == len(seen.read)
    trace = run(scrambled(config), torch.tensor([ids_of()]))
    for layer, state in zip(seen.layers, seen.states, strict=True):
        if layer.tap:
            assert torch.equal(state, trace[layer.tap][0])


@pytest.mark.parametrize("residual", ["pre-norm", "plain", "parallel", "parallel-one-norm"])
def test_what_a_sublayer_wrote_is_what_it_put_out(residual: str) -> None:
    model = scrambled(tiny(residual=residual))
    seen = stream(model, ids_of())
    trace = run(model, torch.tensor([ids_of()]))
    assert seen.writers == (
        "blocks.0.attention",
        "blocks.0.mlp",
        "blocks.1.attention",
        "blocks.1.mlp",
    )
    for name, written in zip(seen.writers, seen.written, strict=True):
        torch.testing.assert_close(written, trace[f"{name}.out"][0], rtol=1e-4, atol=1e-5)


def test_a_decoder_beside_an_encoder_has_the_stream_after_cross_attention() -> None:
    seen = stream(scrambled(tiny(n_encoder_layer=1)), ids_of(), ids_of(4))
    assert seen.writers[:3] == ("blocks.0.attention", "blocks.0.cross_attention", "blocks.0.mlp")


def test_lengths_cosines_and_shares_are_those_of_a_loop() -> None:
    seen = stream(scrambled(tiny(residual="parallel")), ids_of())
    states = seen.states.double().tolist()

    def dot(a: list[float], b: list[float]) -> float:
        return sum(x * y for x, y in zip(a, b, strict=True))

    def length(a: list[float]) -> float:
        return math.sqrt(dot(a, a))

    long = lengths(seen, TOKENS)
    assert long.axes[0].labels == ("embed", "blocks.0", "blocks.1")
    assert long.axes[1].labels == tuple(TOKENS)
    for layer, row in enumerate(states):
        for place, vector in enumerate(row):
            assert long.values[layer, place] == pytest.approx(length(vector), rel=1e-6)
    for one in range(3):
        for other in range(3):
            each = [
                dot(states[one][t], states[other][t])
                / length(states[one][t])
                / length(states[other][t])
                for t in range(6)
            ]
            assert cosines(seen).values[one, other] == pytest.approx(np.mean(each), abs=1e-6)
            assert cosines(seen, 4).values[one, other] == pytest.approx(each[4], abs=1e-6)
    found = shares(seen, TOKENS).values
    for writer in range(4):
        for place in range(6):
            before = states[writer // 2][place]
            wrote = seen.written[writer, place].double().tolist()
            assert found[0, writer, place] == pytest.approx(
                length(wrote) / length(before), rel=1e-5
            )
            assert found[1, writer, place] == pytest.approx(
                dot(wrote, before) / length(before) ** 2, abs=1e-6
            )


def test_the_end_of_a_text_is_that_of_the_whole_text() -> None:
    model = scrambled(tiny())
    whole = stream(model, ids_of())
    end = stream(model, ids_of(), last=2)
    assert list(end.positions) == [4, 5]
    assert torch.equal(end.states, whole.states[:, -2:])
    assert torch.equal(end.written, whole.written[:, -2:])


def test_every_picture_by_pca_has_the_distances_of_its_own_plane_and_lies_near_the_one_before() -> (
    None
):
    by_layer = rows(stream(scrambled(tiny()), ids_of()), unit=True)
    pictures = maps(by_layer, TOKENS)
    for vectors, picture in zip(by_layer, pictures, strict=True):
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
        exact = vectors.astype(np.float64) - vectors.mean(0, dtype=np.float64)
        left, sizes, _ = np.linalg.svd(exact, full_matrices=False)
        plane = left[:, :2] * sizes[:2]
        ours = np.linalg.norm(picture.points.values[:, None] - picture.points.values[None], axis=-1)
        theirs = np.linalg.norm(plane[:, None] - plane[None], axis=-1)
        scale = (ours * theirs).sum() / (theirs**2).sum()  # pictures are resized, and nothing else
        np.testing.assert_allclose(ours, scale * theirs, atol=1e-4)
        assert sum(picture.explained) == pytest.approx(
            (sizes[:2] ** 2).sum() / (sizes**2).sum(), abs=1e-5
        )
    for before, after in pairwise(pictures):
        apart = np.linalg.norm(after.points.values - before.points.values)
        for angle in np.linspace(0.3, 6, 12):
            turn = np.array(
                [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
            )
            assert np.linalg.norm(after.points.values @ turn - before.points.values) >= apart - 1e-4


def test_a_picture_by_tsne_lies_near_the_one_by_pca(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gptviz.interp.reading.embeddings.ITERATIONS", 250)
    by_layer = rows(stream(scrambled(tiny()), ids_of()), unit=True)
    like = maps(by_layer, TOKENS)[-1]
    found = map_after(by_layer[-1], TOKENS, "t-SNE", 0, like)
    spread = [
        np.linalg.norm(one.points.values - one.points.values.mean(0)) for one in (found, like)
    ]
    assert spread[0] == pytest.approx(spread[1], rel=1e-4)
    with pytest.raises(ValueError, match="at least 4"):
        map_after(by_layer[-1][:3], TOKENS[:3], "t-SNE", 0, like)


def test_what_is_called_written_is_said_for_each_kind() -> None:
    said = {
        explain_written(tiny(residual=kind))
        for kind in ("pre-norm", "post-norm", "none", "parallel")
    }
    assert len(said) == 4
    assert (
        len({about_length(tiny(residual=kind)) for kind in ("pre-norm", "post-norm", "plain")}) == 3
    )
