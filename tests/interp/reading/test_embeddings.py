"""Projections and neighbours, against plain loops, numpy's SVD, and clouds whose answer is
known.
"""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gptviz.interp.reading import embeddings
from gptviz.model import Config, build


def cloud(tokens: int, size: int, seed: int = 0) -> embeddings.Vectors:
    return np.random.default_rng(seed).normal(size=(tokens, size)).astype(np.float32)


def labels(rows: embeddings.Vectors) -> list[str]:
    return [f"t{i}" for i in range(len(rows))]


def plane(tokens: int) -> embeddings.Vectors:
    """Points of a 2-D plane, turned into 32 dimensions."""
    axes, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(32, 2)))
    return (cloud(tokens, 2) @ axes.T).astype(np.float32)


@pytest.mark.parametrize("dimensions", [2, 3])
@pytest.mark.parametrize("shape", [(65, 32), (20, 48), (400, 3)])
def test_pca_is_the_singular_vectors_up_to_sign(shape: tuple[int, int], dimensions: int) -> None:
    rows = cloud(*shape) + 5  # far from the origin: a forgotten mean shows
    found = embeddings.project(rows, labels(rows), "PCA", dimensions)
    centred = rows.astype(np.float64) - rows.mean(axis=0, dtype=np.float64)
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    expected = u[:, :dimensions] * s[:dimensions]
    for column in range(dimensions):
        ours = found.points.values[:, column]
        theirs = expected[:, column]
        assert min(np.abs(ours - theirs).max(), np.abs(ours + theirs).max()) < 1e-3
    assert found.explained == pytest.approx(tuple(s[:dimensions] ** 2 / (s**2).sum()), abs=1e-5)


def test_pca_is_one_picture_not_two_mirrored_ones() -> None:
    rows = cloud(30, 8)
    points, _ = embeddings.pca(rows, 2)
    mirrored, _ = embeddings.pca(-rows, 2)
    farthest = np.abs(points).argmax(axis=0)
    assert (points[farthest, [0, 1]] > 0).all()
    assert (mirrored[farthest, [0, 1]] > 0).all()


@pytest.mark.parametrize("shape", [(1, 4), (2, 1), (5, 2)])
def test_pca_of_fewer_tokens_or_dimensions_than_asked_for_is_padded_with_zeros(
    shape: tuple[int, int],
) -> None:
    points, explained = embeddings.pca(cloud(*shape), 3)
    assert points.shape == (shape[0], 3)
    assert np.isfinite(points).all()
    assert len(explained) == 3
    assert np.abs(points[:, min(shape[0] - 1, shape[1]) :]).max() < 1e-5


def test_pca_of_fifty_thousand_tokens_never_holds_the_distances_of_all_pairs() -> None:
    rows = cloud(50_257, 64)
    points, explained = embeddings.pca(rows, 2)
    assert points.shape == (50_257, 2)
    assert points[:, 0].var() == pytest.approx(explained[0] * rows.var(axis=0).sum(), rel=1e-3)


@pytest.mark.parametrize("size", [4, 9, 300])
def test_trustworthiness_is_that_of_scikit_learn(size: int) -> None:
    from sklearn.manifold import trustworthiness

    rows = cloud(size, 8)
    found = embeddings.project(rows, labels(rows), "PCA")
    expected = trustworthiness(rows, found.points.values, n_neighbors=min(5, (size - 1) // 2))
    assert embeddings.trustworthiness(rows, found) == (pytest.approx(expected, abs=1e-9), size)


def test_trust_is_judged_on_a_bounded_sample_and_not_at_all_on_three_tokens() -> None:
    many = plane(3_000)
    trusted, judged = embeddings.trustworthiness(
        many, embeddings.project(many, labels(many), "PCA")
    )
    assert (trusted, judged) == (pytest.approx(1, abs=1e-3), 2_000)
    few = cloud(3, 4)
    assert math.isnan(
        embeddings.trustworthiness(few, embeddings.project(few, labels(few), "PCA"))[0]
    )


@pytest.mark.parametrize("method", ["PCA", "t-SNE"])
@pytest.mark.parametrize("dimensions", [2, 3])
def test_equal_vectors_are_an_equal_picture_whatever_came_between(
    method: str, dimensions: int
) -> None:
    last = cloud(24, 6)
    other = cloud(24, 6, seed=1)
    pictures = [
        embeddings.project(rows, labels(rows), method, dimensions, 2, reference=last).points.values
        for rows in (other, last, other.copy())
    ]
    assert (pictures[0] == pictures[2]).all()
    assert np.abs(pictures[0] - pictures[1]).max() > 0.1
    own = embeddings.project(last, labels(last), method, dimensions, 2).points.values
    assert (own == pictures[1]).all(), "the model as saved is its own reference"


@given(st.integers(0, 2**32 - 1), st.sets(st.integers(0, 29), max_size=29), st.floats(0.01, 100))
def test_a_vector_that_did_not_change_does_not_move_when_others_do(
    seed: int, moved: set[int], far: float
) -> None:
    last = cloud(30, 8)
    early = cloud(30, 8, seed=1)
    late = early.copy()
    which = sorted(moved)
    late[which] += far * np.random.default_rng(seed).normal(size=(len(which), 8)).astype(np.float32)
    before, after = (embeddings.pca(rows, 2, last)[0] for rows in (early, late))
    kept = [i for i in range(30) if i not in moved]
    np.testing.assert_array_equal(before[kept], after[kept])


def test_what_turns_in_truth_turns_in_the_picture_and_nothing_else_does() -> None:
    last = cloud(40, 5) * np.array([9, 5, 1, 1, 1], np.float32)
    axes = embeddings.principal_axes(last, 2)
    np.testing.assert_allclose(axes.directions.T @ axes.directions, np.eye(2), atol=1e-5)
    # Twice as far from the origin in truth is twice as far in the picture, the same way; a shift is
    # the same shift for all.
    around = axes.origin + 2 * (last - axes.origin)
    np.testing.assert_allclose(axes.place(around), 2 * axes.place(last), rtol=1e-4, atol=1e-4)
    shift = np.float32(0.5) * axes.directions[:, 1]
    np.testing.assert_allclose(
        axes.place(last + shift) - axes.place(last), np.tile([0, 0.5], (40, 1)), atol=1e-4
    )


def test_the_variance_told_is_that_of_the_rows_shown_along_the_axes_shown() -> None:
    last = cloud(50, 12) * np.linspace(3, 1, 12, dtype=np.float32)
    early = cloud(50, 12, seed=4) + 7
    points, told = embeddings.pca(early, 3, last)
    assert told == pytest.approx(
        [points[:, i].var() / early.var(axis=0).sum() for i in range(3)], rel=1e-4
    )
    assert sum(told) <= sum(embeddings.pca(early, 3)[1]) + 1e-6, (
        "no axes explain more than one's own"
    )
    assert sum(embeddings.pca(last, 3, last)[1]) > sum(told)
    assert embeddings.pca(np.ones((4, 3), np.float32), 2, last[:, :3])[1] == (0, 0)


def test_trust_is_judged_against_the_rows_shown_and_not_the_reference() -> None:
    flat = plane(200)
    noise = cloud(200, 32)
    seen = embeddings.project(noise, labels(noise), "PCA", reference=flat)
    assert embeddings.trustworthiness(noise, seen)[0] < 0.75


@pytest.mark.parametrize("dimensions", [2, 3])
def test_a_picture_is_turned_and_mirrored_but_not_bent(dimensions: int) -> None:
    points = cloud(30, dimensions)
    turn, _ = np.linalg.qr(np.random.default_rng(5).normal(size=(dimensions, dimensions)))
    for around in (turn, -turn):
        np.testing.assert_allclose(
            embeddings.align_points(points @ around.astype(np.float32) + 3, points),
            points - points.mean(0),
            atol=1e-4,
        )
    other = embeddings.align_points(points, cloud(30, dimensions, seed=9))
    apart, before = (np.linalg.norm(p[:, None] - p[None], axis=-1) for p in (other, points))
    np.testing.assert_allclose(apart, before, atol=1e-4)


def test_a_picture_is_as_widely_spread_as_the_one_it_is_resized_to() -> None:
    points = cloud(30, 2)
    like = 7 * cloud(30, 2, seed=9)
    plain, resized = (
        embeddings.align_points(points, like, resized=resized) for resized in (False, True)
    )
    assert np.linalg.norm(resized) == pytest.approx(np.linalg.norm(like - like.mean(0)), rel=1e-5)
    np.testing.assert_allclose(
        resized / np.linalg.norm(resized), plain / np.linalg.norm(plain), atol=1e-5
    )


def test_no_rotation_or_reflection_lies_nearer() -> None:
    like, points = (centred - centred.mean(0) for centred in (cloud(30, 2), cloud(30, 2, seed=9)))
    angles = np.linspace(0, 2 * np.pi, 720)
    turns = [
        np.array([[np.cos(a), -np.sin(a)], [sign * np.sin(a), sign * np.cos(a)]])
        for a in angles
        for sign in (1, -1)
    ]
    nearest = min(np.linalg.norm(points @ turn - like) for turn in turns)
    assert np.linalg.norm(embeddings.align_points(points, like) - like) <= nearest + 1e-4


def test_a_start_is_small_and_mostly_the_picture_it_is_given() -> None:
    points, _ = embeddings.pca(cloud(200, 8), 2)
    begun = embeddings.start(points, 3)
    assert begun[:, 0].std() == pytest.approx(1e-4, rel=0.2)
    assert np.corrcoef(begun[:, 0], points[:, 0])[0, 1] > 0.9
    assert (begun == embeddings.start(points, 3)).all()
    assert (begun != embeddings.start(points, 4)).any()
    assert np.isfinite(embeddings.start(np.zeros((5, 2), np.float32), 0)).all()


def test_a_carried_picture_moves_less_than_one_that_begins_anew_and_is_trusted_as_much() -> None:
    first = cloud(60, 8)
    second = first + 0.3 * cloud(60, 8, seed=5)
    before = embeddings.project(first, labels(first), "t-SNE")
    anew, carried, again = (
        embeddings.project(second, labels(second), "t-SNE", begin=begin)
        for begin in (None, before, before)
    )

    def moved(after: embeddings.Projection) -> float:
        return float(np.linalg.norm(after.points.values - before.points.values, axis=1).mean())

    assert moved(carried) < 0.7 * moved(anew)
    assert (carried.points.values == again.points.values).all()
    trusted = [embeddings.trustworthiness(second, one)[0] for one in (anew, carried)]
    assert trusted[1] > trusted[0] - 0.03


def test_the_reference_has_its_own_picture_and_a_picture_of_others_is_no_beginning() -> None:
    rows = cloud(30, 6)
    other = cloud(30, 6, seed=1)
    begin = embeddings.project(other, labels(other), "t-SNE", reference=rows)
    own = embeddings.project(rows, labels(rows), "t-SNE")
    found = embeddings.project(rows, labels(rows), "t-SNE", reference=rows, begin=begin)
    assert (found.points.values == own.points.values).all()
    with pytest.raises(ValueError, match="cannot begin"):
        embeddings.project(cloud(20, 6), ["x"] * 20, "t-SNE", begin=begin)


def test_tsne_keeps_two_clusters_apart() -> None:
    rows = np.concatenate((cloud(15, 16), cloud(15, 16, seed=1) + 20))
    found = embeddings.project(rows, labels(rows), "t-SNE")
    points = found.points.values
    centres = points[:15].mean(axis=0), points[15:].mean(axis=0)
    own = np.linalg.norm(points - np.repeat(centres, 15, axis=0), axis=1)
    foreign = np.linalg.norm(points - np.repeat(centres[::-1], 15, axis=0), axis=1)
    assert (own < foreign).all()
    assert embeddings.trustworthiness(rows, found)[0] > 0.8


@pytest.mark.full
def test_umap_keeps_two_clusters_apart_in_three_dimensions_for_any_seed() -> None:
    # In a process of its own: its compiler's threads and its eleven seconds of imports stay out of
    # the other tests.
    script = """
import numpy as np
from gptviz.interp.reading import embeddings
draw = np.random.default_rng(0).normal
rows = np.concatenate((draw(size=(20, 16)), draw(size=(20, 16)) + 20)).astype(np.float32)
first, again = (embeddings.project(rows, ["x"] * 40, "UMAP", 3, seed=1).points.values for _ in range(2))
assert first.shape == (40, 3) and (first == again).all()
apart = np.linalg.norm(first[:, None] - first[None], axis=-1)
np.fill_diagonal(apart, np.inf)
assert ((apart.argmin(axis=1) < 20) == (np.arange(40) < 20)).all()
other = draw(size=(40, 16)).astype(np.float32)
seen = [embeddings.project(r, ["x"] * 40, "UMAP", 2, reference=rows).points.values for r in (other, rows, other.copy())]
assert (seen[0] == seen[2]).all() and np.abs(seen[0] - seen[1]).max() > 0.1
assert embeddings.umap(rows[:5], rows[:5, :2], seed=0).shape == (5, 2)
begin = embeddings.project(rows, ["x"] * 40, "UMAP", 2)
moved = []
for _ in range(8):  # a picture made anew may by chance be much like the one before: the mean of several is not
    near = rows + (0.2 * draw(size=(40, 16))).astype(np.float32)
    after = [embeddings.project(near, ["x"] * 40, "UMAP", 2, begin=one).points.values for one in (None, begin)]
    moved.append([np.linalg.norm(one - begin.points.values, axis=1).mean() for one in after])
assert (embeddings.project(near, ["x"] * 40, "UMAP", 2, begin=begin).points.values == after[1]).all()
anew, carried = np.mean(moved, axis=0)
assert carried < anew
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True)


def test_a_handful_of_tokens_is_refused_with_a_sentence() -> None:
    rows = cloud(3, 4)
    for method in ("t-SNE", "UMAP"):
        with pytest.raises(ValueError, match="at least 4 tokens; this vocabulary has 3"):
            embeddings.project(rows, labels(rows), method)
    assert embeddings.project(cloud(4, 4), ["a", "b", "c", "d"], "t-SNE").points.values.shape == (
        4,
        2,
    )


def test_without_its_package_umap_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "umap", None)
    rows = cloud(5, 4)
    with pytest.raises(ValueError, match="pip install umap-learn"):
        embeddings.project(rows, labels(rows), "UMAP")


def test_a_sample_is_seeded_sorted_and_without_repeats() -> None:
    ids = embeddings.sample(50_257, 5_000, seed=3)
    assert len(set(ids.tolist())) == len(ids) == 5_000
    assert (np.diff(ids) > 0).all()
    assert ids.max() < 50_257
    assert (ids == embeddings.sample(50_257, 5_000, seed=3)).all()
    assert (ids != embeddings.sample(50_257, 5_000, seed=4)).any()
    assert embeddings.sample(7, 5_000, seed=3).tolist() == list(range(7))


def test_a_sampled_projection_knows_which_tokens_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embeddings, "MOST_PLACED", 12)
    monkeypatch.setattr(embeddings, "ITERATIONS", 250)
    rows = cloud(40, 4)
    found = embeddings.project(rows, labels(rows), "t-SNE")
    assert found.points.axes[0].labels == tuple(f"t{i}" for i in found.ids)
    assert [found.index(int(i)) for i in found.ids] == list(range(12))
    assert {found.index(i) for i in set(range(40)) - set(found.ids.tolist())} == {None}


def test_of_a_large_picture_a_sample_is_drawn_with_the_tokens_that_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(embeddings, "MOST_PLACED", 12)
    rows = cloud(40, 4)
    whole = embeddings.project(rows, labels(rows), "PCA")
    drawn = whole.sample_drawn([39, 0, 39])
    assert {0, 39} <= set(drawn.ids.tolist())
    assert 12 <= len(drawn.ids) <= 14
    assert drawn.explained == whole.explained
    for place, token in enumerate(drawn.ids.tolist()):
        assert drawn.points.axes[0].labels[place] == f"t{token}"
        np.testing.assert_array_equal(drawn.points.values[place], whole.points.values[token])
    few = embeddings.project(rows[:12], labels(rows[:12]), "PCA")
    assert few.sample_drawn([3]) is few


def test_mean_cosines_and_nearest_tokens_equal_a_loop() -> None:
    rows = cloud(20, 5)

    def cosine(i: int, j: int) -> float:
        return float(rows[i] @ rows[j] / (np.linalg.norm(rows[i]) * np.linalg.norm(rows[j])))

    some = [1, 4, 7, 9]
    others = [0, 3, 11]
    within = [cosine(i, j) for i in some for j in some if i != j]
    assert embeddings.mean_cosine(rows, some, some) == pytest.approx(np.mean(within), abs=1e-6)
    across = [cosine(i, j) for i in some for j in others]
    assert embeddings.mean_cosine(rows, some, others) == pytest.approx(np.mean(across), abs=1e-6)
    nearest = [max((j for j in range(20) if j != i), key=lambda j: cosine(i, j)) for i in some]
    assert embeddings.share_beside_own(rows, some) == np.mean([j in some for j in nearest])
    assert math.isnan(embeddings.mean_cosine(rows, [1], [1]))
    assert math.isnan(embeddings.share_beside_own(rows, []))


def test_neighbours_equal_a_loop() -> None:
    rows = cloud(25, 6)
    found = embeddings.neighbours(rows, labels(rows), token=7, count=5)

    def cosine(a: embeddings.Vectors, b: embeddings.Vectors) -> float:
        dot = sum(float(x) * float(y) for x, y in zip(a, b, strict=True))
        return dot / math.sqrt(sum(float(x) ** 2 for x in a) * sum(float(y) ** 2 for y in b))

    expected = sorted((i for i in range(25) if i != 7), key=lambda i: -cosine(rows[i], rows[7]))[:5]
    assert list(found.ids) == expected
    assert found.similarity.values == pytest.approx(
        [cosine(rows[i], rows[7]) for i in expected], abs=1e-6
    )
    assert found.similarity.axes[0].labels == tuple(f"t{i}" for i in expected)


def test_a_token_of_zeros_has_neighbours_that_are_not_like_it() -> None:
    rows = cloud(5, 3)
    rows[2] = 0
    assert embeddings.neighbours(rows, labels(rows), token=2).similarity.values.tolist() == [0] * 4
    assert np.isfinite(embeddings.neighbours(rows, labels(rows), token=0).similarity.values).all()


def test_vectors_are_the_models_matrices() -> None:
    free = build(Config(vocab_size=7, context_length=4, d_model=6, n_layer=1), seed=0)
    assert torch.equal(
        torch.from_numpy(embeddings.vectors(free, "embedding")), free.embed.weight.detach()
    )
    assert torch.equal(
        torch.from_numpy(embeddings.vectors(free, "unembedding")), free.head.unembed.weight.detach()
    )
    assert not np.array_equal(
        embeddings.vectors(free, "embedding"), embeddings.vectors(free, "unembedding")
    )
    tied = build(Config(vocab_size=7, context_length=4, d_model=6, n_layer=1, tied=True), seed=0)
    assert np.array_equal(
        embeddings.vectors(tied, "embedding"), embeddings.vectors(tied, "unembedding")
    )


def test_stability_is_the_share_of_neighbours_that_two_pictures_have_in_common() -> None:
    pictures = [cloud(30, 2, seed=seed) for seed in range(3)]

    def nearest(points: embeddings.Vectors, i: int) -> set[int]:
        others = sorted(
            (j for j in range(len(points)) if j != i),
            key=lambda j: float(np.linalg.norm(points[i] - points[j])),
        )
        return set(others[:5])

    shared = [
        len(nearest(pictures[a], i) & nearest(pictures[b], i)) / 5
        for a in range(3)
        for b in range(a)
        for i in range(30)
    ]
    found = embeddings.stability(pictures)
    assert found.kept == pytest.approx(np.mean(shared))
    assert (found.neighbours, found.pictures) == (5, 3)
    assert found.by_chance == pytest.approx(5 / 29)


def test_pictures_that_differ_in_place_size_and_turn_alone_agree_and_noise_does_by_chance() -> None:
    points = cloud(400, 2)
    assert embeddings.stability([points, 3 * points[:, ::-1] + 7]).kept == 1
    noise = embeddings.stability([cloud(400, 2, seed=seed) for seed in range(4)])
    assert noise.kept == pytest.approx(noise.by_chance, abs=0.01)
    assert math.isnan(embeddings.stability([points]).kept)
    assert math.isnan(embeddings.stability([points[:3], points[:3]]).kept)


def test_every_seed_places_the_same_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embeddings, "MOST_PLACED", 12)
    monkeypatch.setattr(embeddings, "ITERATIONS", 250)
    rows = cloud(40, 4)
    one, other = (embeddings.project(rows, labels(rows), "t-SNE", seed=seed) for seed in (0, 1))
    np.testing.assert_array_equal(one.ids, other.ids)
    assert np.abs(one.points.values - other.points.values).max() > 1e-3
