"""Decomposition: the residual stream as a sum of what each part of a model wrote into it.

A norm is linear except for the number by which it divides. With that number held as it was in one
run ("frozen"), everything between what a part writes and what a later part reads is linear: all
that is read is the sum of what was written, each piece passed through the frozen norms on its way.
So what the reader makes of a direction is a sum with one number for each writer.

Nothing here knows the kinds of residuals. A block's own `forward` runs once more, with its norms
frozen and with what its sublayers gave in the run in their places, and PyTorch's derivative of that
pass is the linear map: a new residual needs no rule of its own, and one that is not linear is
refused. This is computed only at the chosen positions.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import cast

import torch
from torch import Tensor, nn

from gptviz.model import Edit, Memory, Transformer, Watch
from gptviz.model.edited import EditedTransformer
from gptviz.model.parts.attention import AttentionBase
from gptviz.model.parts.mlps import AnyMLP
from gptviz.model.parts.norms import Norm
from gptviz.model.parts.part import with_stand_ins
from gptviz.model.parts.residuals import RESIDUALS

from ..trace import one_row

# the reader that stands for the model's head: it reads the stream behind the final norm
HEAD = "head"
# A sum is off by less than this share of the numbers that it is made of, unless something on the
# way is not linear.
NOT_LINEAR = {torch.float64: 1e-7, torch.float32: 1e-3}

_SUBLAYERS = ("attention", "cross_attention", "mlp")
TAPS = (
    *("embed", "positions"),
    *(f"blocks.*.{part}.{tap}" for part in _SUBLAYERS[:2] for tap in ("pattern", "v", "z", "out")),
    *("blocks.*.mlp.neurons", "blocks.*.mlp.out"),
)


class _Given(nn.Module):
    """Stands where a sublayer stood: it gives what that gave in the run, and keeps what it would
    read.
    """

    def __init__(self, stream: Stream, name: str) -> None:
        super().__init__()
        self.keep = stream, name

    def forward(self, x: Tensor, *_: object) -> Tensor:
        """x [1, n, d_model] → what the sublayer gave [1, n, d_model]."""
        stream, name = self.keep
        stream.note_reader(name, x)
        return stream.leaf(name, stream.values[f"{name}.out"])


class FrozenNorm(nn.Module):
    """A norm whose scale is kept from the first vectors that it gets: from then on an affine
    function of its input. `numbers` makes its gain a tensor of the sum in which it stands, and
    `bias` its bias [..., size].
    """

    def __init__(
        self, norm: Norm, numbers: Callable[[Tensor], Tensor], bias: Callable[[Tensor], Tensor]
    ) -> None:
        super().__init__()
        self.keep = norm, numbers, bias
        self.first: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        """[..., size] → [..., size]."""
        norm, numbers, bias = self.keep
        if self.first is None:
            self.first = x.detach()
        normed = norm.norm_with_scale(x, self.first)
        if norm.weight is None:
            normed = normed
        else:
            normed = normed * numbers(norm.weight)
        if norm.bias is None:
            return normed
        return normed + bias(norm.bias.expand(x.shape))


class Stream:
    """The residual stream of a decoder (or of a classifier) at some positions of one run, as a sum
    of what was written into it.

    Writers are `embed`, `positions` where they are added to the embedding, whole sublayers such as
    `blocks.0.attention`, `blocks.0.cross_attention` and `blocks.0.mlp`, and the biases of norms on
    the way, under the names of these parameters. What edits add to the stream is one more bias,
    such as `blocks.0.resid_post.edits.bias`.
    Readers are the sublayers, which read the stream behind the norm before them where there is one,
    and `HEAD`.

    Attributes:
        rows: the n positions.
        device: where its sums are computed.
        dtype: the type in which they are.
        values: what was recorded of the run, by tap name, on this device in the model's own
            precision: `k` and `v` of all positions [keys, n_kv_head, d_head]; only at the n
            positions `q` and `z` [n, n_head, d_head], `pattern` [n, n_head, keys], and all others
            [n, numbers].
        written: by writer, what it wrote, [n, d_model].
        inputs: by reader, what it reads, [1, n, d_model], with its history.
        guess: the position that `final` and `logits` are about: by default the last of the n
            positions.
        final: what the head reads there, behind the final norm, [d_model], as the model computed
            it.
        logits: the model's own logits there, [vocab_size]; of a classifier, [n_label].
    """

    def __init__(
        self,
        model: Transformer,
        ids: Sequence[int],
        rows: Sequence[int] | None = None,
        source: Sequence[int] | None = None,
        *,
        guess: int | None = None,
        taps: Sequence[str] = TAPS,
        exactly: bool = True,
    ) -> None:
        """Run `model` over `ids` and keep what is needed of the positions `rows`, by default of
        all.

        Args:
            guess: as in the attributes.
            taps: the names of what is kept of the run; without patterns a long text takes less
                memory, and nothing can be split by the token that is read.
            exactly: compute in float64 on the CPU, which every machine has; else in float32 where
                the model is.

        Raises:
            ValueError: there is no such position, a norm or a residual has no linear form, or as in
                `Transformer.forward`.
        """
        self.model = model
        if exactly:
            self.device = torch.device("cpu")
        else:
            self.device = model.embed.weight.device
        self.dtype = torch.float64 if exactly else torch.float32
        self.rows = tuple(range(len(ids)) if rows is None else rows)
        if not self.rows or not all(0 <= row < len(ids) for row in self.rows):
            raise ValueError(
                f"the positions are {list(self.rows)}; they must be from 0 to {len(ids) - 1}"
            )
        self.guess = self.rows[-1] if guess is None else guess
        self.final = torch.empty(0)
        self.logits = torch.empty(0)
        self.values: dict[str, Tensor] = {}
        replaced = model.replacements if isinstance(model, EditedTransformer) else ()
        self._changed = [name for name in replaced if ".resid_" in name or name == "backout"]
        self._record(ids, source, taps)
        self._follow()

    def slice_positions(self, start: int, stop: int) -> Stream:
        """The same stream at its positions from the place `start` up to `stop` among `rows`; the
        run is not repeated.
        """
        part = copy.copy(self)
        part.rows = self.rows[start:stop]
        part.values = {
            name: value if name[-2:] in (".k", ".v") else value[start:stop]
            for name, value in self.values.items()
        }
        part._follow()
        return part

    @torch.inference_mode(False)
    @torch.no_grad()
    def _record(
        self, ids: Sequence[int], source: Sequence[int] | None, taps: Sequence[str]
    ) -> None:
        device = self.model.embed.weight.device
        place = self.rows.index(self.guess)
        rows = torch.tensor(self.rows, device=device)
        states = (
            "embed",
            "embed_norm",
            "smear",
            f"blocks.{len(self.model.blocks) - 1}.resid_post",
            "backout",
            "final_norm",
        )

        def see(name: str, value: Tensor) -> None:
            tap = name.rpartition(".")[2]
            if tap == "positions":
                kept = value[rows]
                self.final = self.final + value[self.guess].to(self.device)
            elif tap in ("k", "v"):
                kept = value[0].transpose(0, 1)  # [keys, n_kv_head, d_head]
            elif name.endswith(".attention.pattern"):
                kept = self._with_part(self.values.get(name), value[0], len(ids))
            elif tap in ("q", "z", "pattern"):
                kept = value[0].transpose(0, 1)[rows]  # [n, n_head, ...]
            elif tap == "final_norm":
                kept = value[0]  # [1, d_model]
            else:
                kept = value[0, rows]  # [n, numbers]
            kept = kept.to(self.device, copy=True)
            if name in states:
                self.final = kept[0 if tap == "final_norm" else place]
            # positions and the token before are part of what the embedding wrote
            if name == "smear":
                self.values["embed"] = kept
                self.values.pop("positions", None)
            elif name not in states[1:]:
                self.values[name] = kept
            if name in self._changed:
                self.values[name] = kept

        watch = Watch((*taps, *states, *self._changed), see, in_parts=True)
        self.logits = self.model(
            *one_row(self.model, ids, source),
            tap=watch,
            logits_at=slice(self.guess, self.guess + 1),
        )[0]
        if self.model.config.kind != "classifier":
            self.logits = self.logits[-1]

    def _with_part(self, kept: Tensor | None, part: Tensor, n_keys: int) -> Tensor:
        """The rows of a pattern at the n positions, [n, n_head, keys], as far as they were `kept`,
        with those of a `part` of the pattern [n_head, queries, keys]: its queries are the last of
        its keys.
        """
        n_head, queries, keys = part.shape
        if kept is None:
            kept = part.new_zeros(len(self.rows), n_head, n_keys, device="cpu")
        else:
            kept = kept
        for index, row in enumerate(self.rows):
            if keys - queries <= row < keys:
                kept[index, :, :keys] = part[:, row - keys + queries].cpu()
        return kept

    def leaf(self, name: str, value: Tensor) -> Tensor:
        """The output of the writer `name`, [1, n, d_model], from its `value` [n, d_model] where it
        writes for the first time.
        """
        if name not in self._leaves:
            self._leaves[name] = self.numbers(value)[None].requires_grad_()
        return self._leaves[name]

    def numbers(self, tensor: Tensor) -> Tensor:
        """A tensor in the type and on the device of the sums, without a history."""
        return tensor.detach().to(self.device, self.dtype)

    def note_reader(self, reader: str, x: Tensor) -> None:
        """Note what a reader reads, [1, n, d_model], and who has written by then."""
        self.inputs[reader], self._before[reader] = x, tuple(self._leaves)

    @torch.inference_mode(False)
    @torch.enable_grad()
    def _follow(self) -> None:
        """Pass everything that was written on to everything that reads."""
        self.inputs: dict[str, Tensor] = {}
        # by the number of a block, the stream behind it [1, n, d_model]
        self.after: dict[int, Tensor] = {}
        self._leaves: dict[str, Tensor] = {}
        self._before: dict[str, tuple[str, ...]] = {}
        model = self.model
        blocks = self.model.blocks
        stand_ins: dict[nn.Module, nn.Module] = {
            part: FrozenNorm(part, self.numbers, self._bias_of(name))
            for name, part in model.named_modules()
            if isinstance(part, Norm)
        }
        for index, block in enumerate(blocks):
            stand_ins |= {
                part: _Given(self, f"blocks.{index}.{name}")
                for name, part in block.named_children()
                if name in _SUBLAYERS
            }
        x = self.leaf("embed", self.values["embed"])  # [1, n, d_model]
        if "positions" in self.values:
            x = x + self.leaf("positions", self.values["positions"])
        if model.embed_norm is not None and model.smear is None:
            x = stand_ins[model.embed_norm](x)

        def note_value(name: str, x: Tensor) -> Tensor:
            return x + self.leaf(f"{name}.edits.bias", self.values[name] - x.detach()[0])

        edits = Edit({name: partial(note_value, name) for name in self._changed})

        def run_block(index: int, block: nn.Module, x: Tensor) -> Tensor:
            followed = with_stand_ins(block, stand_ins, self.device)
            at = slice(0, len(self.rows))
            self.after[index] = followed(
                x, None, None, at, Memory(x, None), None, edits.for_part(f"blocks.{index}")
            )
            return self.after[index]

        x = edits("backout", model.run_blocks(x, run_block))
        norm = model.head.final_norm
        self.note_reader(HEAD, x if norm is None else stand_ins[norm](x))
        self.written = {name: leaf.detach()[0] for name, leaf in self._leaves.items()}

    def _bias_of(self, norm: str) -> Callable[[Tensor], Tensor]:
        """The bias of a norm is one more writer."""
        return lambda bias: self.leaf(f"{norm}.bias", bias[0])

    def layers(self) -> tuple[str, ...]:
        """The sublayers, in the order in which they write."""
        return tuple(name for name in self._leaves if name.rpartition(".")[2] in _SUBLAYERS)

    def part(self, layer: str) -> AttentionBase | AnyMLP:
        """The sublayer called `layer`."""
        return cast("AttentionBase | AnyMLP", self.model.get_submodule(layer))

    def pull(self, reader: str, directions: Tensor) -> dict[str, Tensor]:
        """Follow `directions` [n, d_model], or k such [k, n, d_model], from the reader back to all
        writers.

        The dot product of a direction with what is read at a position is a sum over writers: for
        each the dot product of what it wrote there with its own direction, which is returned by its
        name, [..., n, d_model]. All who write before the reader reads are there; the direction is 0
        where nothing of what they wrote arrives. Biases of norms that do not lie on the way are
        left out. A ValueError if nothing reads under this name, or the way from a writer to the
        reader is not linear.
        """
        if reader not in self.inputs:
            raise ValueError(
                f"{reader!r:.80} reads nothing from the stream; readers are "
                f"{', '.join(self.inputs)}"
            )
        read = self.inputs[reader]
        writers = self._before[reader]
        with torch.inference_mode(False):
            asked = self.numbers(directions)
            gradients = torch.autograd.grad(
                read,
                [self._leaves[name] for name in writers],
                asked.unsqueeze(-3),
                retain_graph=True,
                allow_unused=True,
                is_grads_batched=directions.dim() == 3,
            )
        by_writer = zip(writers, gradients, strict=True)
        pulled = {
            name: torch.zeros_like(asked) if back is None else back.squeeze(-3)
            for name, back in by_writer
            if back is not None or not name.endswith(".bias")
        }
        # The derivative is that of a linear map only if all products add up to those of the
        # directions with what is read.
        whole = asked * read.detach()[0]  # [..., n, d_model]
        products = torch.stack(
            [*(direction * self.written[name] for name, direction in pulled.items()), -whole]
        )
        off = products.sum(-1).sum(0)  # [..., n]
        size = products.abs_().sum(-1).amax(0)  # rounding grows with it
        if (off.abs() > NOT_LINEAR[self.dtype] * size).any():
            kind = RESIDUALS[self.model.config.residual].title
            raise ValueError(
                f"the residual “{kind}” is not linear in the stream and in what a sublayer gives, "
                "even with its norms frozen: "
                "what is read is no sum of what was written"
            )
        return pulled

    def added_by_parts(self, pulled: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """How much each part adds, [..., n], in the order of writing, from the result of `pull`;
        the sum is what was pulled.

        Attention is split into its heads (named as `units.Unit` names them) and its output bias, an
        MLP into what its neurons write and its bias. Biases have the names of their parameters. A
        sublayer whose whole output was replaced by an edit stays whole.
        """
        parts: dict[str, Tensor] = {}
        for name, direction in pulled.items():
            whole = (direction * self.written[name]).sum(-1)  # [..., n]
            if name.rpartition(".")[2] not in _SUBLAYERS or self.is_replaced(name):
                parts[name] = whole
                continue
            part = self.part(name)
            own, written_as = (
                (part.output.bias, "output")
                if isinstance(part, AttentionBase)
                else (part.write_vectors()[1], "down")
            )
            bias = None if own is None else (direction * self.numbers(own)).sum(-1)  # [..., n]
            if not isinstance(part, AttentionBase):
                parts[name] = whole if bias is None else whole - bias
            else:
                # [..., n, n_head]
                heads = (
                    self.to_heads(name, direction) * self.numbers(self.values[f"{name}.z"])
                ).sum(-1)
                parts |= {
                    f"{name}.head.{head}": values for head, values in enumerate(heads.unbind(-1))
                }
            if bias is not None:
                parts[f"{name}.{written_as}.bias"] = bias
        return parts

    def is_replaced(self, layer: str) -> bool:
        """Whether an edit replaced the whole output of the sublayer called `layer`."""
        return (
            isinstance(self.model, EditedTransformer) and f"{layer}.out" in self.model.replacements
        )

    def to_heads(self, layer: str, direction: Tensor) -> Tensor:
        """A direction in what an attention wrote, [..., n, d_model], as one in the `z` of each
        head: [..., n, n_head, d_head].

        It goes back through each head's slice of the output projection.
        """
        part = cast(AttentionBase, self.part(layer))
        weighed = direction @ self.numbers(part.output.weight)  # [..., n, n_head · d_head]
        return weighed.unflatten(-1, (-1, part.head_size))

    def sources(self, layer: str, pulled: Mapping[str, Tensor]) -> Tensor:
        """How much each head of a `layer` adds, split by the token that it reads it from: [..., n,
        n_head, keys].

        The share of a token is the pattern times what its value adds; a head's shares sum to what
        it adds (see `added_by_parts`).
        """
        wanted = self.to_heads(layer, pulled[layer])  # [..., n, n_head, d_head]
        values = self.numbers(self.values[f"{layer}.v"])  # [keys, n_kv_head, d_head]
        grouped = wanted.unflatten(-2, (values.shape[1], -1))  # [..., n, n_kv_head, group, d_head]
        # [..., n, n_head, keys]
        products = torch.einsum("...kgd,skd->...kgs", grouped, values).flatten(-3, -2)
        return products * self.numbers(self.values[f"{layer}.pattern"])

    def neurons(self, layer: str, pulled: Mapping[str, Tensor]) -> Tensor:
        """How much each neuron of an MLP adds, [..., n, d_mlp]; with the MLP's bias they sum to
        what it adds.
        """
        part = cast(AnyMLP, self.part(layer))
        return (pulled[layer] @ self.numbers(part.write_vectors()[0])) * self.numbers(
            self.values[f"{layer}.neurons"]
        )
