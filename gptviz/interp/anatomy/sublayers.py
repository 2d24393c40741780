"""The boxes of the sublayers: attention, cross-attention, MLP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gptviz.model.activations import ACTIVATIONS
from gptviz.model.attention import Attention, AttentionBase, CrossAttention
from gptviz.model.masks import MASKS, FullMask, Mask
from gptviz.model.mlps import MLP
from gptviz.model.norms import NORMS
from gptviz.model.positions import POSITIONS

from .boxes import Arrow, Box, Lines, Role, lines
from .drawing import Drawing, Operand


@dataclass(frozen=True)
class Projection:
    """What the map says about queries, keys or values, in self-attention and in cross-attention alike."""

    part: str
    name: str
    role: Role
    about: str


QUERY = Projection("q", "Query", "query", "What {each} looks for, a vector per head.")
KEY = Projection("k", "Key", "key", "What {each} offers to be found by, a vector per head.")
VALUE = Projection("v", "Value", "value", "What {each} hands over to those who look at it, a vector per head.")


class Sublayers(Drawing):
    """The boxes inside a block. Each sublayer's method returns the path of the box whose value is added to the stream."""

    def attention(self, at: str, x: Operand) -> str:
        """Add self-attention over `x`, the stream or its norm; the path of the box with its output."""
        config, width, size = self.config, self.width, self.config.head_size
        positions = POSITIONS[config.positions]
        shared = self.shared(at, turned=positions.acts_on == "query and key")
        q, k, v = (
            self.project(at, one, x, f"{at}.qkv", (place * width, (place + 1) * width), shared if one is not VALUE else {})
            for place, one in enumerate((QUERY, KEY, VALUE))
        )
        self.arrows += [Arrow(path, head, (config.n_head, self.flows[head][1], size)) for path in shared for head in (q, k)]
        reads, equation = [q, k], f"scores = q · kᵀ / √{size}"
        if positions.acts_on == "scores":
            reads.append(self.by_distance(at))
            term = self.score_term()
            equation += f" − {term[1:]}" if term.startswith("−") else f" + {term}"
        scores = self.scores(at, equation, reads, lines(Attention.forward, "scaled"), x.axis, x.axis)
        return self.read(at, scores, MASKS["full" if at.startswith("encoder.") else config.mask], v, x.axis, x.axis)

    def cross(self, at: str, x: Operand, memory: str) -> str:
        """Add cross-attention from `x` to the encoder's `memory`; the path of the box with its output."""
        shared, width = self.shared(at, turned=False), self.width
        source = Operand(memory, "memory", "source token")
        q = self.project(at, QUERY, x, f"{at}.q", None, shared)
        k = self.project(at, KEY, source, f"{at}.kv", (0, width), shared)
        v = self.project(at, VALUE, source, f"{at}.kv", (width, 2 * width), {})
        self.arrows += [Arrow(path, head, self.flows[head]) for path in shared for head in (q, k)]
        equation, where = f"scores = q · kᵀ / √{self.config.head_size}", lines(CrossAttention.forward, "self.read")
        scores = self.scores(at, equation, [q, k], where, x.axis, source.axis)
        return self.read(at, scores, FullMask, v, x.axis, source.axis)

    def shared(self, at: str, *, turned: bool) -> dict[str, str]:
        """Add what both queries and keys pass through (normalisation, rotation), in this order.

        Returns:
            By path of its box, the name of its function in equations.
        """
        config = self.config
        functions = {}
        if config.qk_norm != "none":
            gains = self.gains(f"{at}.qk_norm", "d_head")
            box = Box(
                path=f"{at}.qk_norm",
                part="qk_norm",
                name="Norm",
                role="weight",
                about="Brings every query and key to one size, so that no score grows out of hand.",
                equation=f"qk_norm(x) = {self.normed('x', gains)}, over the {config.head_size} numbers of a head",
                lines=lines(NORMS[config.norm]),
                pieces=tuple(gains),
            )
            functions[self.add(box, gives=(config.head_size,))] = "qk_norm"
        if turned:
            kind = POSITIONS[config.positions]
            pieces = tuple(self.tensors(kind, f"{at}.positions"))
            box = Box(
                path=f"{at}.positions",
                part="turn",
                name=kind.title,
                role="stream",
                about=kind.about,
                equation=kind.equation,
                lines=lines(kind.turn, "return"),
                pieces=pieces,
            )
            shape = (config.context_length, config.head_size)
            functions[self.add(box, gives=pieces[0].shape if pieces else shape)] = kind.equation.partition("(")[0]
        return functions

    def project(
        self,
        at: str,
        one: Projection,
        x: Operand,
        linear: str,
        rows: tuple[int, int] | None,
        functions: dict[str, str],
    ) -> str:
        """Add the queries, keys or values of `x`, split into heads; the path of their box.

        Args:
            at: the path of the attention they belong to.
            one: which of the three.
            x: what they are computed from.
            linear: the name of the linear part that computes them.
            rows: the rows of its matrix that do; None for all.
            functions: what they pass through afterwards (see `shared`).
        """
        config, symbol = self.config, one.part.upper()
        pieces = self.linear(linear, "head · d_head", "d_model", symbol, rows)
        projected = self.times(x.symbol, symbol, pieces)
        for function in functions.values():
            projected = f"{function}({projected})"
        each = "each token of the source" if x.symbol == "memory" else "each token"
        shape = (config.n_head, self.flows[x.path][0], config.head_size)
        forward = (CrossAttention if at.endswith("cross_attention") else Attention).forward
        box = Box(
            path=f"{at}.{one.part}",
            part=one.part,
            name=one.name,
            role=one.role,
            about=one.about.format(each=each),
            equation=f"{one.part} = {projected}",
            lines=lines(forward, f'"{one.part}"'),
            pieces=(self.activation(f"{at}.{one.part}", shape, ("head", x.axis, "d_head"), one.part), *pieces),
        )
        return self.add(box, [x.path])

    def score_term(self) -> str:
        """What positions add to the scores, as a term of an equation."""
        return POSITIONS[self.config.positions].equation.replace("d_head", str(self.config.head_size))

    def by_distance(self, at: str) -> str:
        """Add the positions that act on scores, by the distance of two tokens; the path of their box."""
        kind = POSITIONS[self.config.positions]
        pieces = self.tensors(kind, f"{at}.positions")
        box = Box(
            path=f"{at}.positions",
            part="distance",
            name=kind.title,
            role="weight" if any(piece.kind == "weight" for piece in pieces) else "stream",
            about=kind.about,
            equation=self.score_term(),
            lines=lines(kind.weigh),
            pieces=tuple(pieces),
        )
        return self.add(box, gives=pieces[0].shape if pieces else (self.config.n_head,))

    def scores(self, at: str, equation: str, reads: Sequence[str], where: Lines, query: str, key: str) -> str:
        """Add the scores of every query with every key; the path of their box.

        Args:
            at: the path of the attention.
            equation: for this config.
            reads: the paths of the queries, of the keys and of what else is added.
            where: the source that computes them.
            query: what the rows of the queries are, such as "token".
            key: the same of the keys.
        """
        shape = (self.config.n_head, self.flows[reads[0]][1], self.flows[reads[1]][1])
        box = Box(
            path=f"{at}.scores",
            part="scores",
            name="Scores",
            role="pattern",
            about="Every query is compared with every key: the larger the product, the better they fit.",
            equation=equation,
            lines=where,
            pieces=(self.activation(f"{at}.scores", shape, ("head", f"query ({query})", f"key ({key})"), "scores"),),
        )
        return self.add(box, reads)

    def read(self, at: str, scores: str, mask: type[Mask], v: str, query: str, key: str) -> str:
        """Add all boxes from the scores and the values `v` to the attention's output; the path of its box."""
        visible = scores if mask.only_padding and self.config.padding is None else self.masked(at, scores, mask)
        axes = ("head", f"query ({query})", f"key ({key})")
        box = Box(
            path=f"{at}.pattern",
            part="pattern",
            name="Pattern",
            role="pattern",
            about="Each token shares its attention among those it may read: every row sums to 1.",
            equation=f"pattern = softmax({'scores' if visible == scores else 'mask(scores)'})",
            lines=lines(AttentionBase.read, 'tap("pattern"'),
            pieces=(self.activation(f"{at}.pattern", self.flows[scores], axes, "pattern"),),
        )
        return self.gather(at, self.add(box, [visible]), v, query)

    def masked(self, at: str, scores: str, mask: type[Mask]) -> str:
        """Add the mask over the scores; the path of its box."""
        box = Box(
            path=f"{at}.mask",
            part="mask",
            name="Mask",
            role="stream",
            about=mask.about,
            equation=mask.equation,
            lines=lines(mask.forward, "return"),
        )
        return self.add(box, [scores], gives=self.flows[scores])

    def gather(self, at: str, pattern: str, v: str, query: str) -> str:
        """Add the values weighted by the pattern, and their projection to the stream; the path of the latter's box."""
        config = self.config
        queries = self.flows[pattern][1]
        shape = (config.n_head, queries, config.head_size)
        box = Box(
            path=f"{at}.z",
            part="z",
            name="z",
            role="value",
            about="What each token gathers: the values of the others, weighted by its attention.",
            equation="z = pattern · v",
            lines=lines(AttentionBase.read, 'tap("z"'),
            pieces=(self.activation(f"{at}.z", shape, ("head", query, "d_head"), "z"),),
        )
        z = self.add(box, [pattern, v])
        pieces = self.linear(f"{at}.output", "d_model", "head · d_head", "O")
        box = Box(
            path=f"{at}.out",
            part="out",
            name="Output",
            role="stream",
            about="What all heads gathered, side by side, is projected back to the width of the stream.",
            equation=f"out = {self.times('z', 'O', pieces)}",
            lines=lines(AttentionBase.read, 'tap("out"'),
            pieces=(self.activation(f"{at}.out", (queries, config.d_model), (query, "d_model"), "out"), *pieces),
        )
        return self.add(box, [z])

    def mlp(self, at: str, x: Operand) -> str:
        """Add the MLP over `x`; the path of the box with its output."""
        config, activation = self.config, ACTIVATIONS[self.config.activation]
        tokens = self.flows[x.path][0]
        up = self.linear(f"{at}.up", "neuron", "d_model", "up")
        box = Box(
            path=f"{at}.up",
            part="up",
            name="Up",
            role="mlp",
            about=f"Every token's vector, widened to {config.mlp_size} numbers, each a question asked of it.",
            equation=f"up = {self.times(x.symbol, 'up', up)}",
            lines=lines(MLP.forward, "self.up"),
            pieces=tuple(up),
        )
        wide = self.add(box, [x.path], gives=(tokens, config.mlp_size))
        tap = self.activation(f"{at}.neurons", (tokens, config.mlp_size), (x.axis, "neuron"), "neurons")
        box = Box(
            path=f"{at}.neurons",
            part="neurons",
            name="Neurons",
            role="mlp",
            about="What is left of the answers after the activation: most questions do not apply to a token. "
            f"{activation.title}: {activation.about}",
            equation=f"neurons = {activation.equation_of('up')}",
            lines=lines(MLP.forward, 'tap("neurons"'),
            pieces=(tap, *self.tensors(activation, f"{at}.activation")),
        )
        neurons = self.add(box, [wide])
        down = self.linear(f"{at}.down", "d_model", "neuron", "down")
        box = Box(
            path=f"{at}.out",
            part="down",
            name="Down",
            role="mlp",
            about="What the neurons found, projected back to the width of the stream.",
            equation=f"out = {self.times('neurons', 'down', down)}",
            lines=lines(MLP.forward, 'tap("out"'),
            pieces=(self.activation(f"{at}.out", (tokens, config.d_model), (x.axis, "d_model"), "out"), *down),
        )
        return self.add(box, [neurons])
