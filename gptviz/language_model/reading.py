"""What a language model computes on the way to its guesses."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import numpy as np

from gptviz.data.classification import pad_texts
from gptviz.interp.compare import Compared, Side
from gptviz.interp.compare import next_token as both_next
from gptviz.interp.explaining import context_use as use
from gptviz.interp.reading import attention as attending
from gptviz.interp.reading import cross_attention
from gptviz.interp.reading import embeddings as embedding
from gptviz.interp.reading import positions as of_positions
from gptviz.interp.reading import waves as clock
from gptviz.interp.reading.classification import judge, label_probabilities
from gptviz.interp.reading.costs import Costs
from gptviz.interp.reading.costs import costs as compute_costs
from gptviz.interp.reading.embeddings import Projection
from gptviz.interp.reading.experts import routing
from gptviz.interp.reading.lens import Course, Lens
from gptviz.interp.reading.lens import course as compute_course
from gptviz.interp.reading.lens import lens as compute_lens
from gptviz.interp.reading.stream import StreamSummary
from gptviz.interp.reading.stream import stream as compute_stream
from gptviz.interp.units.head_scores import Stack
from gptviz.labelled_array import Axis, Float64Array, LabelledArray, number_axis
from gptviz.model import Transformer
from gptviz.model.parts.positions import POSITIONS
from gptviz.settings.fields import check_number, whole_number
from gptviz.settings.kinds import Count, Dimensions, HowLeftOut, LensKind, Projector, Seed, Space
from gptviz.text.datasets.tasks import Modular
from gptviz.text.tokenizers.pieces import Piece
from gptviz.text.tokenizers.pieces import pieces as pieces_of

from .changing import guess
from .core import LoadedModel, answer_space_of, read_prompt, require, stack_of
from .fitted import fitted_lens, kept_lens
from .settings import check_settings
from .units import repeats_of


@check_settings
def attention(
    lm: LoadedModel, prompt: str, target: str | None = None, *, stack: Stack = "decoder"
) -> LabelledArray:
    """The attention of every head over a text, [block, head, query, key]: how each query shares it
    among the keys, 1 in all; NaN where a mask forbids a query to look.

    Args:
        stack: whose heads these are; as "cross", the queries stand in what an encoder–decoder
            writes, the keys in what it reads.
    """
    read, encoded = lm.inputs(prompt, target)
    ids = read.tolist()
    source = [] if encoded is None else encoded.tolist()
    model = stack_of(lm, stack)
    queries = source if stack == "encoder" else ids
    names = attending.QUERY, attending.KEY
    if stack == "cross":
        seen = cross_attention.read_translation(model, source, ids).cross
        names = cross_attention.WRITES, cross_attention.SOURCE
    else:
        beside = source if stack == "decoder" else []
        seen = attending.patterns(model, queries, beside or None)
    keys = source if stack == "cross" else queries

    # what a mask forbids is no share of 0
    values = np.stack(seen.blocks)
    for block, shares in enumerate(values):
        if (hidden := seen.blocked_in(block)) is not None:
            shares[:, hidden] = np.nan

    tokens = [tuple(map(lm.tokenizer.label, some)) for some in (queries, keys)]
    heads = number_axis("block", len(values)), number_axis("head", seen.n_head)
    axes = (*heads, *map(Axis, names, tokens))
    return LabelledArray(values, axes, attending.UNIT)


@check_settings
def next_token(lm: LoadedModel, prompt: str, *, top: Count = 10) -> LabelledArray:
    """The `top` likeliest tokens after a text, or labels of it, with their probabilities, the
    likeliest first. Of an encoder–decoder, the first token of its answer.
    """
    probabilities = guess(lm, prompt).probabilities
    likeliest = np.argsort(-probabilities, kind="stable")[:top]
    labels = tuple(map(answer_space_of(lm).label, likeliest.tolist()))
    return LabelledArray(
        probabilities[likeliest], (Axis(answer_space_of(lm).noun, labels),), "probability"
    )


@check_settings
def embeddings(
    lm: LoadedModel,
    space: Space = "embedding",
    *,
    method: Projector = "PCA",
    dimensions: Dimensions = 2,
    seed: Seed = 0,
) -> Projection:
    """A map of the vectors of all tokens: see `gptviz.interp.reading.embedding.project`. Its
    `points` are [token, component].
    """
    rows = embedding.vectors(lm.model, space)
    return embedding.project(rows, lm.tokenizer.labels(), method, dimensions, seed)


@check_settings
def compare(
    lm: LoadedModel, other: LoadedModel, prompt: str, other_prompt: str | None = None
) -> Compared:
    """The probability of every token to come next after a text, in this model and in another one;
    the same one may read another text, or have edits. `gptviz.interp.compare` compares more of
    `lm.side(prompt)`.
    """
    asked = prompt if other_prompt is None else other_prompt
    return both_next(side(lm, prompt), side(other, asked))


@check_settings
def classify(lm: LoadedModel, text: str) -> dict[str, float]:
    """The probability of every label, by name, for the first `context_length` tokens of `text`.

    `gptviz.interp.reading.classification.classify` also gives what each word adds to each label.
    """
    return dict(
        zip(
            lm.labels, judge(lm.model, lm.seen(lm.encode(text))).probabilities.tolist(), strict=True
        )
    )


@check_settings
def probabilities(lm: LoadedModel, texts: Sequence[str]) -> Float64Array:
    """The probability of every label for each of `texts`: [texts, n_label]. A text without words is
    read as one unknown word.
    """
    config = lm.model.config
    return label_probabilities(
        lm.model, pad_texts(lm.tokenizer, texts, config.context_length, config.padding)
    )


@check_settings
def stream(
    lm: LoadedModel, prompt: str, target: str | None = None, *, last: Count | None = None
) -> StreamSummary:
    """The residual stream after every layer, and what each sublayer writes into it, at the `last`
    positions, by default all: see `gptviz.interp.reading.stream`.
    """
    ids, source = lm.inputs(prompt, target)
    return compute_stream(
        lm.model, ids.tolist(), None if source is None else source.tolist(), last=last
    )


@check_settings
def lens(
    lm: LoadedModel,
    prompt: str,
    target: str | None = None,
    *,
    last: Count | None = None,
    top: Count = 5,
    blocks_only: bool = False,
    kind: LensKind = "logit",
    fitted_to: str | None = None,
    kept: str | None = None,
) -> Lens:
    """The guesses of the model if it stopped after each layer: see `gptviz.interp.reading.lens`.

    Args:
        last: how many positions at the end of the text are read; all unless given.
        top: how many of the likeliest tokens are kept of each layer and position.
        blocks_only: leave out the layers within a block.
        kind: "logit", or a lens that is fitted to the model, once: "jacobian" or "tuned".
        fitted_to: as in `fitted_lens`.
        kept: instead of a kind, the name of a lens that `read_lens` read: the rows are then those
            of its layers.
    """
    ids, source, following = read_prompt(lm, prompt, target)
    read = None if source is None else source.tolist()
    own = None if kind == "logit" else fitted_lens(lm, kind, fitted_to)
    fitted = own if kept is None else kept_lens(lm, kept)
    return compute_lens(
        lm.model,
        ids.tolist(),
        read,
        following=following,
        last=last,
        top=top,
        blocks_only=blocks_only,
        fitted=fitted,
    )


@check_settings
def course(
    lm: LoadedModel, lens: Lens, layer: int, index: int, follow: int | None = None
) -> Course:
    """How the likeliest tokens of one cell of a lens rose and fell from layer to layer.

    Args:
        layer: the index of the layer among `lens.layers`.
        index: the place among `lens.positions`.
        follow: a token that is followed too, whether it is likely or not.
    """
    for name, at, among in (("layer", layer, lens.layers), ("index", index, lens.positions)):
        check_number(whole_number(-len(among), len(among) - 1), name, at)
    if follow is not None:
        check_number(whole_number(0, lm.tokenizer.vocab_size - 1), "follow", follow)
    return compute_course(lm.model, lens, layer, index, lm.tokenizer.labels(), follow=follow)


@check_settings
def experts(lm: LoadedModel, prompt: str) -> LabelledArray:
    """How much each expert counts for each token of `prompt` that the model sees: [block, token,
    expert], 0 where the router did not choose it. See `gptviz.interp.reading.experts`.
    """
    if lm.model.encoder is not None:
        raise ValueError(
            f"{lm.name} has two stacks: use gptviz.interp.reading.experts.routing on one of them"
        )
    ids, _ = lm.inputs(prompt)
    return routing(lm.model, ids, tuple(lm.tokenizer.label(token) for token in ids.tolist()))


@check_settings
def pieces(lm: LoadedModel, text: str) -> list[Piece]:
    """The tokens of `text`, each with its number, its bytes, and its kind: see
    `gptviz.text.tokenizers.pieces`.
    """
    return pieces_of(lm.tokenizer, lm.tokenizer.encode(text))


@check_settings
def context_use(
    lm: LoadedModel, prompt: str, how: HowLeftOut = "replaced", *, last: Count | None = None
) -> use.ContextUse:
    """How much of `prompt`, or of its `last` tokens, the model uses, its likeliest next token being
    the last guess: see `gptviz.interp.explaining.context_use`, also for `how` a token is left out.
    """
    ids = lm.seen(lm.encode(prompt)).tolist()
    kept = lm.tokenizer.text_slice(ids).start
    if last is not None:
        ids = [*ids[:kept], *ids[kept:][-last:]]
    return use.context_use(lm.model, use.with_guess(lm.model, ids), how, kept)


@check_settings
def nearest(lm: LoadedModel, word: str | int, count: Count = 5) -> dict[str, float]:
    """The `count` tokens, without special ones, whose embeddings have the largest cosine with that
    of `word`, and the cosines.
    """
    special = {token for token in range(lm.tokenizer.vocab_size) if lm.tokenizer.is_special(token)}
    rows = embedding.vectors(lm.model, "embedding")
    token = lm.token(word)
    near = embedding.neighbours(rows, lm.tokenizer.labels(), token, count + len(special))
    cosines = zip(near.ids, near.similarity.values.tolist(), strict=True)
    return dict(
        islice(
            ((lm.tokenizer.label(i), cosine) for i, cosine in cosines if i not in special), count
        )
    )


@check_settings
def position_vectors(
    lm: LoadedModel,
    kind: str | None = None,
    *,
    block: int = 0,
    stack: Stack = "decoder",
    most: Count | None = None,
) -> LabelledArray:
    """The vectors of positions, [position, dimension]: see
    `gptviz.interp.reading.positions.vectors`.

    Args:
        kind: of positions: by default the model's own; or one that it could use without training,
            such as "sinusoidal".
        block: the block that uses them, where blocks have positions of their own.
        stack: which stack of an encoder–decoder, "encoder" or "decoder".
        most: how many positions, from the first on; None for all.
    """
    return of_positions.vectors(*_with_positions(lm, kind, block, stack), block, most)


@check_settings
def positions(
    lm: LoadedModel,
    kind: str | None = None,
    *,
    block: int = 0,
    stack: Stack = "decoder",
    most: Count | None = None,
) -> LabelledArray:
    """How alike any two positions are, the cosine of their vectors [position, other position]. For
    a kind without vectors, such as "alibi", what each head adds to a score [head, distance].
    Arguments as in `position_vectors`.
    """
    model, kind = _with_positions(lm, kind, block, stack)
    if not of_positions.has_vectors(kind):
        return of_positions.score_bias(model, kind, block, most)
    return of_positions.similarity(of_positions.vectors(model, kind, block, most))


def _with_positions(
    lm: LoadedModel, kind: str | None, block: int, stack: Stack
) -> tuple[Transformer, str]:
    """The stack, and the kind of positions that is asked for."""
    model = stack_of(lm, stack)
    if kind is not None and kind not in POSITIONS:
        raise ValueError(
            f"there are no positions called {kind!r:.40}: a kind is one of {', '.join(POSITIONS)}"
        )
    check_number(whole_number(0, max(0, len(model.blocks) - 1)), "block", block)
    return model, kind or of_positions.own_kind(model)


@check_settings
def waves(lm: LoadedModel) -> clock.ClockWaves:
    """The frequencies on which a model of sums on a clock places its numbers: see
    `gptviz.interp.reading.waves`.
    """
    model = lm.model
    task = clock_of(lm)
    powers = clock.powers(model, task)
    used = clock.used_frequencies(powers)
    others = set(range(1, task.modulus // 2 + 1)) - set(used)
    whole, with_used, with_others = (
        clock.accuracy(model, task, kept) for kept in (None, used, others)
    )
    return clock.ClockWaves(powers, used, (whole, with_used, with_others))


def clock_of(lm: LoadedModel) -> Modular:
    """The task of a model of sums on a clock; a ValueError if it has learned others."""
    if not isinstance(lm.task, Modular):
        raise ValueError(f"{lm.name} has not learned sums on a clock")
    return lm.task


@check_settings
def costs(lm: LoadedModel, batch: int = 1, context: int | None = None) -> Costs:
    """The costs of this model for `batch` texts of `context` tokens (by default as many as it can
    read): see `gptviz.interp.reading.costs`.
    """
    return compute_costs(lm.model.config, batch, context)


@check_settings
def side(lm: LoadedModel, prompt: str) -> Side:
    """This model with a text, as one of two sides to compare: see `gptviz.interp.compare`."""
    require(lm, "decoder", "only decoders are compared")
    return Side(
        lm.model,
        tuple(lm.inputs(prompt)[0].tolist()),
        tuple(lm.tokenizer.labels()),
        lm.name,
        repeats_of(lm),
    )
