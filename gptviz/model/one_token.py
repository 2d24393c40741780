"""One token through a model, in as few operations as PyTorch allows: what a step of generation
comes to.

A step of SmolLM2-135M has 150 products of a few microseconds each, and what stood between them took
half of its time: views, new arrays, calls of parts. Here they are made once: each product reads and
writes arrays of its own, and views of these are taken when the step is built. The operations are
those of `Transformer.forward` in the same order, and so is every bit of the logits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor

from .fast import ShortRMSNorm, product
from .packed import BlockPart, Packed, Part, times_packed
from .parts.attention import Attention, KVCache
from .parts.blocks import Block, ParallelBlock
from .parts.masks import WindowMask
from .parts.mlps import MLP, AnyMLP, GatedMLP
from .parts.norms import Norm
from .parts.part import Linear
from .parts.positions import PositionEncoding, Rotary
from .parts.residuals import PreNorm, Residual
from .tap import IDENTITY, Tap
from .transformer import Transformer

# So few bytes of weights are read by one thread. A second one saves a tenth of the time if it has a
# core of its own; on a machine that does something else too, the first one waits for it at every
# product, and a step takes five times as long.
FEW_BYTES = 12 * 2**20
Vector = Callable[[Tensor], Tensor]  # from [1, 1, width] to [1, 1, width]
Write = Callable[[Tensor], object]  # of a vector, to a place of its own


class OneToken:
    """A model that reads the next token of the one text in `cache`, and adds it there."""

    def __init__(self, model: Transformer, cache: KVCache) -> None:
        self.model = model
        self.cache = cache
        #: the position of the token, and what gets the patterns
        self.at = slice(0, 0)
        self.tap = IDENTITY
        windows = [mask.window for mask in model.masks if isinstance(mask, WindowMask)]
        #: how many tokens the cache may come to have: up to there no window hides a key from the
        #: last of them
        self.limit = min([model.config.context_length, *windows])
        #: whether one thread reads it as fast as several
        self.is_small = (
            sum(tensor.nbytes for tensor in (*model.parameters(), *model.buffers())) <= FEW_BYTES
        )
        blocks = cast(list[Block | ParallelBlock], list(model.blocks))
        used = {block.attention.positions for block in blocks}
        #: of each kind of rotary positions those of the token; blocks share them
        self.angles: dict[PositionEncoding, list[Tensor]] = {
            encoding: [] for encoding in used if type(encoding) is Rotary
        }
        self._blocks = [
            _step_block(block, _Attention(index, block.attention, self))
            for index, block in enumerate(blocks)
        ]

    @classmethod
    def for_model(cls, model: Transformer, cache: KVCache) -> OneToken | None:
        """The step of a model, or None where only `forward` will do: for edits, several texts, an
        encoder, another device.
        """
        keys = cache.layers[0].keys if cache.layers else torch.empty(0)
        config = model.config
        is_plain = (
            type(model).forward is Transformer.forward
            and not config.has_shortcuts
            and model.encoder is None
        )
        fits = keys.is_cpu and keys.dtype == torch.float32 and len(keys) == 1
        if is_plain and fits and not model.training:
            return cls(model, cache)
        return None

    def __call__(self, ids: Tensor, tap: Tap = IDENTITY) -> Tensor:
        """ids [1, 1] → logits [1, 1, vocab_size]; of what the tap may look at, it gets only the
        patterns.
        """
        threads = torch.get_num_threads()
        if threads == 1 or not self.is_small:
            return self._embed_token(ids, tap)
        torch.set_num_threads(1)
        try:
            return self._embed_token(ids, tap)
        finally:
            torch.set_num_threads(threads)

    def _embed_token(self, ids: Tensor, tap: Tap) -> Tensor:
        self.tap = tap
        self.at = slice(self.cache.length, self.cache.length + 1)
        for positions, angles in self.angles.items():
            angles[:] = cast(Rotary, positions).angles(self.at)
        x = self.model.embed_stream(ids, self.at, self.cache, IDENTITY)
        for through in self._blocks:
            x = through(x)
        self.cache.length += 1
        return cast(Tensor, self.model.head(x, None, slice(-1, None), IDENTITY))


def _step_block(block: Block | ParallelBlock, attend: Vector) -> Vector:
    """`Block.forward` for the token of a step."""
    if isinstance(block, ParallelBlock):
        attention = block.attention_residual
        mlp = block.mlp_residual
        think = _mlp(block.mlp)
        return lambda x: x + attention.branch(x, attend) + mlp.branch(x, think)
    first = _step_residual(block.attention_residual, attend)
    if block.mlp is None or block.mlp_residual is None:
        return first
    second = _step_residual(block.mlp_residual, _mlp(block.mlp))
    return lambda x: second(first(x))


def _step_residual(residual: Residual, sublayer: Vector) -> Vector:
    """`Residual.forward` with this sublayer."""
    if type(residual) is not PreNorm:
        return lambda x: cast(Tensor, residual(x, sublayer))
    norm = _step_norm(residual.norm)
    return lambda x: x + sublayer(norm(x))


def _step_norm(norm: Norm) -> Vector:
    """`forward` of a norm for the token of a step."""
    gain = norm.weight
    eps = norm.eps
    short = getattr(norm, "normalise", None)
    if isinstance(short, ShortRMSNorm) and gain is not None and gain.dtype == torch.float32:
        return lambda x: short.of_one(x, gain, eps)
    return norm


class _Attention:
    """`Attention.forward` for the token of a step."""

    def __init__(self, block: int, part: Attention, step: OneToken) -> None:
        self.part = part
        self.layer = step.cache.layers[block]
        self.step = step
        self.path = f"blocks.{block}.attention"
        self.project = _Products(part.qkv)
        self.write = _Products(part.output)
        [stacked] = self.project.results
        self.unturned, self.v = part.heads(stacked).split_with_sizes(
            (part.n_head + part.key_heads, part.key_heads), dim=1
        )
        self.q = torch.empty(1, part.n_head, 1, part.head_size)  # times the scale of scores
        # Heads that share keys are neighbours: [n_kv_head, heads of each, d_head].
        self.grouped_q = self.q.view(part.key_heads, -1, part.head_size)
        self.z = torch.empty_like(self.grouped_q)
        self.out = self.z.view(1, 1, -1)
        self.angles = step.angles.get(part.positions)
        self.changes_scores = part.positions.acts_on == "scores" or part.cap is not None
        self._hold()

    def _hold(self) -> None:
        """Take views of the keys [n_kv_head, d_head, room] and values [n_kv_head, room, d_head]
        that the cache has now.
        """
        self.keys = self.layer.keys
        self.values = self.layer.values
        self.columns = self.keys[0].transpose(1, 2)
        self.rows = self.values[0]

    def __call__(self, x: Tensor) -> Tensor:
        """x [1, 1, d_model] → [1, 1, d_model]."""
        part = self.part
        at = self.step.at
        self.project(x)
        heads = part.qk_norm(self.unturned)
        if self.angles is None:
            turned = part.positions.turn(heads, at)
        else:
            turned = Rotary.rotate_heads(heads, *self.angles)
        self.layer.make_room(at)
        if self.layer.keys is not self.keys:
            self._hold()
        self.keys.narrow(2, at.start, 1).copy_(turned.narrow(1, part.n_head, part.key_heads))
        self.values.narrow(2, at.start, 1).copy_(self.v)
        torch.mul(turned.narrow(1, 0, part.n_head), part.scale, out=self.q)
        # [n_kv_head, heads of each, keys]
        scores = torch.bmm(self.grouped_q, self.columns.narrow(2, 0, at.stop))
        if self.changes_scores:
            changed = part.positions.weigh(scores.view(1, part.n_head, 1, -1), self.q, at)
            scores = (changed if part.cap is None else part.cap(changed)).view(scores.shape)
        pattern = scores.softmax(-1)
        if self.step.tap is not IDENTITY:
            # [1, H, 1, keys]
            seen = self.step.tap.for_part(self.path)("pattern", pattern.view(1, part.n_head, 1, -1))
            pattern = seen.view(pattern.shape)
        torch.bmm(pattern, self.rows.narrow(1, 0, at.stop), out=self.z)
        return self.write(self.out)[0]


def _mlp(part: AnyMLP) -> Vector:
    """`forward` of an MLP for the token of a step."""
    if type(part) is GatedMLP:
        both = _Products(part.gate, part.up)
        down = _Products(part.down)
        activation = part.activation.forward

        def step_gated(x: Tensor) -> Tensor:
            gate, up = both(x)
            return down(activation(gate).mul_(up))[0]

        return step_gated
    if type(part) is MLP:
        wider = _Products(part.up)
        down = _Products(part.down)
        activation = part.activation.forward
        return lambda x: down(activation(wider(x)[0]))[0]
    return lambda x: cast(Tensor, part(x, IDENTITY))


class _Products:
    """Products of one vector with the matrices of some layers."""

    def __init__(self, *layers: Linear) -> None:
        #: for each layer an array [1, 1, out] that has what was computed last
        self.results = [torch.empty(1, 1, layer.out_features) for layer in layers]
        # What packed matrices are multiplied with is rounded once for all that PyTorch multiplies.
        self._short = torch.empty(1, 1, layers[0].in_features, dtype=torch.bfloat16)
        packed = [cast(Packed, layer.weight) for layer in layers if _is_packed(layer)]
        parts = [part for weight in packed for part in weight.parts or ()]
        self._rounds = any(isinstance(part, Part) for part in parts)
        self._writes = [
            self._write(layer, result) for layer, result in zip(layers, self.results, strict=True)
        ]

    def __call__(self, x: Tensor) -> list[Tensor]:
        """x [1, 1, in] → the results."""
        if self._rounds:
            self._short.copy_(x)
        for write in self._writes:
            write(x)
        return self.results

    def _write(self, layer: Linear, result: Tensor) -> Write:
        weight = layer.weight
        bias = layer.bias
        to = result.view(-1)
        if _is_packed(layer):
            return _in_turn(
                _multiply_packed(
                    cast(Packed, weight), bias, self._short.view(1, -1), result.view(1, -1)
                )
            )
        if type(layer) is not Linear or layer.multiply not in (product, times_packed):
            return lambda x: result.copy_(layer(x))
        if bias is None:
            return lambda x: torch.mv(weight, x.view(-1), out=to)
        return lambda x: torch.addmv(bias, weight, x.view(-1), out=to)


def _is_packed(layer: Linear) -> bool:
    return type(layer) is Linear and type(layer.weight) is Packed and layer.multiply is times_packed


def _in_turn(writes: list[Write]) -> Write:
    if len(writes) == 1:
        return writes[0]

    def write(x: Tensor) -> None:
        for write in writes:
            write(x)

    return write


def _multiply_packed(
    weight: Packed, bias: Tensor | None, short: Tensor, result: Tensor
) -> list[Write]:
    """What writes the product of `short` [1, in] with a packed matrix to `result` [1, out], as
    `Packed.times` computes it.
    """
    assert weight.parts is not None
    writes: list[Write] = []
    for part, to in zip(
        weight.parts, result.split([part.rows for part in weight.parts], dim=1), strict=True
    ):
        if isinstance(part, BlockPart):
            writes.append(part.times_one(short.shape[1], to))
            continue
        for index, layer in enumerate(part.layers):
            writes.append(_layer(short, part, layer, to.add_ if index else to.copy_))
    if bias is None:
        return writes
    return [*writes, lambda _: result.add_(bias)]


def _layer(short: Tensor, part: Part, layer: tuple[Tensor, Tensor], take: Write) -> Write:
    (numbers, scales), times, rows = layer, part.product.times, part.rows
    group = short.shape[1] // len(scales)
    if len(numbers) == rows:
        return lambda _: take(times(short, numbers, group, scales))
    return lambda _: take(times(short, numbers, group, scales)[:, :rows])
