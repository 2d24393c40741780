"""The anatomy of a model, from its config alone: every step from token ids to logits as a box, and what flows between them.

A box says what it computes and by which equation, which values of a pass are its output (names as in `model.tap.GLOSSARY`),
which weights it holds, and which lines of the project do it. `values` gives any of its tensors.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from pathlib import Path
from textwrap import dedent
from typing import Any, Literal

import torch
from torch import Tensor

from gptviz.interp.trace import Trace
from gptviz.model import Config, Transformer
from gptviz.model.attention import Attention, CrossAttention, Reading
from gptviz.model.blocks import MLP, RESIDUALS, Block
from gptviz.model.build import describe
from gptviz.model.heads import HEADS, States
from gptviz.model.masks import MASKS
from gptviz.model.norms import NORMS
from gptviz.model.positions import POSITIONS
from gptviz.text.tokenizer import Tokenizer

ROOT = Path(__file__).parents[2]
Role = Literal["query", "key", "value", "pattern", "mlp", "output", "stream", "weight"]
Kind = Literal["activation", "weight", "fixed"]


@dataclass(frozen=True)
class Piece:
    """A tensor of a box.

    Attributes:
        name: of an activation its tap; of a weight the parameter, of fixed numbers the buffer, that it is part of.
        kind: computed for a text, learned, or fixed by a formula.
        shape: without the batch.
        axes: what is counted along each axis.
        symbol: how equations call it.
        rows: of a matrix that several boxes share, the rows from the first up to the second; None for all of it.
        parameters: how many numbers it adds to the model: none where a weight was counted before (tied).
    """

    name: str
    kind: Kind
    shape: tuple[int, ...]
    axes: tuple[str, ...]
    symbol: str
    rows: tuple[int, int] | None = None
    parameters: int = 0


@dataclass(frozen=True)
class Lines:
    """Lines `first` to `last` of a file of the project (its path from the project's folder), and those of them to look at."""

    file: str
    first: int
    last: int
    text: str
    marked: tuple[int, ...]


@dataclass(frozen=True)
class Box:
    """A step of the computation.

    Attributes:
        path: tells it apart: the name of the value that it computes, where the pass shows one.
        part: what it is within its place, such as "q" or "norm": alike in all blocks.
        role: what it is coloured by.
        about: what it does, in a sentence.
        equation: the same as an equation, for this config.
        pieces: what it computes, then its weights and fixed numbers.
        lines: the source that computes it.
    """

    path: str
    part: str
    name: str
    role: Role
    about: str
    equation: str
    pieces: tuple[Piece, ...]
    lines: Lines

    @property
    def taps(self) -> tuple[Piece, ...]:
        """The values of a pass that it computes."""
        return tuple(piece for piece in self.pieces if piece.kind == "activation")

    @property
    def parameters(self) -> int:
        """How many numbers of the model are its own."""
        return sum(piece.parameters for piece in self.pieces)


@dataclass(frozen=True)
class Arrow:
    """What flows from one box (by path) to another, with its shape."""

    start: str
    end: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Anatomy:
    """The boxes of a model in the order in which they are computed, and the arrows between them."""

    config: Config
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]

    def box(self, path: str) -> Box | None:
        """The box of this path, None if there is none."""
        return next((box for box in self.boxes if box.path == path), None)


def anatomy(config: Config, tokens: int, source: int = 1) -> Anatomy:
    """The anatomy of a model that reads so many `tokens`; beside them, so many of a `source` where it has an encoder.

    Nothing is allocated.
    """
    return _Drawing(config, tokens, source).whole()


@torch.inference_mode()
def values(model: Transformer, trace: Trace, piece: Piece) -> Tensor:
    """The tensor `piece.shape` that a piece stands for, in a model and a pass of it over one text."""
    if piece.kind == "activation":
        value = trace[piece.name]
        return value if value.ndim == len(piece.shape) else value[0]
    if piece.kind == "fixed":
        return model.get_buffer(piece.name)
    weight = model.get_parameter(piece.name)
    return weight if piece.rows is None else weight[slice(*piece.rows)]


@lru_cache(maxsize=32)
def _parameters(config: Config) -> dict[str, tuple[tuple[int, ...], bool]]:
    """By name, the shape of every parameter, and whether it is counted under this name."""
    return {
        f"{layer.name}.{name}": (shape, layer.parameters > 0)
        for layer in describe(config)
        for name, shape in layer.shapes.items()
    }


@lru_cache(maxsize=256)
def lines(what: Callable[..., Any], looked_at: str = "") -> Lines:
    """Where `what` is written; marked are the lines with the text `looked_at`."""
    found, first = inspect.getsourcelines(what)
    file = inspect.getsourcefile(what)
    assert file is not None
    marked = tuple(first + i for i, line in enumerate(found) if looked_at and looked_at in line)
    return Lines(Path(file).relative_to(ROOT).as_posix(), first, first + len(found) - 1, dedent("".join(found)).rstrip(), marked)


NORM = {
    "layernorm": "({x} − mean) / √(variance + 10⁻⁵)",
    "rmsnorm": "{x} / √(mean of squares + 10⁻⁶)",
}
ACTIVATION = {
    "relu": "max(0, up)",
    "relu2": "max(0, up)²",
    "gelu": "up · Φ(up)",
    "gelu-tanh": "½ · up · (1 + tanh(√(2 / π) · (up + 0.044715 · up³)))",
}


class _Drawing:
    """Boxes and arrows as they are added, in the order of the computation."""

    def __init__(self, config: Config, tokens: int, source: int) -> None:
        self.config, self.tokens, self.source = config, tokens, source
        self.boxes: list[Box] = []
        self.arrows: list[Arrow] = []
        self.flows: dict[str, tuple[int, ...]] = {}
        self.width = config.n_head * config.head_size

    def whole(self) -> Anatomy:
        config = self.config
        memory = None
        if config.n_encoder_layer:
            stream = self.stack("encoder.", config.n_encoder_layer, self.source, None)
            if config.final_norm:
                stream = self.final_norm("encoder.", stream, self.source)
            self.add(
                "memory",
                "memory",
                "Memory",
                "stream",
                "What the encoder made of the source: a vector per token, for every block of the decoder to read.",
                f"memory = {'encoder.final_norm' if config.final_norm else 'resid_post of the last block of the encoder'}",
                lines(Transformer.encode, 'tap("memory"'),
                [self.activation("memory", (self.source, config.d_model), ("source token", "d_model"), "memory")],
                [stream],
            )
            memory = "memory"
        stream = self.stack("", config.n_layer, self.tokens, memory)
        if config.final_norm:
            stream = self.final_norm("", stream, self.tokens)
        self.head(stream)
        return Anatomy(config, tuple(self.boxes), tuple(self.arrows))

    # What boxes are made of

    def add(
        self,
        path: str,
        part: str,
        name: str,
        role: Role,
        about: str,
        equation: str,
        where: Lines,
        pieces: Sequence[Piece] = (),
        reads: Sequence[str] = (),
        gives: tuple[int, ...] | None = None,
    ) -> str:
        """A box that reads what other boxes (by path) give; it gives its first piece, or something of the shape `gives`."""
        self.boxes.append(Box(path, part, name, role, about, equation, tuple(pieces), where))
        self.flows[path] = gives if gives is not None else pieces[0].shape
        self.arrows += [Arrow(start, path, self.flows[start]) for start in reads]
        return path

    def activation(self, name: str, shape: tuple[int, ...], axes: tuple[str, ...], symbol: str) -> Piece:
        return Piece(name, "activation", shape, axes, symbol)

    def weight(self, name: str, axes: tuple[str, ...], symbol: str, rows: tuple[int, int] | None = None) -> list[Piece]:
        """The parameter of this name, or some rows of it; none where the model has no such parameter."""
        if name not in _parameters(self.config):
            return []
        shape, counted = _parameters(self.config)[name]
        if rows is not None:
            shape = (rows[1] - rows[0], *shape[1:])
        return [Piece(name, "weight", shape, axes, symbol, rows, prod(shape) if counted else 0)]

    def linear(self, name: str, out: str, into: str, symbol: str, rows: tuple[int, int] | None = None) -> list[Piece]:
        """Matrix and, where there is one, bias of a linear part with axes `out` and `into`."""
        return [
            *self.weight(f"{name}.weight", (out, into), f"W_{symbol}", rows),
            *self.weight(f"{name}.bias", (out,), f"b_{symbol}", rows),
        ]

    def times(self, x: str, symbol: str, pieces: Sequence[Piece]) -> str:
        """x · Wᵀ, plus a bias where there is one."""
        bias = f" + b_{symbol}" if any(piece.symbol == f"b_{symbol}" for piece in pieces) else ""
        return f"{x} · W_{symbol}ᵀ{bias}"

    def normed(self, x: str, pieces: Sequence[Piece]) -> str:
        """The equation of the config's norm of `x`, with gain and bias where there are such."""
        symbols = {piece.symbol for piece in pieces}
        gain = " · gain" if "gain" in symbols else ""
        return NORM[self.config.norm].format(x=x) + gain + (" + bias" if "bias" in symbols else "")

    def gains(self, name: str, axis: str) -> list[Piece]:
        return [*self.weight(f"{name}.weight", (axis,), "gain"), *self.weight(f"{name}.bias", (axis,), "bias")]

    # A stack: tokens, positions, blocks

    def stack(self, at: str, n_layer: int, tokens: int, memory: str | None) -> str:
        """The boxes from token ids to the stream after the last block; the path of the box that gives it."""
        config = self.config
        axis = "source token" if at else "token"
        shape = (tokens, config.d_model)
        ids = self.add(
            f"{at}ids",
            "ids",
            "Tokens",
            "stream",
            "The text in the pieces that the model reads, each a number: its place in the vocabulary.",
            "ids = tokenizer.encode(text)",
            lines(Tokenizer.encode),
            gives=(tokens,),
        )
        [table] = self.weight("embed.weight", ("vocabulary", "d_model"), "W_E")
        if at:  # the same embedding as the decoder's, counted there
            table = Piece(table.name, table.kind, table.shape, table.axes, table.symbol)
        stream = self.add(
            f"{at}embed",
            "embed",
            "Embed",
            "stream",
            f"Every token becomes a vector of {config.d_model} numbers: its row of the embedding"
            + (", the one that the decoder uses too." if at else "."),
            "embed[t] = W_E[ids[t]]",
            lines(Transformer.forward, 'tap("embed"'),
            [self.activation(f"{at}embed", shape, (axis, "d_model"), "embed"), table],
            [ids],
        )
        placed = POSITIONS[config.positions].acts_on == "embedding"
        if placed:
            positions = self.positions(at, axis, shape)
            reads = [stream, positions]
            if not n_layer:
                return self.add(
                    f"{at}stream",
                    "stream",
                    "⊕",
                    "stream",
                    "The vector of each token plus the vector of its place.",
                    "embed + positions",
                    lines(POSITIONS[config.positions].embed),
                    (),
                    reads,
                    gives=shape,
                )
        else:
            reads = [stream]
        for index in range(n_layer):
            stream = self.block(f"{at}blocks.{index}", axis, shape, reads, memory)
            reads = [stream]
        return stream

    def positions(self, at: str, axis: str, shape: tuple[int, ...]) -> str:
        """The vectors of the places, where they are added to the embeddings."""
        learned = self.config.positions == "learned"
        formula = "positions[t, 2i] = sin(t / 10000^(2i / d_model)), positions[t, 2i + 1] = cos(t / 10000^(2i / d_model))"
        return self.add(
            f"{at}positions",
            "positions",
            "Positions",
            "stream",
            f"A vector for each place in the text, {'learned' if learned else 'fixed by sines and cosines'}, "
            "so that the model can tell order.",
            "positions[t] = W_P[t]" if learned else formula,
            lines(POSITIONS[self.config.positions].embed, 'tap("positions"'),
            [
                self.activation(f"{at}positions", shape, (axis, "d_model"), "positions"),
                *self.weight(f"{at}positions.table.weight", ("position", "d_model"), "W_P"),
            ],
        )

    def block(self, at: str, axis: str, shape: tuple[int, ...], reads: list[str], memory: str | None) -> str:
        """A block that goes on with what `reads` give: attention, cross-attention where there is a memory, MLP where there is
        one, each inside its residual."""
        has_mlp = self.config.mlp_size > 0
        before = " + ".join(path.rpartition(".")[2] for path in reads)
        stream = self.add(
            f"{at}.resid_pre",
            "resid_pre",
            "⊕" if len(reads) > 1 else "In",
            "stream",
            "The residual stream as the block finds it: a vector per token, to which every part adds.",
            f"resid_pre = {before if not before.startswith('resid') else 'resid_post of the block before'}",
            lines(Block.forward, 'tap("resid_pre"'),
            [self.activation(f"{at}.resid_pre", shape, (axis, "d_model"), "resid_pre")],
            reads,
        )
        after = "resid_self" if memory else "resid_mid" if has_mlp else "resid_post"
        stream = self.join(at, "attention", stream, after, lambda x, symbol: self.attention(f"{at}.attention", axis, x, symbol))
        if memory is not None:
            after = "resid_mid" if has_mlp else "resid_post"
            cross = f"{at}.cross_attention"
            stream = self.join(at, "cross_attention", stream, after, lambda x, symbol: self.cross(cross, x, symbol, memory))
        if has_mlp:
            stream = self.join(at, "mlp", stream, "resid_post", lambda x, symbol: self.mlp(f"{at}.mlp", axis, x, symbol))
        return stream

    def join(self, at: str, part: str, stream: str, after: str, sublayer: Callable[[str, str], str]) -> str:
        """A sublayer and what joins it to the `stream`; it gives the value tapped as `after`."""
        config = self.config
        before, shape = stream.rpartition(".")[2], self.flows[stream]
        axis = next(box.pieces[0].axes[0] for box in self.boxes if box.path == stream)
        kind = config.residual
        module = f"{at}.{'cross' if part == 'cross_attention' else part}_residual"
        gains = self.gains(f"{module}.norm", "d_model")
        value = self.activation(f"{at}.{after}", shape, (axis, "d_model"), after)
        joined = lines(RESIDUALS[kind].forward, "return")
        x, symbol = stream, before
        if kind == "pre-norm":
            x = self.norm(f"{at}.{part}.norm", f"{part}.norm", stream, gains)
            symbol = f"norm({before})"
        out = sublayer(x, symbol)
        whose = {"attention": "the attention", "cross_attention": "the cross-attention", "mlp": "the MLP"}[part]
        added = f"What {whose} found is added to the stream, which keeps all it had."
        if kind in ("pre-norm", "plain"):
            equation = f"{after} = {before} + out"
            return self.add(f"{at}.{after}", f"{part}.join", "⊕", "stream", added, equation, joined, [value], [stream, out])
        if kind == "none":
            replaced = f"What {whose} found replaces the stream: this model has no residual connections."
            return self.add(f"{at}.{after}", f"{part}.join", "=", "stream", replaced, f"{after} = out", joined, [value], [out])
        inside = "out"
        if kind == "post-norm":
            out = self.add(
                f"{at}.{part}.sum",
                f"{part}.join",
                "⊕",
                "stream",
                added,
                f"{before} + out",
                joined,
                (),
                [stream, out],
                gives=shape,
            )
            inside = f"{before} + out"
        sized = "Brings the numbers of every token's vector to one size, so that no sum grows out of hand."
        equation = f"{after} = norm({inside}), norm(x) = {self.normed('x', gains)}"
        where = lines(NORMS[config.norm])
        return self.add(f"{at}.{after}", f"{part}.norm", "Norm", "weight", sized, equation, where, [value, *gains], [out])

    def norm(self, path: str, part: str, stream: str, gains: list[Piece]) -> str:
        """The norm that a sublayer reads the stream through."""
        before = stream.rpartition(".")[2]
        return self.add(
            path,
            part,
            "Norm",
            "weight",
            "Brings the numbers of every token's vector to one size before they are read; the stream itself stays as it is.",
            f"norm({before}) = {self.normed(before, gains)}",
            lines(NORMS[self.config.norm]),
            gains,
            [stream],
            gives=self.flows[stream],
        )

    def final_norm(self, at: str, stream: str, tokens: int) -> str:
        """The norm after the last block."""
        gains = self.gains(f"{at}head.final_norm", "d_model")
        shape = (tokens, self.config.d_model)
        axis = "source token" if at else "token"
        last = stream.rpartition(".")[2]
        before = last if last != "stream" else "embed + positions"
        return self.add(
            f"{at}final_norm",
            "final_norm",
            "Norm",
            "weight",
            "Brings the vectors of the finished stream to one size.",
            f"final_norm = norm({before}), norm(x) = {self.normed('x', gains)}",
            lines(States.forward, 'tap("final_norm"'),
            [self.activation(f"{at}final_norm", shape, (axis, "d_model"), "final_norm"), *gains],
            [stream],
        )

    # The sublayers

    def attention(self, at: str, axis: str, stream: str, x: str) -> str:
        """Self-attention over `x`, the stream or its norm; the path of the box of its output."""
        config = self.config
        tokens, size = self.flows[stream][0], config.head_size
        placed = config.positions if POSITIONS[config.positions].acts_on in ("query and key", "scores") else ""
        shared = self.shared(at, placed)
        heads = []
        for place, (part, name, role) in enumerate((("q", "Query", "query"), ("k", "Key", "key"), ("v", "Value", "value"))):
            rows = (place * self.width, (place + 1) * self.width)
            heads.append(self.project(at, part, name, role, f"{at}.qkv", rows, axis, tokens, stream, x, placed))
        self.arrows += [Arrow(path, head, (config.n_head, self.flows[head][1], size)) for path in shared for head in heads[:2]]
        reads = heads[:2]
        term = ""
        if placed in ("relative", "alibi"):
            reads.append(self.by_distance(at, placed))
            term = " + q · R[query − key] / √{size}" if placed == "relative" else " − slope · |query − key|"
        equation = f"scores = q · kᵀ / √{size}" + term.format(size=size)
        return self.read(at, equation, reads, heads[2], lines(Attention.forward, "scaled"), axis, tokens, axis, tokens)

    def cross(self, at: str, stream: str, x: str, memory: str) -> str:
        """Attention of the stream to the memory of the encoder."""
        shared = self.shared(at, "")
        tokens = self.flows[stream][0]
        q = self.project(at, "q", "Query", "query", f"{at}.q", None, "token", tokens, stream, x, "")
        rows = ((0, self.width), (self.width, 2 * self.width))
        k, v = (
            self.project(at, part, name, role, f"{at}.kv", rows[i], "source token", self.source, memory, "memory", "")
            for i, (part, name, role) in enumerate((("k", "Key", "key"), ("v", "Value", "value")))
        )
        self.arrows += [Arrow(path, head, self.flows[head]) for path in shared for head in (q, k)]
        where = lines(CrossAttention.forward, "self.read")
        equation = f"scores = q · kᵀ / √{self.config.head_size}"
        return self.read(at, equation, [q, k], v, where, "token", tokens, "source token", self.source)

    def shared(self, at: str, placed: str) -> list[str]:
        """What queries and keys both go through: a norm, a turn."""
        config = self.config
        boxes = []
        if config.qk_norm:
            gains = self.gains(f"{at}.qk_norm", "d_head")
            boxes.append(
                self.add(
                    f"{at}.qk_norm",
                    "qk_norm",
                    "Norm",
                    "weight",
                    "Brings every query and key to one size, so that no score grows out of hand.",
                    f"norm(x) = {self.normed('x', gains)}, over the {config.head_size} numbers of a head",
                    lines(NORMS[config.norm]),
                    gains,
                    gives=(config.head_size,),
                )
            )
        if placed == "rotary":
            shape, axes = (config.context_length, config.head_size), ("position", "d_head")
            boxes.append(
                self.add(
                    f"{at}.positions",
                    "turn",
                    "Rotary",
                    "stream",
                    "Turns queries and keys by their place, so that a score depends on how far apart two tokens are.",
                    "rotate(x)[t] = x[t] · cos[t] + swapped(x)[t] · sin[t], where swapped exchanges the halves of x",
                    lines(POSITIONS["rotary"].turn, "return"),
                    [Piece(f"{at}.positions.{name}", "fixed", shape, axes, name) for name in ("cos", "sin")],
                )
            )
        return boxes

    def project(
        self,
        at: str,
        part: str,
        name: str,
        role: Any,
        linear: str,
        rows: tuple[int, int] | None,
        axis: str,
        tokens: int,
        stream: str,
        x: str,
        placed: str,
    ) -> str:
        """Queries, keys or values: a projection of `x`, cut into heads."""
        config = self.config
        symbol = part.upper()
        pieces = self.linear(linear, "head · d_head", "d_model", symbol, rows)
        projected = self.times(x, symbol, pieces)
        if part != "v" and config.qk_norm:
            projected = f"norm({projected})"
        if part != "v" and placed == "rotary":
            projected = f"rotate({projected})"
        does = {
            "q": "What each token looks for, a vector per head.",
            "k": "What each token offers to be found by, a vector per head.",
            "v": "What each token hands over to those who look at it, a vector per head.",
        }[part]
        from_memory = x == "memory"
        shape = (config.n_head, tokens, config.head_size)
        return self.add(
            f"{at}.{part}",
            part,
            name,
            role,
            does.replace("each token", "each token of the source") if from_memory else does,
            f"{part} = {projected}",
            lines((CrossAttention if "cross_attention" in at else Attention).forward, f'"{part}"'),
            [self.activation(f"{at}.{part}", shape, ("head", axis, "d_head"), part), *pieces],
            [stream],
        )

    def by_distance(self, at: str, placed: str) -> str:
        """What the distance of two tokens adds to their score."""
        config = self.config
        if placed == "relative":
            pieces = self.weight(f"{at}.positions.table", ("head", "d_head", "distance"), "R")
            about = "A learned vector per head and distance: a query's product with it is added to the score."
        else:
            pieces = [Piece(f"{at}.positions.slopes", "fixed", (config.n_head,), ("head",), "slope")]
            about = "The further apart two tokens are, the lower their score: a fixed slope per head."
        name = {"relative": "Distance", "alibi": "ALiBi"}[placed]
        equation = {"relative": "q · R[query − key] / √" + str(config.head_size), "alibi": "−slope · |query − key|"}[placed]
        role: Role = "weight" if placed == "relative" else "stream"
        where = lines(POSITIONS[placed].weigh)
        return self.add(f"{at}.positions", "distance", name, role, about, equation, where, pieces)

    def read(
        self, at: str, equation: str, reads: list[str], v: str, where: Lines, query: str, queries: int, key: str, keys: int
    ) -> str:
        """From queries, keys and values to what attention adds to the stream."""
        config = self.config
        cross = "cross_attention" in at
        square, axes = (config.n_head, queries, keys), ("head", f"query ({query})", f"key ({key})")
        scores = self.add(
            f"{at}.scores",
            "scores",
            "Scores",
            "pattern",
            "Every query is compared with every key: the larger the product, the better they fit.",
            equation,
            where,
            [self.activation(f"{at}.scores", square, axes, "scores")],
            reads,
        )
        masks = config.mask == "causal" and "encoder." not in at and not cross
        hides = masks or config.padding is not None
        visible = scores
        if hides:
            hidden = "the tokens after it" if masks else "the padding that fills up shorter texts"
            visible = self.add(
                f"{at}.mask",
                "mask",
                "Mask",
                "stream",
                f"Hides from every query {hidden}.",
                f"mask(scores)[query, key] = −∞ where the key is {'after the query' if masks else 'padding'}, else scores",
                lines(MASKS["causal" if masks else "full"], "return"),
                (),
                [scores],
                gives=square,
            )
        pattern = self.add(
            f"{at}.pattern",
            "pattern",
            "Pattern",
            "pattern",
            "Each token shares its attention among those it may read: every row sums to 1.",
            f"pattern = softmax({'mask(scores)' if hides else 'scores'})",
            lines(Reading.read, 'tap("pattern"'),
            [self.activation(f"{at}.pattern", square, axes, "pattern")],
            [visible],
        )
        mixed = (config.n_head, queries, config.head_size)
        z = self.add(
            f"{at}.z",
            "z",
            "z",
            "value",
            "What each token gathers: the values of the others, weighted by its attention.",
            "z = pattern · v",
            lines(Reading.read, 'tap("z"'),
            [self.activation(f"{at}.z", mixed, ("head", query, "d_head"), "z")],
            [pattern, v],
        )
        pieces = self.linear(f"{at}.output", "d_model", "head · d_head", "O")
        return self.add(
            f"{at}.out",
            "out",
            "Output",
            "stream",
            "What all heads gathered, side by side, is projected back to the width of the stream.",
            f"out = {self.times('z', 'O', pieces)}",
            lines(Reading.read, 'tap("out"'),
            [self.activation(f"{at}.out", (queries, config.d_model), (query, "d_model"), "out"), *pieces],
            [z],
        )

    def mlp(self, at: str, axis: str, stream: str, x: str) -> str:
        """The MLP over `x`; the path of the box of its output."""
        config = self.config
        tokens = self.flows[stream][0]
        up = self.linear(f"{at}.up", "neuron", "d_model", "up")
        wide = self.add(
            f"{at}.up",
            "up",
            "Up",
            "mlp",
            f"Every token's vector, widened to {config.mlp_size} numbers, each a question asked of it.",
            f"up = {self.times(x, 'up', up)}",
            lines(MLP.forward, "self.up"),
            up,
            [stream],
            gives=(tokens, config.mlp_size),
        )
        neurons = self.add(
            f"{at}.neurons",
            "neurons",
            "Neurons",
            "mlp",
            "What is left of the answers after the activation: most questions do not apply to a token.",
            f"neurons = {ACTIVATION[config.activation]}",
            lines(MLP.forward, 'tap("neurons"'),
            [self.activation(f"{at}.neurons", (tokens, config.mlp_size), (axis, "neuron"), "neurons")],
            [wide],
        )
        down = self.linear(f"{at}.down", "d_model", "neuron", "down")
        return self.add(
            f"{at}.out",
            "down",
            "Down",
            "mlp",
            "What the neurons found, projected back to the width of the stream.",
            f"out = {self.times('neurons', 'down', down)}",
            lines(MLP.forward, 'tap("out"'),
            [self.activation(f"{at}.out", (tokens, config.d_model), (axis, "d_model"), "out"), *down],
            [neurons],
        )

    # The head

    def head(self, stream: str) -> None:
        """From the finished stream to logits."""
        config = self.config
        last = stream.rpartition(".")[2]
        x = "(embed + positions)" if last == "stream" else last
        if config.head == "unembed":
            pieces = self.linear("head.unembed", "vocabulary", "d_model", "U")
            about = "Every token of the vocabulary gets a score to come next; the softmax of them is the guess."
            if config.tied:
                about += " The matrix is the embedding, used the other way round."
            self.add(
                "logits",
                "logits",
                "Unembed",
                "output",
                about,
                f"logits = {self.times(x, 'U', pieces)}" + (", W_U = W_E" if config.tied else ""),
                lines(HEADS["unembed"].forward, 'tap("logits"'),
                [self.activation("logits", (self.tokens, config.vocab_size), ("token", "vocabulary"), "logits"), *pieces],
                [stream],
            )
            return
        forward = HEADS[config.head].forward
        label = self.linear("head.label", "label", "position" if config.head == "flatten" else "d_model", "label")
        if config.head == "flatten":
            token = self.linear("head.token", "number", "d_model", "token")
            numbers = self.times(x, "token", token)
            about = "Every token's vector becomes one number."
            where = lines(forward, "self.token")
            stream = self.add(
                "head.token",
                "number",
                "Number",
                "output",
                about,
                f"number = {numbers}",
                where,
                token,
                [stream],
                gives=(self.tokens,),
            )
            equation = "shares[t, label] = number[t] · W_label[label, t]"
        else:
            equation = f"shares = {x} · W_labelᵀ / T"
        shares = self.activation("shares", (self.tokens, config.n_label), ("token", "label"), "shares")
        about = "What each token adds to the score of each label."
        where = lines(forward, 'tap("shares"')
        stream = self.add("shares", "shares", "Shares", "output", about, equation, where, [shares, label[0]], [stream])
        self.add(
            "logits",
            "logits",
            "Labels",
            "output",
            "The shares of all tokens together: a score for each label, whose softmax is the decision.",
            "logits = Σ_t shares[t] + b_label",
            lines(forward, 'tap("logits"'),
            [self.activation("logits", (config.n_label,), ("label",), "logits"), label[1]],
            [stream],
        )
