"""The residual stream on its way through the blocks: how long its vectors are, how they turn, what
each sublayer writes, and how the positions of a text lie in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from gptviz.labelled_array import Axis, LabelledArray
from gptviz.model import IDENTITY, Config, Transformer
from gptviz.model.parts.residuals import RESIDUALS
from gptviz.settings.kinds import Projector

from .embeddings import Projection, Vectors, align_points, project
from .layers import Layer, is_parallel, layers, stream_of, trace_stream

SIZE = "size"
ALONG = "along"
# A vector shorter than this has no direction.
NOTHING = 1e-12


@dataclass(frozen=True)
class StreamSummary:
    """The residual stream of one text, and what the sublayers wrote into it."""

    layers: tuple[Layer, ...]  #: where it was looked at
    states: Tensor  #: [layer, T, d_model]
    writers: tuple[str, ...]  #: the name of each sublayer, as `interp.units` names it
    written: Tensor  #: [sublayer, T, d_model], by how much each of them changed the stream
    read: Tensor  #: [sublayer, T, d_model], the stream that each of them found
    positions: range  #: [T], where in the text these are
    ids: tuple[int, ...]  #: [T], the tokens that were read there


@torch.inference_mode()
def stream(
    model: Transformer,
    ids: Sequence[int],
    source: Sequence[int] | None = None,
    *,
    last: int | None = None,
) -> StreamSummary:
    """The residual stream of a decoder at the `last` positions of `ids`, by default all, from one
    forward pass. A ValueError if the model is a classifier, there are no ids, or more than its
    context holds.
    """
    config = model.config
    count = min(len(ids), last or len(ids))
    parallel = is_parallel(config)
    if parallel:
        also = ["blocks.*.attention.out", "blocks.*.mlp.out"]
    else:
        also = []
    trace = trace_stream(model, ids, source, also=also, last=count)
    states = stream_of(trace, config).float().cpu()  # [layer, count, d_model]
    every = layers(config)
    positions = range(len(ids) - count, len(ids))
    shown = tuple(ids[-count:])
    if not parallel:
        writers = tuple(layer.name for layer in every[1:])
        return StreamSummary(
            every, states, writers, states[1:] - states[:-1], states[:-1], positions, shown
        )
    writers = tuple(
        f"blocks.{block}.{part}" for block in range(config.n_layer) for part in ("attention", "mlp")
    )
    written = torch.stack([trace[f"{name}.out"][0].float().cpu() for name in writers])
    return StreamSummary(
        every, states, writers, written, states[:-1].repeat_interleave(2, dim=0), positions, shown
    )


def lengths(seen: StreamSummary, tokens: Sequence[str]) -> LabelledArray:
    """How long the vector of each position is after each layer, [layer, position]; `tokens` are
    their labels.
    """
    # Here and below layer by layer: in double precision all layers of a large model over a long
    # text are several hundred MB.
    values = torch.stack([state.double().norm(dim=-1) for state in seen.states])
    axes = (
        Axis("layer", tuple(layer.name for layer in seen.layers)),
        Axis("position", tuple(tokens)),
    )
    return LabelledArray(values.numpy(), axes, "length")


def cosines(seen: StreamSummary, index: int | None = None) -> LabelledArray:
    """The cosine of the vectors of one position after any two layers, [layer, layer]: of that with
    this `index` among `seen.positions`, or the mean over all of them.
    """
    places = range(len(seen.positions)) if index is None else (index,)
    total = torch.zeros(len(seen.states), len(seen.states), dtype=torch.float64)
    for place in places:
        directions = _directions(seen.states[:, place])  # [layer, d_model]
        total += directions @ directions.T
    mean = (total / len(places)).clamp(-1, 1).numpy()
    names = tuple(layer.name for layer in seen.layers)
    return LabelledArray(mean, (Axis("layer", names), Axis("other layer", names)), "cosine")


def shares(seen: StreamSummary, tokens: Sequence[str]) -> LabelledArray:
    """How much each sublayer wrote, against the stream that it found: [quantity, sublayer,
    position].

    "size" is the length of what it wrote, divided by the length of the stream. "along" is its
    projection on the stream, in the same measure: 0.2 adds a fifth of the stream to it, −0.2 takes
    a fifth away; all else that was written turns the stream.
    """
    values = torch.empty(2, len(seen.writers), len(tokens), dtype=torch.float64)
    for row, (before, wrote) in enumerate(zip(seen.read, seen.written, strict=True)):
        length = before.double().norm(dim=-1).clamp(min=NOTHING)  # [T]
        values[0, row] = wrote.double().norm(dim=-1) / length
        values[1, row] = (wrote.double() * before.double()).sum(-1) / length.square()
    axes = (
        Axis("quantity", (SIZE, ALONG)),
        Axis("sublayer", seen.writers),
        Axis("position", tuple(tokens)),
    )
    return LabelledArray(values.numpy(), axes, "share of the stream")


def at_position(shares: LabelledArray, index: int | None) -> LabelledArray:
    """Of the `shares` those of one position, [quantity, sublayer]; None: their medians over all
    positions.
    """
    values = (
        np.median(shares.values.astype(np.float64), axis=2)
        if index is None
        else shares.values[:, :, index]
    )
    return LabelledArray(values, shares.axes[:2], shares.unit)


@torch.inference_mode()
def read_guesses(model: Transformer, seen: StreamSummary, index: int) -> tuple[int, ...]:
    """What the decoder `model` would guess from one position of its stream after each layer: the
    likeliest token, [layer]. `index` is that among `seen.positions`.
    """
    states = seen.states[:, index].to(model.embed.weight.device)  # [layer, d_model]
    logits = model.head(states[None], None, slice(None), IDENTITY)[0]  # [layer, vocab_size]
    return tuple(logits.argmax(-1).tolist())


def layers_of_writers(seen: StreamSummary) -> list[int]:
    """The index of the layer after each sublayer; where both parts of a block write at once, that
    of the block.
    """
    by_name = {layer.name: index for index, layer in enumerate(seen.layers)}
    return [
        by_name.get(writer, by_name.get(writer.rpartition(".")[0], 0)) for writer in seen.writers
    ]


def _directions(vectors: Tensor) -> Tensor:
    exact = vectors.double()
    return exact / exact.norm(dim=-1, keepdim=True).clamp(min=NOTHING)


def rows(seen: StreamSummary, *, unit: bool) -> list[Vectors]:
    """The vectors of all positions after each layer, [T, d_model]; where `unit` asks for it, all of
    length 1.
    """
    return [
        np.asarray((_directions(state) if unit else state.double()).numpy(), np.float32)
        for state in seen.states
    ]


def maps(by_layer: Sequence[Vectors], tokens: Sequence[str]) -> list[Projection]:
    """A picture by PCA of the positions after each layer: `by_layer` as `rows` gives them.

    Each layer is seen along the two directions in which its own vectors differ most. A picture is
    turned, mirrored and brought to the spread of the one before, so that they can be compared.
    """
    pictures: list[Projection] = []
    for vectors in by_layer:
        picture = project(vectors, tokens, "PCA")
        pictures.append(fit_projection(picture, pictures[-1]) if pictures else picture)
    return pictures


def map_after(
    vectors: Vectors, tokens: Sequence[str], method: Projector, seed: int, like: Projection
) -> Projection:
    """The positions after one layer by t-SNE or UMAP, in the place and spread of `like`; a
    ValueError for fewer than 4.
    """
    return fit_projection(project(vectors, tokens, method, seed=seed), like)


def fit_projection(picture: Projection, like: Projection) -> Projection:
    """The `picture` turned, mirrored and resized to lie as near as possible to `like`: neither
    changes what it says.
    """
    points = align_points(
        np.asarray(picture.points.values, np.float32),
        np.asarray(like.points.values, np.float32),
        resized=True,
    )
    return replace(picture, points=replace(picture.points, values=points))


def explain_written(config: Config) -> str:
    """The meaning of "written" in a model of this `config`, in words."""
    if is_parallel(config):
        return (
            "Attention and MLP of a block find the same stream, and what both write is added at "
            "once."
        )
    steps = RESIDUALS[config.residual].steps
    if "add" not in steps:
        return (
            "There are no residual connections: every sublayer replaces the stream. What is shown "
            "is by how much it changes."
        )
    if steps[-1] == "norm":
        return (
            "A norm follows every addition here: what is shown is by how much sublayer and norm "
            "together change the stream."
        )
    if config.mix_embedding or config.backout:
        return (
            "What a sublayer writes is added to the stream. Between blocks, earlier states of the "
            "stream are mixed into it."
        )
    return "What a sublayer writes is added to the stream, and nothing else changes it."


def about_length(config: Config) -> str:
    """The meaning of the length of a vector in a model of this `config`, in words."""
    steps = RESIDUALS[config.residual].steps
    if steps[0] == "norm":
        return (
            "Every part reads the stream through a norm, which takes the length out: a long "
            "vector is harder to turn, no more."
        )
    if steps[-1] == "norm" and "add" in steps:
        return "A norm after every addition keeps the lengths alike."
    return (
        "The parts read the stream as it is, so a longer vector has more effect on what they "
        "compute."
    )
