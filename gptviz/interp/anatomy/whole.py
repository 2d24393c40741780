"""The boxes from tokens to logits: stacks of blocks on the stream, and the head."""

from __future__ import annotations

from collections.abc import Callable

from gptviz.model import Transformer
from gptviz.model.blocks import RESIDUALS, Block
from gptviz.model.heads import HEADS, Head
from gptviz.model.norms import NORMS
from gptviz.model.positions import POSITIONS
from gptviz.text.tokenizers.base import Tokenizer

from .boxes import Anatomy, Piece, lines
from .sublayers import Sublayers


class Whole(Sublayers):
    """A whole model."""

    def whole(self) -> Anatomy:
        config = self.config
        memory = self.encoder() if config.n_encoder_layer else None
        stream = self.stack("", config.n_layer, self.tokens, memory)
        if config.final_norm:
            stream = self.final_norm("", stream, self.tokens)
        self.head(stream)
        return Anatomy(config, tuple(self.boxes), tuple(self.arrows))

    def encoder(self) -> str:
        """The boxes of the encoder; the path of the memory that the decoder reads."""
        config = self.config
        stream = self.stack("encoder.", config.n_encoder_layer, self.source, None)
        if config.final_norm:
            stream = self.final_norm("encoder.", stream, self.source)
        return self.add(
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

    # A stack: tokens, positions, blocks

    def stack(self, at: str, n_layer: int, tokens: int, memory: str | None) -> str:
        """The boxes from token ids to the stream after the last block; the path of the box that gives it."""
        config = self.config
        axis = "source token" if at else "token"
        shape = (tokens, config.d_model)
        stream = self.embed(at, axis, shape)
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

    def embed(self, at: str, axis: str, shape: tuple[int, ...]) -> str:
        """Token ids and their vectors."""
        config = self.config
        ids = self.add(
            f"{at}ids",
            "ids",
            "Tokens",
            "stream",
            "The text in the pieces that the model reads, each a number: its place in the vocabulary.",
            "ids = tokenizer.encode(text)",
            lines(Tokenizer.encode),
            gives=shape[:1],
        )
        [table] = self.weight("embed.weight", ("vocabulary", "d_model"), "W_E")
        if at:  # the same embedding as the decoder's, counted there
            table = Piece(table.name, table.kind, table.shape, table.axes, table.symbol)
        return self.add(
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
            lines(Head.normed, 'tap("final_norm"'),
            [self.activation(f"{at}final_norm", shape, (axis, "d_model"), "final_norm"), *gains],
            [stream],
        )

    # The head

    def head(self, stream: str) -> None:
        """From the finished stream to logits."""
        last = stream.rpartition(".")[2]
        x = "(embed + positions)" if last == "stream" else last
        if self.config.head == "unembed":
            self.unembed(stream, x)
        else:
            self.labels(stream, x)

    def unembed(self, stream: str, x: str) -> None:
        """A score for every token of the vocabulary, from `x`, what the `stream` is called."""
        config = self.config
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

    def labels(self, stream: str, x: str) -> None:
        """A score for every label, and what each token adds to it."""
        config = self.config
        forward = HEADS[config.head].forward
        label = self.linear("head.label", "label", "position" if config.head == "flatten" else "d_model", "label")
        equation = f"shares = {x} · W_labelᵀ / T"
        if config.head == "flatten":
            stream = self.numbers(stream, x)
            equation = "shares[t, label] = number[t] · W_label[label, t]"
        stream = self.add(
            "shares",
            "shares",
            "Shares",
            "output",
            "What each token adds to the score of each label.",
            equation,
            lines(forward, 'tap("shares"'),
            [self.activation("shares", (self.tokens, config.n_label), ("token", "label"), "shares"), label[0]],
            [stream],
        )
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

    def numbers(self, stream: str, x: str) -> str:
        """A number for every token, where a label is decided from all places side by side."""
        token = self.linear("head.token", "number", "d_model", "token")
        return self.add(
            "head.token",
            "number",
            "Number",
            "output",
            "Every token's vector becomes one number.",
            f"number = {self.times(x, 'token', token)}",
            lines(HEADS["flatten"].forward, "self.token"),
            token,
            [stream],
            gives=(self.tokens,),
        )
