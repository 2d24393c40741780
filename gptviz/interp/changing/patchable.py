"""The kinds of tensors in the blocks of a model that can be patched, and the pieces that one patch
replaces.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from gptviz.labelled_array import Axis, number_axis
from gptviz.model import Config
from gptviz.model.parts.residuals import RESIDUALS
from gptviz.settings.known_names import name_known


@dataclass(frozen=True)
class Quantity:
    """A kind of tensor that every block of a stack computes, and the pieces that one patch
    replaces.
    """

    #: what it is called in the library, in addresses and on the command line: the end of its tap
    #: names
    name: str
    title: str  #: what it is called above a picture
    about: str  #: what it is, as the end of a sentence
    #: what a piece is of: everything at one position, everything of one head, or one feature. Some
    #: models have fewer heads for keys and values than for queries; these are key heads.
    by: Literal["position", "head", "key head", "feature"]
    in_encoder: bool = False  #: whether the encoder of an encoder–decoder computes it

    def tap(self, block: int) -> str:
        """The tap that sees it in this block."""
        rest = self.name.removeprefix("encoder.")
        return f"{'encoder.' if self.in_encoder else ''}blocks.{block}.{rest}"

    def blocks(self, config: Config) -> int:
        """How many blocks compute it."""
        if self.in_encoder:
            return config.n_encoder_layer
        return config.n_layer

    def places(self, config: Config, length: int, source: int = 0) -> Axis:
        """The pieces of one block, for a prompt of `length` tokens and a source of an encoder:
        positions by their number, heads by their number, and key heads with the heads they serve,
        as in "1 (heads 3–5)".
        """
        if self.by == "position":
            return number_axis(self.by, source if self.in_encoder else length)
        if self.by == "head":
            return number_axis(self.by, config.n_head)
        group = config.n_head // config.key_heads
        return Axis(
            self.by,
            tuple(
                f"{i} (heads {i * group}–{(i + 1) * group - 1})" for i in range(config.key_heads)
            ),
        )


_STREAM = (
    ("resid_pre", "Stream before a block", "the residual stream as it enters the block"),
    ("resid_mid", "Stream before the MLP", "the residual stream between attention and MLP"),
    ("resid_post", "Stream after a block", "the residual stream as it leaves the block"),
)
_OF_HEADS = (
    ("z", "Output (z)", "what the head reads: the values, weighed by its pattern"),
    ("pattern", "Pattern", "which tokens the head looks at"),
    ("q", "Queries (q)", "what the head looks for"),
    ("k", "Keys (k)", "what the tokens offer the head to be found by"),
    ("v", "Values (v)", "what the head takes from a token that it looks at"),
)


def quantities(config: Config) -> tuple[Quantity, ...]:
    """The tensors that can be patched in a model: the stream and what is added to it by position,
    then what heads compute.
    """
    return tuple(_quantities(config, in_encoder=False)) + (
        tuple(_quantities(config.of_encoder, in_encoder=True)) if config.n_encoder_layer else ()
    )


def _quantities(config: Config, *, in_encoder: bool) -> Iterator[Quantity]:
    start, end = ("encoder.", " of the encoder") if in_encoder else ("", "")
    if not config.n_layer:
        return
    crosses = config.n_encoder_layer > 0
    has_middle = config.mlp_size > 0 and not RESIDUALS[config.residual].parallel
    for name, title, about in _STREAM:
        if name != "resid_mid" or has_middle:
            yield Quantity(start + name, title + end, about, "position", in_encoder)
    parts = {
        "attention": "Attention",
        **({"cross_attention": "Cross-attention"} if crosses else {}),
    }
    for part, title in parts.items():
        yield Quantity(
            f"{start}{part}.out",
            f"{title} output{end}",
            f"what {title.lower()} adds to the stream",
            "position",
            in_encoder,
        )
    if config.mlp_size:
        yield Quantity(
            f"{start}mlp.out",
            f"MLP output{end}",
            "what the MLP adds to the stream",
            "position",
            in_encoder,
        )
    for part in parts:
        for name, title, about in _OF_HEADS:
            if part == "cross_attention":
                of = f"{title}, cross-attention"
            else:
                of = title
            is_shared = name in "kv" and config.key_heads != config.n_head
            yield Quantity(
                f"{start}{part}.{name}",
                of + end,
                about,
                "key head" if is_shared else "head",
                in_encoder,
            )


def quantity(name: str, config: Config) -> Quantity:
    """The quantity of this name. A ValueError if the model has none of this name; the message lists
    those it has.
    """
    has = {kind.name: kind for kind in quantities(config)}
    if not has:
        raise ValueError(
            "this model has no blocks, so there is nothing between its embedding and its answer "
            "to patch"
        )
    if name not in has:
        raise ValueError(f"{name!r:.80} cannot be patched in this model{name_known(name, has)}")
    return has[name]
