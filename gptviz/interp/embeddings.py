"""The token embedding and the unembedding as maps: projections to 2 or 3 dimensions, and what each of them loses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gptviz.labelled_array import Axis, LabelledArray
from gptviz.model import Transformer
from gptviz.model.heads import Unembed

Vectors = npt.NDArray[np.float32]

SPACES = ("embedding", "unembedding")
METHODS = ("PCA", "t-SNE", "UMAP")
# The settings of the seed (Sinai 2024): perplexity 20, 1,000 iterations.
PERPLEXITY, ITERATIONS = 20.0, 1_000
# t-SNE takes about 10 s for 5,000 tokens on a laptop, and the time grows faster than the number of tokens.
MOST_PLACED = 5_000
MOST_JUDGED = 2_000
FEWEST_PLACED = 4
# A start this small lets t-SNE sort the points before it pushes them apart; of it, so much is the seed's (Kobak & Berens 2019).
START, CHANCE = 1e-4, 0.25


@dataclass(frozen=True)
class Projection:
    """Where a method puts tokens.

    Attributes:
        points: [token, component].
        ids: the id of each token shown, [token], rising: all, or a sample.
        explained: by PCA, the share of the variance along each component; empty for the others.
    """

    points: LabelledArray
    ids: npt.NDArray[np.int64]
    explained: tuple[float, ...] = ()

    def index(self, token: int) -> int | None:
        """Which point stands for the token with this id; None where it is not in the sample."""
        found = int(np.searchsorted(self.ids, token))
        return found if found < len(self.ids) and self.ids[found] == token else None


@dataclass(frozen=True)
class Neighbours:
    """The tokens whose vectors point most nearly the same way as one token's.

    Attributes:
        ids: nearest first.
        similarity: cosine, from -1 to 1, [neighbour].
    """

    ids: tuple[int, ...]
    similarity: LabelledArray


def vectors(model: Transformer, space: str) -> Vectors:
    """One row per token [vocab_size, d_model]: what a token is read as (`embedding`), or the row of the output matrix
    whose product with the final residual stream is the token's logit (`unembedding`).

    Raises:
        ValueError: the model tells labels apart, and has no row of output per token.
    """
    if space == "embedding":
        weight = model.embed.weight
    elif isinstance(model.head, Unembed):
        weight = model.head.unembed.weight
    else:
        raise ValueError("this model tells labels apart: it has no unembedding")
    rows: Vectors = weight.detach().float().cpu().numpy()
    return rows


@dataclass(frozen=True)
class Axes:
    """What a picture is seen along: the same for every snapshot of a model, so that only what changed moves.

    Attributes:
        origin: what lies in the middle, [d].
        directions: orthonormal, [d, component]; a column is zero where there are no further directions.
    """

    origin: Vectors
    directions: Vectors

    def place(self, rows: Vectors) -> Vectors:
        """The coordinates [token, component] of `rows` [token, d]. Those of a row depend on that row alone."""
        return np.asarray((rows - self.origin) @ self.directions, np.float32)

    def explained(self, rows: Vectors) -> tuple[float, ...]:
        """The share of the variance of `rows` [token, d] along each direction, about their own mean."""
        total = float(rows.var(axis=0, dtype=np.float64).sum())
        along = self.place(rows).var(axis=0, dtype=np.float64)
        return tuple(float(v) / total if total > 0 else 0.0 for v in along)


def principal_axes(rows: Vectors, dimensions: int) -> Axes:
    """The directions in which the centred `rows` [token, d] vary most.

    By the covariance matrix and its largest eigenvalues (Pearson 1901): quick where there are far more tokens than
    dimensions. The sign of a direction is arbitrary; the coordinate that lies farthest out is made positive.
    """
    origin = rows.mean(axis=0, dtype=np.float64).astype(np.float32)
    centred = rows - origin
    size = rows.shape[1]
    kept = min(dimensions, size)
    _, found = np.linalg.eigh((centred.T @ centred).astype(np.float64))  # [d, d], rising
    directions: Vectors = np.zeros((size, dimensions), np.float32)
    directions[:, :kept] = found[:, : -kept - 1 : -1]
    points = centred @ directions
    farthest = np.take_along_axis(points, np.abs(points).argmax(axis=0)[None], axis=0)  # [1, dimensions]
    directions[:, farthest[0] < 0] *= -1
    return Axes(origin, directions)


def pca(rows: Vectors, dimensions: int, reference: Vectors | None = None) -> tuple[Vectors, tuple[float, ...]]:
    """The coordinates [token, dimensions] of `rows` [token, d] along their `principal_axes`, or those of `reference`, and
    the share of the variance of `rows` along each."""
    axes = principal_axes(rows if reference is None else reference, dimensions)
    return axes.place(rows), axes.explained(rows)


def project(
    rows: Vectors,
    labels: Sequence[str],
    method: str,
    dimensions: int = 2,
    seed: int = 0,
    *,
    reference: Vectors | None = None,
) -> Projection:
    """`rows` [token, d] in 2 or 3 `dimensions`, by one of `METHODS`. Equal rows, reference and seed give equal pictures; PCA
    has no chance in it.

    PCA takes all tokens, the others a seeded sample of at most 5,000. t-SNE and UMAP begin with the picture by PCA and a
    little noise, the seed's, and are turned to lie as it does.

    Args:
        reference: rows [token, d] whose principal axes PCA uses; without it, those of `rows`. With one reference for all
            snapshots of a model their pictures can be laid on each other.

    Raises:
        ValueError: t-SNE or UMAP of fewer than 4 tokens.
    """
    ids = np.arange(len(rows))
    points, explained = pca(rows, dimensions, reference)
    if method != "PCA":
        if len(rows) < FEWEST_PLACED:
            raise ValueError(f"{method} needs at least {FEWEST_PLACED} tokens; this vocabulary has {len(rows)}")
        ids = sample(len(rows), MOST_PLACED, seed)
        found = {"t-SNE": tsne, "UMAP": umap}[method](rows[ids], start(points[ids], seed), seed)
        points, explained = aligned(found, points[ids]), ()
    tokens = Axis("token", tuple(labels[i] for i in ids.tolist()))
    components = Axis("component", tuple(str(i + 1) for i in range(dimensions)))
    return Projection(LabelledArray(points, (tokens, components), "coordinate"), ids, explained)


def start(points: Vectors, seed: int) -> Vectors:
    """What t-SNE and UMAP begin with [token, dimensions]: `points` made small, a quarter of it noise that is the seed's."""
    spread = max(float(points[:, 0].std()), 1e-12)
    noise = np.random.default_rng(seed).normal(size=points.shape)
    return np.asarray(START * (points / spread + CHANCE * noise), np.float32)


def sample(size: int, most: int, seed: int) -> npt.NDArray[np.int64]:
    """All of `size` indices, or `most` of them drawn at random, in order."""
    if size <= most:
        return np.arange(size)
    return np.sort(np.random.default_rng(seed).choice(size, most, replace=False))


def aligned(points: Vectors, like: Vectors) -> Vectors:
    """`points` [token, dimensions], centred, and rotated or mirrored to lie as near as possible to `like`.

    Orthogonal Procrustes (Schönemann 1966). No direction of such a picture means anything, so one picture after another may
    lie in the same direction.
    """
    centred = points - points.mean(axis=0)
    left, _, right = np.linalg.svd(centred.T.astype(np.float64) @ (like - like.mean(axis=0)))
    return np.asarray(centred @ (left @ right), np.float32)


def tsne(rows: Vectors, start: Vectors, seed: int) -> Vectors:
    """t-SNE (van der Maaten & Hinton 2008) from `start` [token, dimensions]: neighbours stay together, distances do not."""
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    perplexity = min(PERPLEXITY, (len(rows) - 1) / 3)
    method = TSNE(start.shape[1], perplexity=perplexity, max_iter=ITERATIONS, init=start, random_state=seed)
    # Threads that wait for each other on cores a training is using: 30 s instead of 0.7 s for 65 tokens.
    with threadpool_limits(1):
        return method.fit_transform(rows)


def umap(rows: Vectors, start: Vectors, seed: int) -> Vectors:
    """UMAP (McInnes et al. 2018) with its own defaults, from `start` [token, dimensions]. The first call in a process
    compiles for 10 to 35 seconds."""
    from umap import UMAP  # eleven seconds to import: only who asks for it waits

    neighbours = min(15, len(rows) - 1)
    method = UMAP(n_components=start.shape[1], n_neighbors=neighbours, init=start, random_state=seed, n_jobs=1)
    return method.fit_transform(rows)


def trustworthiness(rows: Vectors, projection: Projection) -> tuple[float, int]:
    """How far neighbours in the picture are neighbours in truth, and on how many tokens that was judged.

    1 where each of a point's 5 nearest in the picture is among its 5 nearest in the original space, less the farther a
    false one really is (Venna & Kaski 2001; `sklearn.manifold.trustworthiness`), about 0.5 by chance; NaN for fewer than
    4 tokens. Judged on a fixed sample of at most 2,000 tokens, among themselves.
    """
    from sklearn.manifold import trustworthiness as judge

    chosen = sample(len(projection.ids), MOST_JUDGED, seed=0)
    count = min(5, (len(chosen) - 1) // 2)
    if len(chosen) < FEWEST_PLACED:
        return math.nan, len(chosen)
    points = projection.points.values[chosen]
    return float(judge(rows[projection.ids[chosen]], points, n_neighbors=count)), len(chosen)


def neighbours(rows: Vectors, labels: Sequence[str], token: int, count: int = 8) -> Neighbours:
    """The `count` tokens nearest to `token` by the cosine of their `rows` [token, d]: all rows, all dimensions."""
    length = np.linalg.norm(rows, axis=1) * np.linalg.norm(rows[token])
    cosine = rows @ rows[token] / np.where(length > 0, length, 1)
    cosine[token] = -np.inf  # itself is no news
    nearest = np.argsort(-cosine, kind="stable")[: min(count, len(rows) - 1)]
    values = np.clip(cosine[nearest], -1, 1).astype(np.float32)
    axis = Axis("token", tuple(labels[i] for i in nearest.tolist()))
    return Neighbours(tuple(map(int, nearest)), LabelledArray(values, (axis,), "cosine similarity"))
