"""The token embedding and the unembedding as maps: projections to 2 or 3 dimensions, and what each
of them loses.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gptviz.labelled_array import Axis, LabelledArray
from gptviz.model import Transformer
from gptviz.model.parts.heads import Unembed
from gptviz.settings.kinds import Projector

Vectors = npt.NDArray[np.float32]

SPACES = ("embedding", "unembedding")
# The settings of Sinai 2024: perplexity 20, 1,000 iterations.
PERPLEXITY = 20.0
ITERATIONS = 1_000
# t-SNE takes about 10 s for 5,000 tokens on a laptop, and the time grows faster than the number of
# tokens.
MOST_PLACED = 5_000
MOST_JUDGED = 2_000
FEWEST_PLACED = 4
MOST_COMPARED = 500
# This many rows are computed with at a time, and so many of those that are compared with all
# others.
PART = 8_192
COMPARED_AT_ONCE = 50
# The spread of the points that t-SNE and UMAP start from, so small that t-SNE sorts the points
# before it pushes them apart, and how large the seeded noise in it is compared with the picture by
# PCA (Kobak & Berens 2019).
START = 1e-4
CHANCE = 0.25
# How a finished picture is carried on to vectors that are a little different: gently, so that it
# changes where they did. Of the shipped generator's snapshots, tokens then move 0.44 (t-SNE) and
# 0.63 (UMAP) of the picture's spread from one to the next on average, instead of 1.99 and 0.87, at
# the same trustworthiness; the vectors themselves move 0.28 of theirs.
CARRIED_ITERATIONS = 500
CARRIED_EPOCHS = 200
CARRIED_RATE = 0.1


@dataclass(frozen=True)
class Projection:
    """Where a method puts tokens."""

    points: LabelledArray  #: [token, component]
    #: [token], the id of each token in the picture, in rising order: all tokens, or a sample
    ids: npt.NDArray[np.int64]
    #: for PCA, the share of the variance along each component; empty for the other methods
    explained: tuple[float, ...] = ()

    def index(self, token: int) -> int | None:
        """Which point stands for the token with this id, or None if it is not in the sample."""
        index = int(np.searchsorted(self.ids, token))
        if index < len(self.ids) and self.ids[index] == token:
            return index
        return None

    def sample_drawn(self, also: Iterable[int]) -> Projection:
        """What is drawn of the picture: all of it, or a sample of at most 5,000 tokens, and those
        of `also` that are in it.
        """
        if len(self.ids) <= MOST_PLACED:
            return self
        named = [index for index in map(self.index, also) if index is not None]
        which = np.union1d(sample(len(self.ids), MOST_PLACED, seed=0), np.array(named, np.int64))
        tokens, components = self.points.axes
        some = Axis(tokens.name, tuple(tokens.labels[i] for i in which.tolist()))
        points = LabelledArray(self.points.values[which], (some, components), self.points.unit)
        return Projection(points, self.ids[which], self.explained)


@dataclass(frozen=True)
class Neighbours:
    """The tokens whose vectors have the most similar direction to the vector of one token."""

    ids: tuple[int, ...]  #: the nearest first
    similarity: LabelledArray  #: [neighbour], the cosine, from -1 to 1


def vectors(model: Transformer, space: str) -> Vectors:
    """One row per token, [vocab_size, d_model]: in the space "embedding" the vectors that tokens
    are read as; in the "unembedding" the rows of the output matrix, whose product with the final
    residual stream is a token's logit. A ValueError if the model is a classifier, whose output has
    no row per token.
    """
    if space == "embedding":
        weight = model.embed.weight
    elif isinstance(model.head, Unembed):
        weight = model.head.unembed.weight
    else:
        raise ValueError("this model is a classifier: it has no unembedding")
    rows: Vectors = weight.detach().float().cpu().numpy()
    return rows


@dataclass(frozen=True)
class PrincipalAxes:
    """The axes of a picture. All snapshots of a model share them, so that a point moves only when
    its vector changed.
    """

    origin: Vectors  #: [d], the vector in the middle of the picture
    #: [d, component], orthonormal; a column is zero where there are no more directions
    directions: Vectors

    def place(self, rows: Vectors) -> Vectors:
        """The coordinates [token, component] of `rows` [token, d]. The coordinates of a row depend
        on no other row.
        """
        return np.concatenate(
            [(part - self.origin) @ self.directions for part in _parts(rows)]
        ).astype(np.float32, copy=False)

    def explained_variance(self, rows: Vectors) -> tuple[float, ...]:
        """The share of the variance of `rows` [token, d] along each direction, about their own
        mean.
        """
        mean = rows.mean(axis=0, dtype=np.float64)
        total = float(sum(np.square(part - mean).sum() for part in _parts(rows))) / max(
            1, len(rows)
        )
        along = self.place(rows).var(axis=0, dtype=np.float64)
        return tuple(float(v) / total if total > 0 else 0.0 for v in along)


def _parts(rows: Vectors) -> list[Vectors]:
    """The `rows`, some thousands at a time: a copy of all rows of a large vocabulary takes as much
    memory as the model.
    """
    if len(rows):
        return np.array_split(rows, -(-len(rows) // PART))
    return [rows]


def principal_axes(rows: Vectors, dimensions: int) -> PrincipalAxes:
    """The directions in which the centred `rows` [token, d] vary most.

    They are the eigenvectors of the covariance matrix with the largest eigenvalues (Pearson 1901),
    which is quick where there are far more tokens than dimensions; where there are fewer, they come
    from the eigenvectors of the products of rows, and are zero where there are no more of them. The
    sign of a direction is arbitrary: the coordinate farthest from 0 is made positive.
    """
    origin = rows.mean(axis=0, dtype=np.float64).astype(np.float32)
    size = rows.shape[1]
    n_directions = min(dimensions, size, len(rows))
    if len(rows) < size:
        exact = (rows - origin).astype(np.float64)
        # [token], [token, token], by rising eigenvalue
        eigenvalues, eigenvectors = np.linalg.eigh(exact @ exact.T)
        largest = eigenvalues[: -n_directions - 1 : -1]  # [n_directions]
        principal = (
            exact.T @ eigenvectors[:, : -n_directions - 1 : -1]
        )  # [d, n_directions], as long as the root of each eigenvalue
        real = largest > 1e-12 * max(float(eigenvalues[-1]), 1e-300)
        principal = np.where(real, principal / np.sqrt(np.where(real, largest, 1.0)), 0.0)
    else:
        covariance = np.zeros((size, size))
        for part in _parts(rows):
            centred = part - origin
            # as one matrix it takes half the time: the product is symmetric
            covariance += centred.T @ centred
        # by falling eigenvalue
        principal = np.linalg.eigh(covariance)[1][:, : -n_directions - 1 : -1]
    directions: Vectors = np.zeros((size, dimensions), np.float32)
    directions[:, :n_directions] = principal
    points = PrincipalAxes(origin, directions).place(rows)
    # [1, dimensions]
    farthest = np.take_along_axis(points, np.abs(points).argmax(axis=0)[None], axis=0)
    directions[:, farthest[0] < 0] *= -1
    return PrincipalAxes(origin, directions)


def pca(
    rows: Vectors, dimensions: int, reference: Vectors | None = None
) -> tuple[Vectors, tuple[float, ...]]:
    """The coordinates [token, dimensions] of `rows` [token, d] along principal axes (their own, or
    those of a `reference`), and the share of their variance along each.
    """
    axes = principal_axes(rows if reference is None else reference, dimensions)
    return axes.place(rows), axes.explained_variance(rows)


def project(
    rows: Vectors,
    labels: Sequence[str],
    method: Projector,
    dimensions: int = 2,
    seed: int = 0,
    *,
    reference: Vectors | None = None,
    begin: Projection | None = None,
) -> Projection:
    """A picture of `rows` [token, d] in 2 or 3 `dimensions`.

    Equal arguments give equal pictures; PCA does not depend on the seed. PCA places all tokens, the
    others a sample of at most 5,000, the same for every seed. t-SNE and UMAP start from the picture
    by PCA with a little noise from the seed, or from `begin`, and their result is rotated and
    mirrored to match that.

    Args:
        method: what it is made by.
        reference: rows [token, d] whose principal axes PCA uses; those of `rows` unless given. With
            one reference for all snapshots of a model, their pictures can be compared.
        begin: the finished picture of vectors that are little different, such as those of the next
            snapshot, by the same method and seed. t-SNE and UMAP start from it instead, and change
            it gently. Rows equal to the reference do not need it: they have the reference's own
            picture.

    Raises:
        ValueError: t-SNE or UMAP was asked to place fewer than 4 tokens, or `begin` is a picture of
            other tokens.
    """
    ids = np.arange(len(rows))
    points, explained = pca(rows, dimensions, reference)
    if method != "PCA":
        if len(rows) < FEWEST_PLACED:
            raise ValueError(
                f"{method} needs at least {FEWEST_PLACED} tokens; this vocabulary has {len(rows)}"
            )
        ids = sample(len(rows), MOST_PLACED, seed=0)
        if begin is not None and begin.points.values.shape != (len(ids), dimensions):
            raise ValueError(
                f"{method} cannot begin with a picture of the shape {begin.points.values.shape}"
            )
        if reference is not None and np.array_equal(rows, reference):
            begin = None
        if begin is None:
            like = points[ids]
        else:
            like = np.asarray(begin.points.values, np.float32)
        place = {"t-SNE": tsne, "UMAP": umap}[method]
        placed = place(
            rows[ids], start(like, seed) if begin is None else like, seed, carried=begin is not None
        )
        points = align_points(placed, like, resized=begin is not None)
        explained = ()
    tokens = Axis("token", tuple(labels[i] for i in ids.tolist()))
    components = Axis("component", tuple(str(i + 1) for i in range(dimensions)))
    return Projection(LabelledArray(points, (tokens, components), "coordinate"), ids, explained)


def start(points: Vectors, seed: int) -> Vectors:
    """The points [token, dimensions] that t-SNE and UMAP start from: `points` scaled down, with a
    little noise from the seed.
    """
    spread = max(float(points[:, 0].std()), 1e-12)
    noise = np.random.default_rng(seed).normal(size=points.shape)
    return np.asarray(START * (points / spread + CHANCE * noise), np.float32)


def sample(size: int, most: int, seed: int) -> npt.NDArray[np.int64]:
    """All of `size` indices, or `most` of them drawn at random, in order."""
    if size <= most:
        return np.arange(size)
    return np.sort(np.random.default_rng(seed).choice(size, most, replace=False))


def align_points(points: Vectors, like: Vectors, *, resized: bool = False) -> Vectors:
    """The `points` [token, dimensions], centred, then rotated or mirrored to lie as near as
    possible to `like`.

    The directions of such a picture mean nothing, so rotating it loses nothing, and makes two
    pictures comparable. Nor does the size of a picture by t-SNE or UMAP: where they are `resized`,
    the points are also scaled to be as widely spread as `like`.

    Source: Schönemann 1966, orthogonal Procrustes.
    """
    centred, other = (picture - picture.mean(axis=0) for picture in (points, like))
    left, _, right = np.linalg.svd(centred.T.astype(np.float64) @ other)
    if resized:
        size = float(np.linalg.norm(other) / (np.linalg.norm(centred) or 1.0))
    else:
        size = 1.0
    return np.asarray(size * centred @ (left @ right), np.float32)


def tsne(rows: Vectors, start: Vectors, seed: int, *, carried: bool = False) -> Vectors:
    """The picture by t-SNE [token, dimensions] from `start`: it keeps neighbours together, but not
    distances. Where it is `carried`, `start` is a finished picture, which is changed gently.

    Source: van der Maaten & Hinton 2008.
    """
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    perplexity = min(PERPLEXITY, (len(rows) - 1) / 3)
    # Exaggeration would first pull the finished picture together, and lose it.
    if carried:
        how = {"max_iter": CARRIED_ITERATIONS, "early_exaggeration": 1.0}
    else:
        how = {"max_iter": ITERATIONS}
    method = TSNE(start.shape[1], perplexity=perplexity, init=start, random_state=seed, **how)
    # Several threads would wait for each other on cores that a training uses: 30 s instead of 0.7 s
    # for 65 tokens.
    with threadpool_limits(1):
        return method.fit_transform(rows)


def umap(rows: Vectors, start: Vectors, seed: int, *, carried: bool = False) -> Vectors:
    """The picture by UMAP [token, dimensions] from `start`, with UMAP's own defaults; `carried` as
    in `tsne`. The first call in a process compiles for 10 to 35 seconds.

    Raises:
        ValueError: umap-learn is not installed.

    Source: McInnes et al. 2018.
    """
    try:
        # importing it takes eleven seconds: only those who use UMAP should wait
        from umap import UMAP
    except ModuleNotFoundError as error:
        raise ValueError(
            "UMAP needs the package umap-learn, which is not installed: pip install umap-learn"
        ) from error

    neighbours = min(15, len(rows) - 1)
    if carried:
        how = {"n_epochs": CARRIED_EPOCHS, "learning_rate": CARRIED_RATE}
    else:
        how = {}
    method = UMAP(
        n_components=start.shape[1],
        n_neighbors=neighbours,
        init=start,
        random_state=seed,
        n_jobs=1,
        **how,
    )
    return method.fit_transform(rows)


def trustworthiness(rows: Vectors, projection: Projection) -> tuple[float, int]:
    """How far neighbours in the picture are neighbours in the original space too, and the number of
    tokens this was measured on.

    It is 1 where each of a point's 5 nearest in the picture is among its 5 nearest in the original
    space, and smaller the farther away false neighbours really are; about 0.5 by chance, NaN for
    fewer than 4 tokens. Measured on a fixed sample of at most 2,000 tokens.

    Source: Venna & Kaski 2001, as in `sklearn.manifold.trustworthiness`, which takes longer to
    import than this to compute.
    """
    chosen = sample(len(projection.ids), MOST_JUDGED, seed=0)
    size = len(chosen)
    count = min(5, (len(chosen) - 1) // 2)
    if size < FEWEST_PLACED:
        return math.nan, size
    # [token, token] each
    apart = _squared_distances(rows[projection.ids[chosen]])
    near = _squared_distances(projection.points.values[chosen])
    excess = 0
    for neighbour in np.argsort(near, axis=1, kind="stable")[:, :count].T:  # [token]
        # [token]
        rank = 1 + (apart < np.take_along_axis(apart, neighbour[:, None], axis=1)).sum(axis=1)
        excess += int(np.maximum(rank - count, 0).sum())
    return 1 - excess * 2 / (size * count * (2 * size - 3 * count - 1)), size


def _squared_distances(rows: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """The squared distance of every two of the `rows` [token, d]: [token, token], infinite from a
    token to itself.
    """
    exact = rows.astype(np.float64) - rows.mean(axis=0, dtype=np.float64)
    lengths = np.square(exact).sum(axis=1)
    apart: npt.NDArray[np.float64] = lengths[:, None] + lengths - 2 * exact @ exact.T
    np.fill_diagonal(apart, np.inf)
    return apart


@dataclass(frozen=True)
class Stability:
    """How far pictures of the same tokens by different seeds agree."""

    #: of a token's nearest neighbours in one picture, the mean share that are among its nearest in
    #: another
    kept: float
    by_chance: float  #: the same of pictures that have nothing in common
    neighbours: int  #: how many of the nearest were compared
    pictures: int  #: how many pictures were compared, each with each


def stability(pictures: Sequence[Vectors]) -> Stability:
    """How far `pictures` [token, dimensions] of the same tokens agree on the 5 nearest neighbours
    of each: those that only one seed has put next to a token say nothing about its vector.

    It is NaN for fewer than 4 tokens or 2 pictures.
    """
    from sklearn.neighbors import NearestNeighbors

    count = min(5, (len(pictures[0]) - 1) // 2) if pictures else 0
    if len(pictures) < 2 or len(pictures[0]) < FEWEST_PLACED:
        return Stability(math.nan, math.nan, count, len(pictures))
    size = len(pictures[0])
    # Without rows to ask for, a point is not its own neighbour.
    near = [
        NearestNeighbors(n_neighbors=count).fit(points).kneighbors(return_distance=False)
        for points in pictures
    ]
    shared = [
        # [token, neighbour, neighbour] → a share
        (one[:, :, None] == other[:, None]).any(-1).mean()
        for index, one in enumerate(near)
        for other in near[:index]
    ]
    return Stability(float(np.mean(shared)), count / (size - 1), count, len(pictures))


def cosine(rows: Vectors, one: int, other: int) -> float:
    """The cosine between the `rows` [token, d] of two tokens: 1 the same direction, 0 at right
    angles, −1 the opposite.
    """
    first, second = rows[[one, other]].astype(np.float64)
    return float(first @ second / (np.linalg.norm(first) * np.linalg.norm(second)))


def mean_cosine(rows: Vectors, some: Sequence[int], others: Sequence[int]) -> float:
    """The mean cosine of a token of `some` and another one of `others`, by their `rows` [token, d];
    NaN where there is no pair.

    The two are the same list, or have no token in common. Of more than 500 tokens of each, 500 are
    drawn.
    """
    first, second = (
        np.asarray(which)[sample(len(which), MOST_COMPARED, seed=0)] for which in (some, others)
    )
    cosine = _unit(rows[first]) @ _unit(rows[second]).T
    apart = first[:, None] != second[None]
    if apart.any():
        return float(cosine[apart].mean(dtype=np.float64))
    return math.nan


def share_beside_own(rows: Vectors, which: Sequence[int]) -> float:
    """The share of the tokens `which` whose nearest other token, by the cosine of their `rows`
    [token, d], is among `which` too.

    Of more than 500 tokens, it is that of 500 drawn. NaN where there is none.
    """
    if not which:
        return math.nan
    chosen = np.asarray(which)[sample(len(which), MOST_COMPARED, seed=0)]
    lengths = _lengths(rows)
    nearest = []
    for some in np.array_split(chosen, -(-len(chosen) // COMPARED_AT_ONCE)):
        cosine = _unit(rows[some]) @ rows.T / np.where(lengths > 0, lengths, 1)
        cosine[np.arange(len(some)), some] = -np.inf  # a token is not its own neighbour
        nearest.append(cosine.argmax(axis=1))
    return float(np.isin(np.concatenate(nearest), np.asarray(which)).mean())


def _lengths(rows: Vectors) -> Vectors:
    """The length of each row; no copy of the rows is made."""
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)), np.float32)


def _unit(rows: Vectors) -> Vectors:
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(length > 0, length, 1), np.float32)


def neighbours(rows: Vectors, labels: Sequence[str], token: int, count: int = 8) -> Neighbours:
    """The `count` tokens nearest to `token` by the cosine of their `rows` [token, d], over all
    dimensions.
    """
    length = _lengths(rows) * np.linalg.norm(rows[token])
    cosine = rows @ rows[token] / np.where(length > 0, length, 1)
    cosine[token] = -np.inf  # a token is not its own neighbour
    nearest = np.argsort(-cosine, kind="stable")[: min(count, len(rows) - 1)]
    values = np.clip(cosine[nearest], -1, 1).astype(np.float32)
    axis = Axis("token", tuple(labels[i] for i in nearest.tolist()))
    return Neighbours(tuple(map(int, nearest)), LabelledArray(values, (axis,), "cosine similarity"))
