"""The boxes of the sublayers: attention, cross-attention, MLP."""

from __future__ import annotations

from typing import Any

from gptviz.model.attention import Attention, AttentionBase, CrossAttention
from gptviz.model.blocks import MLP
from gptviz.model.masks import MASKS
from gptviz.model.norms import NORMS
from gptviz.model.positions import POSITIONS

from .boxes import Arrow, Lines, Piece, Role, lines
from .drawing import Drawing

ACTIVATION = {
    "relu": "max(0, up)",
    "relu2": "max(0, up)²",
    "gelu": "up · Φ(up)",
    "gelu-tanh": "½ · up · (1 + tanh(√(2 / π) · (up + 0.044715 · up³)))",
}


class Sublayers(Drawing):
    """What stands within a block: each method gives the path of the box whose value is added to the stream."""

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
                    f"qk_norm(x) = {self.normed('x', gains)}, over the {config.head_size} numbers of a head",
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
            projected = f"qk_norm({projected})"
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
        square, axes = (self.config.n_head, queries, keys), ("head", f"query ({query})", f"key ({key})")
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
        visible = self.mask(at, scores)
        pattern = self.add(
            f"{at}.pattern",
            "pattern",
            "Pattern",
            "pattern",
            "Each token shares its attention among those it may read: every row sums to 1.",
            f"pattern = softmax({'scores' if visible == scores else 'mask(scores)'})",
            lines(AttentionBase.read, 'tap("pattern"'),
            [self.activation(f"{at}.pattern", square, axes, "pattern")],
            [visible],
        )
        return self.gather(at, pattern, v, query)

    def mask(self, at: str, scores: str) -> str:
        """The scores with what a query may not read hidden; the path of the scores themselves where all may be read."""
        masks = self.config.mask == "causal" and "encoder." not in at and "cross_attention" not in at
        if not masks and self.config.padding is None:
            return scores
        hidden = "the tokens after it" if masks else "the padding that fills up shorter texts"
        return self.add(
            f"{at}.mask",
            "mask",
            "Mask",
            "stream",
            f"Hides from every query {hidden}.",
            f"mask(scores)[query, key] = −∞ where the key is {'after the query' if masks else 'padding'}, else scores",
            lines(MASKS["causal" if masks else "full"], "return"),
            (),
            [scores],
            gives=self.flows[scores],
        )

    def gather(self, at: str, pattern: str, v: str, query: str) -> str:
        """The values weighted by a pattern, and what is made of those of all heads."""
        config = self.config
        queries = self.flows[pattern][1]
        mixed = (config.n_head, queries, config.head_size)
        z = self.add(
            f"{at}.z",
            "z",
            "z",
            "value",
            "What each token gathers: the values of the others, weighted by its attention.",
            "z = pattern · v",
            lines(AttentionBase.read, 'tap("z"'),
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
            lines(AttentionBase.read, 'tap("out"'),
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
