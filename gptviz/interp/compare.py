"""Two subjects side by side: the same quantity of A and of B, and the difference B − A.

A subject is a model with a text: two prompts, two steps of training, two models or two sets of
edits differ in the same way here. Where there is no difference (other lengths, other numbers of
heads), `Compared` says why, and still has both sides.

`last` is everywhere how many places at the end of the text count; all unless given.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gptviz.labelled_array import Axis, Float64Array, LabelledArray, fields_as_json, number_axis
from gptviz.machine import progress
from gptviz.model import Transformer
from gptviz.settings.known_names import name_known

from .changing.fewer_bits import divergences
from .explaining.attribution import attribute
from .reading import attention as attending
from .reading.attention import Patterns
from .reading.embeddings import PrincipalAxes, Vectors, principal_axes, vectors
from .reading.lens import lens
from .reading.next_token import logits_after, probabilities
from .trace import one_row
from .units.head_scores import SCORES
from .units.head_scores import head_scores as scores_of
from .units.head_weights import copying
from .units.layers import observable_layer

T = TypeVar("T")

A = "A"
B = "B"
DIFFERENCE = "B − A"
PROBABILITY = "probability"
# This many numbers of the patterns of a side are held at a time, 32 MB, or those of one block.
MOST_HELD = 2**23


@dataclass(frozen=True)
class Side:
    """One of the two subjects."""

    model: Transformer  #: a decoder
    ids: tuple[int, ...]  #: the tokens that it reads
    vocabulary: tuple[str, ...]  #: the visible form of every token, by id
    #: a name that models have in common whose vectors have the same directions: snapshots and edits
    #: of one model
    family: str = ""
    #: random tokens, each sequence repeated once, for scores of heads that need repetition; None
    #: without them
    repeats: Tensor | None = None

    @property
    def tokens(self) -> tuple[str, ...]:
        """The visible forms of the tokens it reads."""
        return tuple(self.vocabulary[i] for i in self.ids)


@dataclass(frozen=True)
class Compared:
    """A quantity of both subjects."""

    a: LabelledArray  #: of A
    b: LabelledArray  #: of B
    #: B − A, cell by cell, or None if the two do not have the same cells
    difference: LabelledArray | None
    why: str = ""  #: why there is no difference; empty if there is one

    @property
    def largest(self) -> float:
        """The largest size of a difference; 0 where there is none."""
        if self.difference is not None:
            sizes = np.abs(self.difference.values)
        else:
            sizes = np.zeros(0)
        if sizes.size and not np.isnan(sizes).all():
            return float(np.nanmax(sizes))
        return 0.0

    to_dict = fields_as_json

    def table(self) -> LabelledArray:
        """Both and their difference, [side, …]; without a difference, all cells of A, then all of
        B.
        """
        if self.difference is None:
            cells = [
                f"{side}: {' · '.join(map(str, where))}"
                for side, one in ((A, self.a), (B, self.b))
                for where in itertools.product(*(axis.labels for axis in one.axes))
            ]
            values = np.concatenate((self.a.values.ravel(), self.b.values.ravel()))
            return LabelledArray(values, (Axis("cell", tuple(cells)),), self.a.unit)
        values = np.stack((self.a.values, self.b.values, self.difference.values))
        return LabelledArray(
            values, (Axis("side", (A, B, DIFFERENCE)), *self.difference.axes), self.a.unit
        )


def compared(a: LabelledArray, b: LabelledArray) -> Compared:
    """Both with their difference, where they have as many cells along each axis; it names both
    labels of a place that differ.
    """
    for one, other in zip(a.axes, b.axes, strict=True):
        if len(one.labels) != len(other.labels):
            short = one.name.partition(" (")[0]
            return Compared(
                a, b, None, f"A has {_count(one, short)} and B has {_count(other, short)}"
            )
    axes = tuple(
        Axis(
            one.name,
            tuple(
                x if x == y else f"{x} → {y}" for x, y in zip(one.labels, other.labels, strict=True)
            ),
        )
        for one, other in zip(a.axes, b.axes, strict=True)
    )
    values = np.asarray(b.values, np.float64) - np.asarray(a.values, np.float64)
    return Compared(a, b, LabelledArray(values, axes, f"{DIFFERENCE}, {a.unit}"))


def _count(axis: Axis, name: str) -> str:
    plural = {"query": "tokens", "key": "tokens", "token": "tokens"}.get(name, f"{name}s")
    return f"{len(axis.labels):,} {name if len(axis.labels) == 1 else plural}"


def _of_both(compute: Callable[[Side], T], a: Side, b: Side) -> tuple[T, T]:
    """The results of `compute` for A and for B; each counts as half of the work."""
    with progress.part(0, 2):
        first = compute(a)
    with progress.part(1, 2):
        return first, compute(b)


def next_token(
    a: Side, b: Side, known: tuple[Float64Array, Float64Array] | None = None
) -> Compared:
    """The probability of every token [token] to come next.

    Where the vocabularies differ, tokens are matched by their visible form; those that one side
    lacks are NaN there and in the difference. A form that several tokens of a vocabulary have
    counts as one, with the sum of their probabilities. `known` is what `distribution` gave of both;
    it is computed unless given.
    """
    shares = known or (distribution(a), distribution(b))
    if a.vocabulary == b.vocabulary:
        axes = (Axis("token", a.vocabulary),)
        return compared(*(LabelledArray(share, axes, PROBABILITY) for share in shares))
    by_form = dict.fromkeys(a.vocabulary, 0.0), dict.fromkeys(b.vocabulary, 0.0)
    for sums, side, share in zip(by_form, (a, b), shares, strict=True):
        for form, value in zip(side.vocabulary, share.tolist(), strict=True):
            sums[form] += value
    return _match_labels(*by_form, "token", PROBABILITY)


def _match_labels(a: Mapping[str, float], b: Mapping[str, float], name: str, unit: str) -> Compared:
    """Numbers by their labels on the axis `name`; a label that one side lacks is NaN there and in
    the difference.
    """
    labels = tuple(dict.fromkeys((*a, *b)))
    values = (np.array([known.get(label, np.nan) for label in labels]) for known in (a, b))
    return compared(*(LabelledArray(numbers, (Axis(name, labels),), unit) for numbers in values))


def distribution(side: Side) -> Float64Array:
    """The probability of every token [vocab_size] to come after the text."""
    return probabilities(logits_after(side.model, side.ids, slice(-1, None))[0])


def total_variation(compared: Compared) -> float:
    """How far two distributions are from each other: the probability that would have to move to
    make one of the other.

    0 where they are equal, 1 where they have nothing in common. A token that one side lacks has no
    probability there.
    """
    return float(
        np.abs(np.nan_to_num(compared.b.values) - np.nan_to_num(compared.a.values)).sum() / 2
    )


def chosen(compared: Compared, count: int, least: float = 0.0) -> Compared:
    """The `count` entries of a comparison along one axis that differ most, and the likeliest of
    each side. What differs most comes first. Entries that are below `least` on both sides are left
    out.
    """
    assert compared.difference is not None
    differences = np.nan_to_num(compared.difference.values)
    largest = np.fmax(np.abs(compared.a.values), np.abs(compared.b.values))
    likely = [
        int(index)
        for one in (compared.a, compared.b)
        for index in np.argsort(-np.nan_to_num(one.values), kind="stable")[:2]
    ]
    most = [
        int(index)
        for index in np.argsort(-np.abs(differences), kind="stable")[:count]
        if largest[index] >= least
    ]
    # What differs most comes first where not all have room.
    kept = list(dict.fromkeys([*most[: max(0, count - len(set(likely)))], *likely, *most]))[:count]
    order = sorted(kept, key=lambda index: (-abs(differences[index]), index))

    def pick_entries(one: LabelledArray) -> LabelledArray:
        labels = tuple(one.axes[0].labels[index] for index in order)
        return LabelledArray(one.values[order], (Axis(one.axes[0].name, labels),), one.unit)

    return Compared(
        pick_entries(compared.a), pick_entries(compared.b), pick_entries(compared.difference)
    )


@torch.inference_mode()
def attention(a: Side, b: Side, block: int, head: int | None, last: int | None = None) -> Compared:
    """The pattern [query, key] of a head, or where `head` is None the mean over the heads of the
    block; NaN where masked. A ValueError if a model has no such block or head, or no blocks.
    """
    return compared(*_of_both(lambda side: _pattern(side, block, head, last), a, b))


def _pattern(side: Side, block: int, head: int | None, last: int | None) -> LabelledArray:
    config = side.model.config
    if not block < config.n_layer or not (head or 0) < config.n_head:
        raise ValueError(
            f"there is no {f'head {head} in ' if head is not None else ''}block {block} in one of "
            "the models"
        )
    (pattern,), _ = _patterns(side, range(block, block + 1))
    window = attending.windows(side.model)[block]
    shown = pattern.mean(0, keepdims=True) if head is None else pattern
    own = Patterns((shown,), attending.blocked_everywhere(side.model, side.ids), (window,))
    whole = attending.one_head(own, 0, head or 0, side.tokens)
    first = max(0, len(side.ids) - (last or len(side.ids)))
    queries = Axis(whole.axes[0].name, whole.axes[0].labels[first:])
    return LabelledArray(whole.values[first:], (queries, whole.axes[1]), whole.unit)


def _patterns(
    side: Side, blocks: range, last: int | None = None, resume: tuple[int, Tensor] | None = None
) -> tuple[list[npt.NDArray[np.float32]], tuple[int, Tensor] | None]:
    """The patterns [n_head, query, key] of these blocks, of the `last` queries, and where the pass
    can go on after them. It ends with the last of the blocks, and begins where an earlier one ended
    (`resume`).
    """
    held: list[npt.NDArray[np.float32]] = []
    after: list[tuple[int, Tensor]] = []

    def see(block: int, name: str, value: Tensor) -> None:
        if name == "pattern":
            # A copy: what is left of a view would keep the pattern of all queries.
            held.append(
                value[0, :, -(last or len(side.ids)) :].to("cpu", torch.float32, copy=True).numpy()
            )
        else:
            after.append((block + 1, value))

    end = f"blocks.{blocks[-1]}.resid_post"
    names = [*(f"blocks.{block}.attention.pattern" for block in blocks), end]
    attending.watch(side.model, side.ids, None, names, see, end, resume)
    return held, next(iter(after), None)


@torch.inference_mode()
def changed_heads(a: Side, b: Side, last: int | None = None) -> LabelledArray | None:
    """How much the pattern of each head differs, [block, head]: of a query's attention, the share
    that lies on other tokens.

    0 where two patterns are equal, 1 where no query reads a token that it reads in the other.
    Blocks and heads that both models have. None if the two read different numbers of tokens.
    """
    if len(a.ids) != len(b.ids):
        return None
    n_layer, n_head = (
        min(getattr(side.model.config, name) for side in (a, b)) for name in ("n_layer", "n_head")
    )
    rows: list[npt.NDArray[np.float64]] = []
    cells = (
        max(side.model.config.n_head for side in (a, b))
        * len(a.ids)
        * min(len(a.ids), last or len(a.ids))
    )
    at_once = max(1, MOST_HELD // cells)  # blocks at a time
    of_a = of_b = None  # where the pass of each side goes on
    for start in range(0, n_layer, at_once):
        blocks = range(start, min(start + at_once, n_layer))
        with progress.part(2 * (start // at_once), 2 * -(-n_layer // at_once)):
            ours, of_a = _patterns(a, blocks, last, of_a)
        with progress.part(2 * (start // at_once) + 1, 2 * -(-n_layer // at_once)):
            theirs, of_b = _patterns(b, blocks, last, of_b)
        for one, other in zip(ours, theirs, strict=True):
            rows.append(
                np.abs(other[:n_head] - one[:n_head]).sum(-1, dtype=np.float64).mean(-1) / 2
            )
    moved = np.array(rows).reshape(n_layer, n_head)
    return LabelledArray(
        moved,
        (number_axis("block", n_layer), number_axis("head", n_head)),
        "share of the attention that moved",
    )


@torch.inference_mode()
def units(a: Side, b: Side, layer: str) -> Compared:
    """The mean number [unit] of each unit of a layer over the tokens of the text: of neurons and of
    features of a dictionary their activation, of heads the length of what they add. The layer is
    named as in `observable_layer`; a ValueError as there.
    """
    return compared(*_of_both(lambda side: _mean_numbers(side, layer), a, b))


def _mean_numbers(side: Side, layer: str) -> LabelledArray:
    of = observable_layer(side.model, layer)
    ids = torch.tensor([side.ids], device=side.model.embed.weight.device)
    means = of.values(ids)[0].double().mean(0)
    labels = tuple(f"{of.layer.kind} {index}" for index in range(len(means)))
    return LabelledArray(means.numpy(), (Axis(of.layer.kind, labels),), of.number)


@dataclass(frozen=True)
class Moved:
    """Where the vectors of the tokens lie in A and in B."""

    #: in one picture of both [token, component]: `points.a`, `points.b` and by how much each token
    #: moved
    points: Compared
    #: how far each token moved [token], over all dimensions, not only in the picture
    distance: LabelledArray
    #: the share of the variance of both that the picture has, along each axis
    explained: tuple[float, ...]
    #: whether both were turned and brought to one size to lie as near to each other as possible:
    #: two models that were trained apart have no directions in common
    turned: bool
    left_out: tuple[int, int] = (0, 0)  #: how many tokens of A, and of B, the other does not have


def embeddings(a: Side, b: Side, space: str = "embedding") -> Moved:
    """The vectors of the tokens that both models have, in one picture along the principal axes of
    both together, from one of the spaces of `gptviz.interp.reading.embeddings.vectors`. A
    ValueError if the two vocabularies have fewer than three tokens in common.
    """
    # The ids in A and in B of the tokens that both have, by their visible form; of equal forms the
    # first.
    if a.vocabulary == b.vocabulary:
        common = [(i, i) for i in range(len(a.vocabulary))]
    else:
        ours, theirs = (
            {form: i for i, form in reversed(list(enumerate(side.vocabulary)))} for side in (a, b)
        )
        common = sorted((i, theirs[form]) for form, i in ours.items() if form in theirs)
    if len(common) < 3:
        raise ValueError(
            f"the vocabularies have {len(common)} tokens in common; a picture of both needs at "
            "least 3"
        )
    first, second = (np.array([pair[side] for pair in common]) for side in (0, 1))
    rows: tuple[Vectors, ...] = vectors(a.model, space)[first], vectors(b.model, space)[second]
    turned = (a.family != b.family or rows[0].shape != rows[1].shape) and not np.array_equal(
        rows[0], rows[1]
    )
    # In an order that does not depend on which is A: so that swapping the sides flips the sign to
    # the last bit.
    order = sorted(
        (0, 1), key=lambda side: (float(rows[side].sum(dtype=np.float64)), rows[side].shape[1])
    )
    ordered = [rows[side] for side in order]
    if turned:
        ordered = _align_vectors(*ordered)
    axes: PrincipalAxes = principal_axes(np.concatenate(ordered), 2)
    rows = tuple(ordered[order.index(side)] for side in (0, 1))
    labels = Axis("token", tuple(a.vocabulary[i] for i in first.tolist()))
    where = (labels, Axis("component", ("1", "2")))
    points = compared(*(LabelledArray(axes.place(row), where, "coordinate") for row in rows))
    distance = np.linalg.norm(rows[1].astype(np.float64) - rows[0], axis=1)
    left_out = len(a.vocabulary) - len(common), len(b.vocabulary) - len(common)
    moved = LabelledArray(distance, (labels,), "distance between B and A")
    return Moved(points, moved, axes.explained_variance(np.concatenate(rows)), turned, left_out)


def _align_vectors(a: Vectors, b: Vectors) -> list[Vectors]:
    """Both centred, brought to a mean square length of 1, and turned to lie as near to each other
    as possible.

    Both are turned, to axes that they share. Where one has more dimensions, those in which the
    other cannot follow are left out.

    Source: Schönemann 1966, orthogonal Procrustes.
    """
    centred = [(rows - rows.mean(axis=0)).astype(np.float64) for rows in (a, b)]
    scaled = [rows / (np.sqrt((rows**2).sum(1).mean()) or 1.0) for rows in centred]
    left, _, right = np.linalg.svd(scaled[0].T @ scaled[1], full_matrices=False)
    return [np.asarray(scaled[0] @ left, np.float32), np.asarray(scaled[1] @ right.T, np.float32)]


# What the lens reads after every layer, by the name that forms and addresses have for it.
LENS = {
    "probability": ("of the likeliest token", "probability"),
    "true_probability": ("of the token that comes", "probability"),
    "entropy": ("entropy", "nats"),
}


def logit_lens(
    a: Side, b: Side, quantity: str = "probability", last: int | None = None
) -> Compared:
    """The guesses that the head reads from the stream after every layer [layer, token]: see
    `gptviz.interp.reading.lens`. The `quantity` is one of `LENS`; the token that comes after the
    last one is not known: NaN.
    """

    def guesses(side: Side) -> LabelledArray:
        seen = lens(side.model, side.ids, top=1, last=last)
        if quantity == "probability":
            values = seen.probability[:, :, 0]
        else:
            values = getattr(seen, quantity)
        axes = (
            Axis("layer", tuple(layer.short for layer in seen.layers)),
            Axis("token", side.tokens[seen.positions.start :]),
        )
        return LabelledArray(np.asarray(values, np.float64), axes, LENS[quantity][1])

    return compared(*_of_both(guesses, a, b))


def attribution(a: Side, b: Side, token: str) -> Compared:
    """The amount that each part adds to the logit of the token of this visible form, at the end of
    the text [part].

    A part that one model does not have is NaN there and in the difference. A ValueError if one of
    the vocabularies has no such token.
    """
    for name, side in ((A, a), (B, b)):
        if token not in side.vocabulary:
            raise ValueError(f"the vocabulary of {name} has no token {token!r:.80}")
    both = _of_both(
        lambda side: attribute(side.model, side.ids, side.vocabulary.index(token)), a, b
    )
    of_a, of_b = ({part.title: part.value for part in attribution.parts} for attribution in both)
    return _match_labels(of_a, of_b, "part", "adds to the logit")


# The scores that one pass over each text gives, or the weights; how much the loss rises without a
# head takes a pass for each.
HEAD_SCORES = tuple(name for name in SCORES if name != "delta_loss")


def head_scores(a: Side, b: Side, score: str) -> Compared:
    """One of `HEAD_SCORES` of every head, [block, head] (see `gptviz.interp.units.head_scores`); a
    ValueError for other names.
    """
    if score not in HEAD_SCORES:
        raise ValueError(
            f"there is no score {score!r:.80} of heads{name_known(score, HEAD_SCORES)}"
        )

    def scores(side: Side) -> LabelledArray:
        if score == "copying":
            values = copying(side.model)
        else:
            ids, _ = one_row(side.model, side.ids)
            values = scores_of(side.model, ids, repeats=side.repeats).values[score]
        axes = (
            number_axis("block", side.model.config.n_layer),
            number_axis("head", side.model.config.n_head),
        )
        return LabelledArray(np.asarray(values, np.float64), axes, SCORES[score].title.lower())

    return compared(*_of_both(scores, a, b))


OUTSIDE = "outside blocks"


def weights(a: Side, b: Side) -> Compared:
    """The matrices of both models, [block, matrix]: of A and of B their Frobenius norms, and as
    difference the norm of B − A, which is 0 where every number is the same. What a block does not
    have is NaN. See `relative` for shares.
    """
    ours = _by_part(a.model)
    theirs = _by_part(b.model)
    of_a = _by_block(a, {name: float(matrix.norm()) for name, matrix in ours.items()})
    of_b = _by_block(b, {name: float(matrix.norm()) for name, matrix in theirs.items()})
    for name in dict.fromkeys((*ours, *theirs)):
        shapes = [
            " × ".join(map(str, each[name].shape)) if name in each else "none"
            for each in (ours, theirs)
        ]
        if shapes[0] != shapes[1]:
            return Compared(
                of_a, of_b, None, f"of the weights {name} A has {shapes[0]} and B has {shapes[1]}"
            )
    apart = {}
    for done, (name, one) in enumerate(ours.items()):
        apart[name] = float((theirs[name] - one).norm())
        progress.report(done + 1, len(ours), "matrix")
    difference = _by_block(a, apart)
    return Compared(of_a, of_b, LabelledArray(difference.values, difference.axes, "norm of B − A"))


def matrices(model: Transformer) -> dict[str, Tensor]:
    """The weights of a model that are matrices, by the name of their parameter, in double
    precision; tied ones once. A table with more axes is one with a row for each place on its first.
    """
    return {
        name: parameter.detach().double().flatten(1)
        for name, parameter in model.named_parameters()
        if parameter.dim() > 1
    }


def _by_part(model: Transformer) -> dict[str, Tensor]:
    return {name.removesuffix(".weight"): matrix for name, matrix in matrices(model).items()}


def _by_block(side: Side, values: dict[str, float]) -> LabelledArray:
    """Values of matrices as [block, matrix]; those outside of the blocks have a row of their
    own.
    """
    rows = (OUTSIDE, *map(str, range(side.model.config.n_layer)))
    places = {
        name: name.split(".", 2)[1:] if name.startswith("blocks.") else [OUTSIDE, name]
        for name in values
    }
    # The matrices of blocks come first.
    columns = sorted(
        dict.fromkeys(column for _, column in places.values()),
        key=lambda it: not it.startswith(("attention", "mlp")),
    )
    table = np.full((len(rows), len(columns)), np.nan)
    for name, (row, column) in places.items():
        table[rows.index(row), columns.index(column)] = values[name]
    return LabelledArray(
        table, (Axis("block", rows), Axis("matrix", tuple(columns))), "norm of the weights"
    )


def relative(compared: Compared) -> LabelledArray:
    """The norm of B − A as a share of the norm of A, of each matrix of `weights`; infinite where A
    has only zeros.
    """
    assert compared.difference is not None
    apart = np.asarray(compared.difference.values, np.float64)
    norms = np.asarray(compared.a.values, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(apart == 0, 0.0, apart / norms)
    return LabelledArray(shares, compared.difference.axes, "‖B − A‖ / ‖A‖")


def moved_guesses(a: Side, b: Side) -> LabelledArray | None:
    """How far the guess after each token [token] moves from A to B, in nats: the Kullback–Leibler
    divergence, of places at the end of a long text (see
    `gptviz.interp.changing.fewer_bits.divergences`). None where the two read other tokens.
    """
    if a.ids != b.ids or a.vocabulary != b.vocabulary or not a.ids:
        return None
    values = divergences(a.model, b.model, a.ids)
    return LabelledArray(values, (Axis("token", a.tokens[-len(values) :]),), "nats")


def singular_values(a: Side, b: Side, name: str) -> LabelledArray:
    """The singular values [number] of B − A for the matrix of a part, as in "blocks.0.mlp.up", the
    largest first: by how much the difference stretches each of the directions that it reads. Of an
    adapter of rank r at most r of them are not 0. A ValueError if a model has no such matrix, or
    the two are of other shapes.
    """
    both = [_by_part(side.model) for side in (a, b)]
    for each in both:
        if name not in each:
            raise ValueError(f"there is no matrix {name!r:.80}{name_known(name, list(each))}")
    one, other = (each[name] for each in both)
    if one.shape != other.shape:
        raise ValueError(
            f"{name} has the shape {tuple(one.shape)} in A and {tuple(other.shape)} in B"
        )
    values = torch.linalg.svdvals(other - one).cpu().numpy()
    return LabelledArray(values, (number_axis("number", len(values), first=1),), "singular value")
