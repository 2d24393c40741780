"""Layers: the places at which the residual stream can be looked at, from the embedding to the end
of the last block.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gptviz.model import Config, Transformer
from gptviz.model.parts.residuals import RESIDUALS

from ..trace import Trace, one_row, run

EMBEDDING = "embed"
# What the stream is made of before the first block; the last one that a model has is the stream.
_BEFORE_BLOCKS = ("embed", "positions", "embed_norm", "smear")


@dataclass(frozen=True)
class Layer:
    """A place in the residual stream."""

    #: "embed", or the part after which it is, as `interp.units` names it: "blocks.1.mlp"; in models
    #: that mix the stream with earlier states of it also "blocks.1.mix" and "blocks.1.backout".
    #: After a block whose attention and MLP read the same stream it is the block's own name,
    #: "blocks.1": there is no stream between the two.
    name: str
    title: str  #: its name in a sentence
    short: str  #: its name on an axis
    #: the name of the tap with the stream there, as in `model.tap.GLOSSARY`; "" for the stream of a
    #: model without blocks
    tap: str
    block: int | None = None  #: the number of its block, or None for the embedding


def layers(config: Config) -> tuple[Layer, ...]:
    """The places in the stream of a decoder, in the order in which it is computed."""
    places = [
        Layer(
            EMBEDDING, "the embedding", "embedding", "blocks.0.resid_pre" if config.n_layer else ""
        )
    ]
    for block in range(config.n_layer):
        if config.mix_embedding and block:
            title = f"the mix before block {block}"
            places.append(
                Layer(
                    f"blocks.{block}.mix", title, f"mix {block}", f"blocks.{block}.resid_pre", block
                )
            )
        places += _of_block(config, block)
    if config.backout and config.n_layer:
        last = config.n_layer - 1
        places.append(
            Layer(
                f"blocks.{last}.backout",
                "taking out the middle",
                f"backout {last}",
                "backout",
                last,
            )
        )
    return tuple(places)


def last_tap(config: Config) -> str:
    """The name of the tap with the stream that the head of a model with blocks reads."""
    return layers(config)[-1].tap


def _of_block(config: Config, block: int) -> list[Layer]:
    if is_parallel(config):
        return [
            Layer(
                f"blocks.{block}",
                f"block {block}",
                f"block {block}",
                f"blocks.{block}.resid_post",
                block,
            )
        ]
    parts = [("attention", "attention"), ("cross_attention", "cross-attention"), ("mlp", "MLP")]
    there = {
        "attention": True,
        "cross_attention": config.n_encoder_layer > 0,
        "mlp": config.mlp_size > 0,
    }
    parts = [(part, title) for part, title in parts if there[part]]
    # The stream after one part is the stream before the next.
    taps = [
        {"cross_attention": "resid_self", "mlp": "resid_mid"}[part] for part, _ in parts[1:]
    ] + ["resid_post"]
    return [
        Layer(
            f"blocks.{block}.{part}",
            f"the {title} of block {block}",
            f"{title} {block}",
            f"blocks.{block}.{tap}",
            block,
        )
        for (part, title), tap in zip(parts, taps, strict=True)
    ]


def ends_of_blocks(every: Sequence[Layer]) -> list[int]:
    """Which of all `layers` are the embedding or the end of a block, as indices."""
    return [
        index
        for index, layer in enumerate(every)
        if index + 1 == len(every) or every[index + 1].block != layer.block
    ]


def of_whole_blocks(every: Sequence[Layer]) -> tuple[Layer, ...]:
    """The layers that end a block, called by the block: "block 3" instead of "MLP 3"; and the
    embedding.
    """
    ends = (every[index] for index in ends_of_blocks(every))
    return tuple(
        layer
        if layer.block is None
        else replace(layer, title=f"block {layer.block}", short=f"block {layer.block}")
        for layer in ends
    )


def is_parallel(config: Config) -> bool:
    """Whether the attention and the MLP of a block read the same stream, so that there is none
    between the two.
    """
    return RESIDUALS[config.residual].parallel and config.n_layer > 0 and config.mlp_size > 0


def trace_stream(
    model: Transformer,
    ids: Sequence[int],
    source: Sequence[int] | None = None,
    *,
    also: Iterable[str] = (),
    logits_at: slice = slice(-1, None),
    last: int | None = None,
) -> Trace:
    """One forward pass of a decoder over `ids` that keeps the stream at all its layers, for
    `stream_of`.

    Args:
        also: names of other values to keep.
        source: what the encoder reads; for models that have one.
        logits_at: the positions to compute logits for.
        last: as in `trace.run`.

    Raises:
        ValueError: the model is a classifier, there are no ids, or more than its context holds.
    """
    if not ids:
        raise ValueError("there is no token to read")
    if model.config.kind == "classifier":
        raise ValueError(
            "this model is a classifier, which guesses no token: its stream is not read here"
        )
    taps = [layer.tap for layer in layers(model.config) if layer.tap]
    read, encoded = one_row(model, ids, source)
    return run(
        model,
        read,
        [*(taps or _BEFORE_BLOCKS), *also],
        source=encoded,
        logits_at=logits_at,
        last=last,
    )


def stream_of(trace: Trace, config: Config) -> Tensor:
    """The residual stream at all layers [layer, T, d_model], from what `trace_stream` kept."""
    if config.n_layer:
        return torch.stack([trace[layer.tap][0] for layer in layers(config)])
    for name in ("smear", "embed_norm"):
        if name in trace:
            return trace[name]
    if "positions" in trace:
        return trace["embed"] + trace["positions"]
    return trace["embed"]
