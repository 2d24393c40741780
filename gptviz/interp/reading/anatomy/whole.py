"""The boxes from tokens to logits: stacks of blocks on the stream, and the head."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from gptviz.model import Transformer
from gptviz.model.parts.blocks import Block, ParallelBlock
from gptviz.model.parts.heads import HEADS, Flatten, Head, Unembed
from gptviz.model.parts.part import ModelPart
from gptviz.model.parts.positions import POSITIONS
from gptviz.model.parts.residuals import RESIDUALS
from gptviz.model.parts.shortcuts import Mix, Smear
from gptviz.text.tokenizers.base import Tokenizer

from .boxes import Anatomy, Box, BoxTensor, lines
from .drawing import Operand, cap_equation
from .sublayers import Sublayers

SUBLAYERS = {
    "attention": "the attention",
    "cross_attention": "the cross-attention",
    "mlp": "the MLP",
}


class Whole(Sublayers):
    """The boxes of a whole model."""

    def draw_all(self) -> Anatomy:
        """The anatomy with all boxes, from the tokens to the logits."""
        config = self.config
        memory = self.encoder() if config.n_encoder_layer else None
        stream = self.stack("", config.n_layer, self.tokens, memory)
        if config.final_norm:
            stream = self.final_norm("", stream, self.tokens)
        self.head(stream)
        return Anatomy(config, tuple(self.boxes), tuple(self.arrows))

    def encoder(self) -> str:
        """Add the encoder; the path of the box with the memory, which the decoder reads."""
        config = self.config
        stream = self.stack("encoder.", config.n_encoder_layer, self.source, None)
        if config.final_norm:
            stream = self.final_norm("encoder.", stream, self.source)
        shape = (self.source, config.d_model)
        box = Box(
            path="memory",
            name="Memory",
            role="stream",
            about="What the encoder made of the source: a vector per token, for every block of the "
            "decoder to read.",
            equation="memory = "
            f"{'encoder.final_norm' if config.final_norm else 'resid_post of the last block of the encoder'}",
            lines=lines(Transformer.encode, 'tap("memory"'),
            pieces=(self.activation("memory", shape, ("source token", "d_model"), "memory"),),
        )
        return self.add(box, [stream])

    # A stack: tokens, positions, blocks

    def stack(self, at: str, n_layer: int, tokens: int, memory: str | None) -> str:
        """Add a stack of `n_layer` blocks that reads so many tokens, from the token ids to the
        stream after its last block; the path of the box with that stream. `at` is the prefix of its
        paths, "encoder." or "", and `memory` the path of the encoder's memory, where the stack
        reads it.
        """
        axis = "source token" if at else "token"
        shape = (tokens, self.config.d_model)
        reads = [self.embed(at, axis, shape)]
        positions = POSITIONS[self.config.positions]
        if positions.acts_on == "embedding":
            reads.append(self.positions(at, axis, shape))
            is_read_before = (
                self.config.embed_norm or self.config.smear or self.config.mix_embedding
            )
            if is_read_before or not n_layer:  # else the first block is where the two are added
                box = Box(
                    path=f"{at}stream",
                    name="⊕",
                    role="stream",
                    about="The vector of each token plus the vector of its place.",
                    equation=_sum(reads),
                    lines=lines(positions.embed),
                )
                reads = [self.add(box, reads, gives=shape)]
        if self.config.embed_norm:
            reads = [self.embed_norm(at, axis, shape, reads[0])]
        if self.config.smear:
            reads = [
                self.shortcut(
                    "smear", Smear, axis, reads, Smear.equation_of(self.stream_name(reads[0]))
                )
            ]
        embedded = reads[0] if self.config.mix_embedding else None
        middle = reads[0]
        for index in range(n_layer):
            reads = [self.block(f"{at}blocks.{index}", axis, shape, reads, memory, embedded)]
            middle = reads[0] if index == n_layer // 2 else middle
        if self.config.backout and n_layer:
            ends = list(dict.fromkeys([reads[0], middle]))
            equation = f"a · {self.stream_name(reads[0])} + b · resid_post of block {n_layer // 2}"
            reads = [self.shortcut("backout", Mix, axis, ends, equation)]
        return reads[0]

    def shortcut(
        self, path: str, kind: type[ModelPart], axis: str, reads: Sequence[str], equation: str
    ) -> str:
        """Add a part that joins states of the stream, which are `reads`; the path of its box."""
        name = path.rpartition(".")[2]
        shape = self.flows[reads[0]]
        where = Transformer.embed_stream if name == "smear" else Transformer.forward
        box = Box(
            path=path,
            name=kind.title,
            role="stream",
            about=kind.about,
            equation=f"{name} = {equation}",
            lines=lines(where, f'tap("{name}"'),
            pieces=(
                self.activation(path, shape, (axis, "d_model"), name),
                *self.tensors(kind, path),
            ),
        )
        return self.add(box, reads, gives=shape)

    def embed(self, at: str, axis: str, shape: tuple[int, ...]) -> str:
        """Add the token ids and their vectors; the path of the box with the vectors."""
        box = Box(
            path=f"{at}ids",
            name="Tokens",
            role="stream",
            about="The text in the pieces that the model reads, each a number: its place in the "
            "vocabulary.",
            equation="ids = tokenizer.encode(text)",
            lines=lines(Tokenizer.encode),
        )
        ids = self.add(box, gives=shape[:1])
        [table] = self.weight("embed.weight", ("vocabulary", "d_model"), "W_E")
        if self.config.embed_scale == 1:
            scale = ""
        else:
            scale = f"{self.config.embed_scale:g}"
        if at:  # the same embedding as the decoder's, counted there
            table = BoxTensor(table.name, table.kind, table.shape, table.axes, table.symbol)
        box = Box(
            path=f"{at}embed",
            name="Embed",
            role="stream",
            about=f"Every token becomes a vector of {self.config.d_model} numbers: its row of the "
            "embedding"
            + (", the one that the decoder uses too" if at else "")
            + (f", times {scale}." if scale else "."),
            equation="embed[t] = W_E[ids[t]]" + (f" · {scale}" if scale else ""),
            lines=lines(Transformer.embed_stream, 'tap("embed"'),
            pieces=(self.activation(f"{at}embed", shape, (axis, "d_model"), "embed"), table),
        )
        return self.add(box, [ids])

    def embed_norm(self, at: str, axis: str, shape: tuple[int, ...], stream: str) -> str:
        """Add the norm of the tokens' vectors, which are the `stream` so far; the path of its
        box.
        """
        kind = self.norm_kind
        gains = self.gains(f"{at}embed_norm", "d_model")
        value = self.activation(f"{at}embed_norm", shape, (axis, "d_model"), "embed_norm")
        box = Box(
            path=f"{at}embed_norm",
            name="Norm",
            role="weight",
            about="Brings the vectors of the tokens to one size before anything reads them. "
            f"{kind.title}: {kind.about}",
            equation=f"embed_norm = norm({self.stream_name(stream)}), norm(x) = "
            f"{self.norm_equation('x', gains)}",
            lines=lines(Transformer.embed_stream, 'tap("embed_norm"'),
            pieces=(value, *gains),
        )
        return self.add(box, [stream])

    def positions(self, at: str, axis: str, shape: tuple[int, ...]) -> str:
        """Add the vectors of the positions that are added to the embeddings; the path of their
        box.
        """
        kind = POSITIONS[self.config.positions]
        tap = self.activation(f"{at}positions", shape, (axis, "d_model"), "positions")
        box = Box(
            path=f"{at}positions",
            name="Positions",
            role="stream",
            about=kind.about,
            equation=kind.equation,
            lines=lines(kind.embed, 'tap("positions"'),
            pieces=(tap, *self.tensors(kind, f"{at}positions")),
        )
        return self.add(box)

    def block(
        self,
        at: str,
        axis: str,
        shape: tuple[int, ...],
        reads: Sequence[str],
        memory: str | None,
        embedded: str | None,
    ) -> str:
        """Add a block: attention, cross-attention if there is a `memory`, an MLP if the model has
        one, each inside its residual.

        Args:
            at: the path of the block.
            axis: what the rows of the stream are.
            shape: of the stream.
            reads: the paths of the boxes whose sum enters the block.
            memory: the path of the encoder's memory, where the block reads it.
            embedded: the path of the box with what entered block 0, where it is mixed into every
                block.

        Returns:
            The path of the box with the stream after the block.
        """
        has_mlp = self.config.mlp_size > 0
        is_parallel = has_mlp and RESIDUALS[self.config.residual].parallel
        before = _sum(reads)
        if before.startswith("resid"):
            before = "resid_post of the block before"
        else:
            before = before
        about = (
            "The residual stream as the block finds it: a vector per token, to which every part "
            "adds."
        )
        mix = list[BoxTensor]()
        where = lines((ParallelBlock if is_parallel else Block).forward, 'tap("resid_pre"')
        if len(reads) > 1:  # the vectors of the tokens and of their places
            where = lines(POSITIONS[self.config.positions].embed, 'tap("positions"')
        if embedded is not None:
            where = lines(Mix.forward, "a * x + b * y")
            about = f"{about} {Mix.about}"
            before = f"a · {before} + b · {self.stream_name(embedded)}"
            mix = self.tensors(Mix, f"{at}.mix")
            reads = list(dict.fromkeys([*reads, embedded]))
        box = Box(
            path=f"{at}.resid_pre",
            name="⊕" if len(reads) > 1 else "In",
            role="stream",
            about=about,
            equation=f"resid_pre = {before}",
            lines=where,
            pieces=(
                self.activation(f"{at}.resid_pre", shape, (axis, "d_model"), "resid_pre"),
                *mix,
            ),
        )
        stream = Operand(self.add(box, reads), "resid_pre", axis)
        if is_parallel:
            return self.side_by_side(at, stream)
        if memory:
            after = "resid_self"
        elif has_mlp:
            after = "resid_mid"
        else:
            after = "resid_post"
        stream = self.join(
            at, "attention", stream, after, lambda x: self.attention(f"{at}.attention", x)
        )
        if memory is not None:
            after = "resid_mid" if has_mlp else "resid_post"
            cross = f"{at}.cross_attention"
            stream = self.join(
                at, "cross_attention", stream, after, lambda x: self.cross(cross, x, memory)
            )
        if has_mlp:
            stream = self.join(at, "mlp", stream, "resid_post", lambda x: self.mlp(f"{at}.mlp", x))
        return stream.path

    def side_by_side(self, at: str, stream: Operand) -> str:
        """Add attention and MLP that both read the `stream`, and their sum with it; the path of the
        box with the sum.
        """
        kind = RESIDUALS[self.config.residual]
        attended = self.branch(at, "attention", stream)
        x = self.attention(f"{at}.attention", attended)
        y = self.mlp(f"{at}.mlp", attended if kind.shares_norm else self.branch(at, "mlp", stream))
        box = Box(
            path=f"{at}.resid_post",
            part="parallel.join",
            name="⊕",
            role="stream",
            about=f"What attention and MLP found is added to the stream at once. {kind.title}: "
            f"{kind.about}",
            equation="resid_post = resid_pre + attention.out + mlp.out",
            lines=lines(ParallelBlock.forward, 'tap("resid_post"'),
            pieces=(
                self.activation(
                    f"{at}.resid_post",
                    self.flows[stream.path],
                    (stream.axis, "d_model"),
                    "resid_post",
                ),
            ),
        )
        return self.add(box, [stream.path, x, y])

    def branch(self, at: str, part: str, stream: Operand) -> Operand:
        """Add the norm through which a sublayer parallel to another one reads the `stream`; what
        the sublayer reads.
        """
        kind = RESIDUALS[self.config.residual]
        gains = self.gains(f"{at}.{part}_residual.norm", "d_model")
        box = self.norm(at, part, "norm", stream.symbol, gains, after_sublayer=False)
        if kind.shares_norm:
            box = replace(box, about=f"{box.about} Attention and MLP both read this.")
        path = self.add(
            replace(box, pieces=tuple(gains)), [stream.path], gives=self.flows[stream.path]
        )
        return Operand(path, f"norm({stream.symbol})", stream.axis)

    def join(
        self, at: str, part: str, stream: Operand, after: str, sublayer: Callable[[Operand], str]
    ) -> Operand:
        """Add a sublayer and each step of the residual that joins it to the `stream`.

        Args:
            at: the path of the block.
            part: the name of the sublayer.
            stream: the stream before it.
            after: the tap of the stream after it.
            sublayer: adds the boxes of the sublayer over an operand, and returns the path of the
                box with its output.

        Returns:
            The stream after it.
        """
        kind = RESIDUALS[self.config.residual]
        module = f"{at}.{'cross' if part == 'cross_attention' else part}_residual"
        value = self.activation(
            f"{at}.{after}", self.flows[stream.path], (stream.axis, "d_model"), after
        )
        own = self.tensors(kind, module, inner=kind.steps)
        x = stream
        after_sublayer = False
        for step in kind.steps:
            last = step == kind.steps[-1]
            if step == "sublayer":
                x = Operand(sublayer(x), "out", stream.axis)
                after_sublayer = True
                if not last:
                    continue
            if step in ("sublayer", "add"):
                box = self.add_sum(at, part, stream.symbol, adds=step == "add")
                learned = own
                if step == "add":
                    reads = [stream.path, x.path]
                else:
                    reads = [x.path]
                symbol = box.equation
                meaning = ""
            else:
                learned = self.gains(f"{module}.{step}", "d_model")
                place = "norm_after" if after_sublayer else "norm"
                box = self.norm(at, part, place, x.symbol, learned, after_sublayer=after_sublayer)
                reads = [x.path]
                symbol = f"norm({x.symbol})"
                meaning = f", norm(x) = {self.norm_equation('x', learned)}"
            if last:
                equation = f"{after} = {kind.equation_with(stream.symbol, 'out')}{meaning}"
                box = replace(
                    box, path=f"{at}.{after}", equation=equation, pieces=(value, *learned)
                )
            else:
                box = replace(box, pieces=tuple(learned))
            x = Operand(self.add(box, reads, gives=value.shape), symbol, stream.axis)
        return replace(x, symbol=after)

    def add_sum(self, at: str, part: str, stream: str, *, adds: bool) -> Box:
        """The box where a sublayer's output is added to the stream, or replaces it."""
        kind = RESIDUALS[self.config.residual]
        if adds:
            about = f"What {SUBLAYERS[part]} found is added to the stream, which keeps all it had."
        else:
            about = (
                f"What {SUBLAYERS[part]} found replaces the stream: this model has no residual "
                "connections."
            )
        inner = kind.equation_with(stream, "out")
        if kind.steps[-1] not in ("sublayer", "add"):  # the norm around it has a box of its own
            inner = inner.removeprefix("norm(").removesuffix(")")
        return Box(
            path=f"{at}.{part}.sum",
            part=f"{part}.join",
            name="⊕" if adds else "=",
            role="stream",
            about=f"{about} {kind.title}: {kind.equation}, where f is {SUBLAYERS[part]}.",
            equation=inner,
            lines=lines(kind.forward, "return"),
        )

    def norm(
        self,
        at: str,
        part: str,
        step: str,
        x: str,
        gains: Sequence[BoxTensor],
        *,
        after_sublayer: bool,
    ) -> Box:
        """The box of a norm inside a residual, which normalises what equations call `x`."""
        kind = self.norm_kind
        if after_sublayer:
            about = (
                "Brings the numbers of every token's vector to one size, so that no sum grows out "
                "of hand."
            )
        else:
            about = (
                "Brings the numbers of every token's vector to one size before they are read; the "
                "stream itself stays as it is."
            )
        return Box(
            path=f"{at}.{part}.{step}",
            part=f"{part}.{step}",
            name="Norm",
            role="weight",
            about=f"{about} {kind.title}: {kind.about}",
            equation=f"norm({x}) = {self.norm_equation(x, gains)}",
            lines=lines(kind),
        )

    def final_norm(self, at: str, stream: str, tokens: int) -> str:
        """Add the norm after the last block; the path of its box."""
        kind = self.norm_kind
        gains = self.gains(f"{at}head.final_norm", "d_model")
        axis = "source token" if at else "token"
        before = self.stream_name(stream)
        value = self.activation(
            f"{at}final_norm", (tokens, self.config.d_model), (axis, "d_model"), "final_norm"
        )
        box = Box(
            path=f"{at}final_norm",
            name="Norm",
            role="weight",
            about=f"Brings the vectors of the finished stream to one size. {kind.title}: "
            f"{kind.about}",
            equation=f"final_norm = norm({before}), norm(x) = {self.norm_equation('x', gains)}",
            lines=lines(Head.apply_final_norm, 'tap("final_norm"'),
            pieces=(value, *gains),
        )
        return self.add(box, [stream])

    def stream_name(self, stream: str) -> str:
        """The name of the finished `stream` in equations."""
        last = stream.rpartition(".")[2]
        if last != "stream":
            return last
        return _sum([arrow.start for arrow in self.arrows if arrow.end == stream])

    # The head

    def head(self, stream: str) -> None:
        """Add the boxes from the final stream to the logits."""
        name = self.stream_name(stream)
        x = f"({name})" if " " in name else name
        kind = HEADS[self.config.head]
        if kind.has_shares:
            self.labels(stream, x)
        elif kind.classifies:
            self.labels_of_first(stream, x)
        else:
            self.unembed(stream, x)

    def unembed(self, stream: str, x: str) -> None:
        """Add a score for every token of the vocabulary; `x` is the name of the `stream` in
        equations.
        """
        config = self.config
        pieces = self.linear("head.unembed", "vocabulary", "d_model", "U")
        about = Unembed.about
        if config.tied:
            about += " The matrix is the embedding, used the other way round."
        equation = cap_equation(self.times(x, "U", pieces), config.logit_cap)
        if config.logit_cap is not None:
            about += (
                f" A cap keeps every score between −{config.logit_cap:g} and {config.logit_cap:g}."
            )
        value = self.activation(
            "logits", (self.tokens, config.vocab_size), ("token", "vocabulary"), "logits"
        )
        box = Box(
            path="logits",
            name=Unembed.title,
            role="output",
            about=about,
            equation=f"logits = {equation}" + (", W_U = W_E" if config.tied else ""),
            lines=lines(Unembed.forward, 'tap("logits"'),
            pieces=(value, *pieces),
        )
        self.add(box, [stream])

    def labels(self, stream: str, x: str) -> None:
        """Add a score for every label, and what each token adds to it."""
        config = self.config
        kind = HEADS[self.config.head]
        by_place = issubclass(kind, Flatten)
        weight, bias = self.linear(
            "head.label", "label", "position" if by_place else "d_model", "label"
        )
        if by_place:
            stream = self.numbers(stream, x)
        value = self.activation(
            "shares", (self.tokens, config.n_label), ("token", "label"), "shares"
        )
        box = Box(
            path="shares",
            name="Shares",
            role="output",
            about="What each token adds to the score of each label.",
            equation=kind.equation_of(x),
            lines=lines(kind.forward, 'tap("shares"'),
            pieces=(value, weight),
        )
        shares = self.add(box, [stream])
        box = Box(
            path="logits",
            name="Labels",
            role="output",
            about="The shares of all tokens together: a score for each label, whose softmax is the "
            "decision.",
            equation="logits = Σ_t shares[t] + b_label",
            lines=lines(kind.forward, 'tap("logits"'),
            pieces=(self.activation("logits", (config.n_label,), ("label",), "logits"), bias),
        )
        self.add(box, [shares])

    def labels_of_first(self, stream: str, x: str) -> None:
        """Add what a layer makes of the first token, and a score for every label that reads it."""
        config = self.config
        kind = HEADS[self.config.head]
        box = Box(
            path="pooled",
            name="First token",
            role="output",
            about=kind.about,
            equation=kind.equation_of(x),
            lines=lines(kind.forward, 'tap("pooled"'),
            pieces=(
                self.activation("pooled", (config.d_model,), ("d_model",), "pooled"),
                *self.linear("head.pool", "d_model", "d_model", "pool"),
            ),
        )
        pooled = self.add(box, [stream])
        label = self.linear("head.label", "label", "d_model", "label")
        box = Box(
            path="logits",
            name="Labels",
            role="output",
            about="A score for each label, whose softmax is the decision.",
            equation=f"logits = {self.times('pooled', 'label', label)}",
            lines=lines(kind.forward, 'tap("logits"'),
            pieces=(self.activation("logits", (config.n_label,), ("label",), "logits"), *label),
        )
        self.add(box, [pooled])

    def numbers(self, stream: str, x: str) -> str:
        """Add a number for every token, for a head that gives each position its own weights; the
        path of their box.
        """
        token = self.linear("head.token", "number", "d_model", "token")
        box = Box(
            path="head.token",
            part="number",
            name="Number",
            role="output",
            about="Every token's vector becomes one number.",
            equation=f"number = {self.times(x, 'token', token)}",
            lines=lines(Flatten.forward, "self.token"),
            pieces=tuple(token),
        )
        return self.add(box, [stream], gives=(self.tokens,))


def _sum(paths: Sequence[str]) -> str:
    """The sum of what some boxes compute."""
    return " + ".join(path.rpartition(".")[2] for path in paths)
