"""What is shown of positions, against plain loops and against what the encodings do to vectors."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import torch

from gptviz.interp.reading import positions
from gptviz.labelled_array import Axis, LabelledArray
from gptviz.model import Config, Transformer, build
from gptviz.model.parts.positions import POSITIONS, Alibi, Rotary
from tests.tiny import tiny


def model(kind: str, **changes: object) -> Transformer:
    sizes = {"vocab_size": 11, "context_length": 24, "d_model": 32, "n_layer": 2, "n_head": 4}
    return build(Config(**(sizes | {"positions": kind} | changes)), seed=3)  # type: ignore[arg-type]


def table(values: np.ndarray) -> LabelledArray:
    rows, columns = values.shape
    return LabelledArray(
        values,
        (
            Axis("position", tuple(map(str, range(rows)))),
            Axis("dimension", tuple(map(str, range(columns)))),
        ),
        "value",
    )


def test_the_cosine_equals_a_loop() -> None:
    values = np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32)
    found = positions.similarity(table(values)).values
    for i in range(6):
        for j in range(6):
            dot = sum(float(a) * float(b) for a, b in zip(values[i], values[j], strict=True))
            lengths = math.sqrt(sum(float(a) ** 2 for a in values[i])) * math.sqrt(
                sum(float(b) ** 2 for b in values[j])
            )
            assert found[i, j] == pytest.approx(dot / lengths, abs=1e-6)


def test_a_row_of_zeros_has_no_cosine_and_spoils_no_other() -> None:
    square = positions.similarity(table(np.array([[1.0, 0.0], [0.0, 0.0], [2.0, 0.0]], np.float32)))
    assert np.isnan(square.values[1]).all()
    assert square.values[0, 2] == pytest.approx(1)
    assert positions.spread(square) == 0


@pytest.mark.parametrize("kind", ["sinusoidal", "rotary"])
def test_similarity_is_constant_along_diagonals_and_no_longer_once_rows_are_shuffled(
    kind: str,
) -> None:
    vectors = positions.vectors(model("learned"), kind)
    assert positions.spread(positions.similarity(vectors)) < 1e-6
    shuffled = np.random.default_rng(0).permutation(vectors.values)
    assert positions.spread(positions.similarity(table(shuffled))) > 0.1


def test_the_rotary_map_is_what_turning_does_to_the_product_of_a_query_and_a_key() -> None:
    shown = positions.similarity(positions.vectors(model("rotary"), "rotary")).values
    # the halves of a head are its pairs: each pair is (1, 0)
    pairs = torch.tensor([1.0] * 4 + [0.0] * 4)
    turned = Rotary(model("rotary").config).turn(pairs.expand(1, 1, 24, 8), slice(0, 24))[0, 0]
    assert np.abs(shown - (turned @ turned.T / 4).numpy()).max() < 1e-6


def test_learned_vectors_are_the_models_own_rows() -> None:
    learned = model("learned")
    assert (
        positions.vectors(learned, "learned").values
        == learned.positions.table.weight.detach().numpy()
    ).all()  # type: ignore[union-attr]


def test_relative_vectors_belong_to_their_distances() -> None:
    relative = model("relative")
    found = positions.vectors(relative, "relative", block=1)
    own = relative.blocks[1].attention.positions  # type: ignore[union-attr]
    q = torch.randn(1, 4, 1, 8, generator=torch.Generator().manual_seed(0))
    # The query at the last position: what the model adds to its score with the key at each
    # distance.
    added = own.weigh(torch.zeros(1, 4, 1, 24), q, slice(23, 24))[0, :, 0]  # [head, key]
    assert found.axes[0].labels == tuple(map(str, range(24)))
    for distance in (0, 1, 9, 23):
        row = torch.from_numpy(found.values[distance]).unflatten(0, (4, 8))
        assert torch.allclose((row * q[0, :, 0]).sum(-1), added[:, 23 - distance], atol=1e-6)


def test_relative_vectors_for_keys_ahead_are_shown_where_nothing_hides_them() -> None:
    found = positions.vectors(model("relative", mask="full"), "relative")
    assert (found.axes[0].labels[0], found.axes[0].labels[-1]) == ("-23", "23")
    assert found.values.shape == (47, 32)


def test_alibi_is_its_slopes_times_the_distance() -> None:
    found = positions.score_bias(model("alibi")).values
    slopes = Alibi(model("alibi").config).slopes.numpy()
    assert np.allclose(found, -slopes[:, None] * np.arange(24), atol=1e-6)
    assert slopes.tolist() == [2**-2, 2**-4, 2**-6, 2**-8]


def test_a_wave_repeats_after_its_period() -> None:
    size = 32
    dimension = 6
    period = positions.period(dimension, size)
    frequency = 10_000 ** (-dimension / size)
    assert math.sin(frequency * (5 + period)) == pytest.approx(math.sin(frequency * 5))
    assert positions.period(dimension + 1, size) == period


def test_a_pair_comes_round_after_its_turn_whatever_the_base_the_share_and_the_scaling() -> None:
    for changes in (
        {},
        {"rotary_base": 50.0, "rotary_fraction": 0.5},
        {"rotary_scaling": "linear", "rotary_factor": 4.0},
        {"window": 2, "window_pattern": "fw", "window_rotary_base": 20.0},
    ):
        built = build(tiny(positions="rotary", d_head=8, context_length=64, **changes), seed=0)
        assert positions.differ_by_block(built.config) == ("window" in changes)
        for block in range(2):
            # [position, d_head]: cosines, then sines
            vectors = positions.vectors(built, "rotary", block).values
            for pair in range(4):
                turn = positions.turn(built, pair, block)
                angle = [0.0 if math.isinf(turn) else 2 * math.pi * p / turn for p in range(64)]
                np.testing.assert_allclose(vectors[:, pair], np.cos(angle), atol=1e-5)
                np.testing.assert_allclose(vectors[:, 4 + pair], np.sin(angle), atol=1e-5)


def test_odd_sizes_rule_out_the_kinds_that_pair_numbers() -> None:
    assert positions.fixed_kinds(model("learned").config) == (
        "sinusoidal",
        "sines-first",
        "rotary",
        "alibi",
    )
    odd = model("learned", d_model=9, n_head=3)
    assert positions.fixed_kinds(odd.config) == ("alibi",)
    with pytest.raises(ValueError, match="no rotary positions"):
        positions.vectors(odd, "rotary")


def test_positions_that_act_in_attention_are_absent_without_blocks() -> None:
    assert positions.own_kind(model("rotary", n_layer=0)) == "none"
    assert positions.own_kind(model("learned", n_layer=0)) == "learned"


def test_a_long_context_is_thinned_evenly() -> None:
    long = model("sinusoidal", context_length=5_000, d_model=4, n_head=1)
    found = positions.vectors(long, "sinusoidal")
    assert found.axes[0].labels[:3] == ("0", "4", "8")
    assert len(found.values) == 512
    assert found.values[3] == pytest.approx(
        [math.sin(12), math.cos(12), math.sin(0.12), math.cos(0.12)], abs=1e-6
    )


def test_looking_leaves_the_model_as_it_was() -> None:
    rotary = model("rotary")
    before = {name: value.clone() for name, value in rotary.state_dict().items()}
    for kind in ("sinusoidal", "rotary"):
        positions.vectors(rotary, kind)
    positions.score_bias(rotary)
    assert all(torch.equal(before[name], value) for name, value in rotary.state_dict().items())


@pytest.mark.parametrize("kind", POSITIONS)
def test_a_kind_says_whether_it_has_weights(kind: str) -> None:
    has_weights = any(True for _ in POSITIONS[kind](tiny(positions=kind, d_head=4)).parameters())
    assert POSITIONS[kind].is_trained == has_weights
    assert positions.is_fixed(kind) == (kind in ("sinusoidal", "sines-first", "rotary", "alibi"))


def test_how_alike_near_and_far_places_are_is_the_mean_of_a_diagonal() -> None:
    values = np.random.default_rng(0).normal(size=(7, 7))
    axis = Axis("position", tuple(map(str, range(7))))
    near, far = positions.nearness(LabelledArray(values, (axis, axis), "cosine"))
    assert near == pytest.approx(np.mean([values[i, i + 1] for i in range(6)]))
    assert far == pytest.approx(np.mean([values[i, i + 3] for i in range(4)]))
    # a vector of zeros has no angle to any other
    values[2:] = values[:, 2:] = np.nan
    with warnings.catch_warnings(action="error"):
        near, far = positions.nearness(LabelledArray(values, (axis, axis), "cosine"))
    assert near == pytest.approx(values[0, 1])
    assert math.isnan(far)


def test_a_head_reaches_as_far_as_it_takes_less_than_1() -> None:
    bias = LabelledArray(
        np.array([[0, -0.4, -0.8, -1.2], [0, -2, -4, -6], [0, -0.1, -0.2, -0.3]]),
        (Axis("head", ("0", "1", "2")), Axis("distance", ("0", "1", "2", "3"))),
        "added to the score",
    )
    assert positions.head_reach(bias) == (3, 1, None)
