"""The boxes of the sublayers: attention, cross-attention, MLP."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gptviz.model.parts.activations import ACTIVATIONS
from gptviz.model.parts.attention import Attention, AttentionBase, CrossAttention
from gptviz.model.parts.experts import MixtureOfExperts
from gptviz.model.parts.masks import MASKS, FullMask, Mask, WindowMask
from gptviz.model.parts.mlps import MLPS
from gptviz.model.parts.positions import POSITIONS
from gptviz.model.parts.qk_norms import QK_NORMS
from gptviz.model.parts.shortcuts import ValueEmbedding

from .boxes import Arrow, Box, BoxTensor, Role, SourceLines, lines
from .drawing import Drawing, Operand, block_of, cap_equation


@dataclass(frozen=True)
class ProjectionWords:
    """The words of the map about queries, keys or values, in self-attention and in cross-attention
    alike.
    """

    part: str
    name: str
    role: Role
    about: str


# A matrix of an MLP in its equation, such as up(x).
WIDENED = re.compile(r"(\w+)\(x\)")
QUERY = ProjectionWords("q", "Query", "query", "What {each} looks for, a vector per head.")
KEY = ProjectionWords("k", "Key", "key", "What {each} offers to be found by, a vector per {head}.")
VALUE = ProjectionWords(
    "v", "Value", "value", "What {each} hands over to those who look at it, a vector per {head}."
)


@dataclass(frozen=True)
class ArithmeticStep:
    """A step that queries, keys or both pass through after their projection."""

    path: str  #: the path of its box
    function: str  #: its name in equations
    parts: tuple[str, ...] = ("q", "k")  #: "q", "k" or both


class Sublayers(Drawing):
    """The boxes inside a block. Each sublayer's method returns the path of the box whose value is
    added to the stream.
    """

    def attention(self, at: str, x: Operand) -> str:
        """Add self-attention over `x`, the stream or its norm; the path of the box with its
        output.
        """
        positions = POSITIONS[self.config.positions]
        steps = [
            *self.qk_norms(at),
            *(self.add_rotation(at) if positions.acts_on == "query and key" else []),
        ]
        keys = self.width + self.key_width
        values = self.width + 2 * self.key_width
        q = self.project(at, QUERY, x, f"{at}.qkv", (0, self.width), steps)
        k = self.project(at, KEY, x, f"{at}.qkv", (self.width, keys), steps)
        v = self.project(at, VALUE, x, f"{at}.qkv", (keys, values), steps)
        reads = [q, k]
        term = ""
        if positions.acts_on == "scores":
            reads.append(self.by_distance(at))
            term = self.score_term()
        scores = self.scores(at, term, reads, lines(Attention.forward, "scaled"), x.axis, x.axis)
        return self.add_reading(at, scores, self.mask_of(at), v, x.axis, x.axis)

    def cross(self, at: str, x: Operand, memory: str) -> str:
        """Add cross-attention from `x` to the encoder's `memory`; the path of the box with its
        output.
        """
        steps = self.qk_norms(at)
        width = self.key_width
        source = Operand(memory, "memory", "source token")
        q = self.project(at, QUERY, x, f"{at}.q", None, steps)
        k = self.project(at, KEY, source, f"{at}.kv", (0, width), steps)
        v = self.project(at, VALUE, source, f"{at}.kv", (width, 2 * width), steps)
        scores = self.scores(
            at, "", [q, k], lines(CrossAttention.forward, "scores"), x.axis, source.axis
        )
        return self.add_reading(at, scores, FullMask, v, x.axis, source.axis)

    def mask_of(self, at: str) -> Mask:
        """The mask of the self-attention `at`."""
        config = self.in_block(at)
        if config.window is not None and config.has_window(block_of(at)):
            return WindowMask(config.window)
        return MASKS[config.mask]()

    def qk_norms(self, at: str) -> list[ArithmeticStep]:
        """Add the norms of queries and keys: none, one for both, or one for each."""
        kind = QK_NORMS[self.config.qk_norm]
        size = self.config.head_size
        if kind.is_whole:
            sizes = {"q": self.width, "k": self.key_width}
        else:
            sizes = {}
        return [self.qk_norm(at, name, sizes.get(name, size)) for name in kind.names]

    def qk_norm(self, at: str, name: str, size: int) -> ArithmeticStep:
        """Add a norm over `size` numbers, of queries ("q"), of keys ("k") or of both ("qk")."""
        is_both = name == "qk"
        is_whole = QK_NORMS[self.config.qk_norm].is_whole
        path, function = (
            (f"{at}.qk_norm", "qk_norm") if is_both else (f"{at}.qk_norm.{name}", f"norm_{name}")
        )
        what = {"q": "every query", "k": "every key", "qk": "every query and key"}[name]
        if is_whole:
            what = f"the {'queries' if name == 'q' else 'keys'} of a token, all heads together,"
        heads = self.key_head if name == "k" else "head"
        gains = self.gains(path, f"{heads} · d_head" if is_whole else "d_head")
        over = f"over the {size} numbers of {f'all {heads}s' if is_whole else 'a head'}"
        box = Box(
            path=path,
            part="qk_norm",
            name="Norm",
            role="weight",
            about=f"Brings {what} to one size, so that no score grows out of hand.",
            equation=f"{function}(x) = {self.norm_equation('x', gains)}, {over}",
            lines=lines(self.norm_kind),
            pieces=tuple(gains),
        )
        return ArithmeticStep(self.add(box, gives=(size,)), function, tuple(name))

    def add_rotation(self, at: str) -> list[ArithmeticStep]:
        """Add the positions that turn queries and keys."""
        config = self.in_block(at)
        kind = POSITIONS[config.positions]
        pieces = tuple(self.tensors(kind, f"{at}.positions"))
        box = Box(
            path=f"{at}.positions",
            part="turn",
            name=kind.title,
            role="stream",
            about=kind.about_of(config),
            equation=kind.equation,
            lines=lines(kind.turn, "return"),
            pieces=pieces,
        )
        shape = (config.context_length, config.head_size)
        return [
            ArithmeticStep(
                self.add(box, gives=pieces[0].shape if pieces else shape),
                kind.equation.partition("(")[0],
            )
        ]

    def project(
        self,
        at: str,
        one: ProjectionWords,
        x: Operand,
        linear: str,
        rows: tuple[int, int] | None,
        steps: Sequence[ArithmeticStep],
    ) -> str:
        """Add the queries, keys or values of `x`, split into heads; the path of their box.

        Args:
            linear: the name of the linear part that computes them.
            rows: the rows of its matrix that do, or None for all.
            steps: what queries and keys pass through afterwards.
        """
        config = self.config
        symbol = one.part.upper()
        heads, head = (config.n_head, "head") if one is QUERY else (config.key_heads, self.key_head)
        pieces = self.linear(linear, f"{head} · d_head", "d_model", symbol, rows)
        own = [step for step in steps if one.part in step.parts]
        projected = self.times(x.symbol, symbol, pieces)
        for step in own:
            projected = f"{step.function}({projected})"
        about = one.about
        if one is VALUE and linear.endswith(".qkv") and config.embeds_values(block_of(at)):
            pieces += self.tensors(ValueEmbedding, f"{at}.value_embed")
            projected = f"{projected} + {ValueEmbedding.equation_of(x.symbol)}"
            about = f"{about} {ValueEmbedding.about}"
        if x.symbol == "memory":
            each = "each token of the source"
        else:
            each = "each token"
        shape = (heads, self.flows[x.path][0], config.head_size)
        forward = (CrossAttention if at.endswith("cross_attention") else Attention).forward
        box = Box(
            path=f"{at}.{one.part}",
            name=one.name,
            role=one.role,
            about=about.format(each=each, head=head) + ("" if one is QUERY else self.sharing),
            equation=f"{one.part} = {projected}",
            lines=lines(forward, f'"{one.part}"'),
            pieces=(
                self.activation(f"{at}.{one.part}", shape, (head, x.axis, "d_head"), one.part),
                *pieces,
            ),
        )
        path = self.add(box, [x.path])
        self.arrows += [Arrow(step.path, path, shape) for step in own]
        return path

    @property
    def group(self) -> int:
        """How many heads share a key head."""
        return self.config.n_head // self.config.key_heads

    @property
    def key_head(self) -> str:
        """The name of the heads of keys and values."""
        if self.group == 1:
            return "head"
        return "key head"

    @property
    def sharing(self) -> str:
        """A sentence on which heads share keys and values; empty if none do."""
        if self.group == 1:
            return ""
        if self.config.key_heads == 1:
            return f" All {self.group} heads share one key head."
        return (
            f" A key head serves {self.group} heads: key head 0 the heads 0 to {self.group - 1}, "
            "and so on."
        )

    def score_term(self) -> str:
        """The term of the positions in the equation of the scores."""
        return POSITIONS[self.config.positions].equation.replace(" / √d_head", self.scaling)

    @property
    def scaling(self) -> str:
        """The number that the product of a query and a key is multiplied by, as equations write
        it.
        """
        root = self.config.scale**-2  # what scores are usually divided by the root of
        if self.config.scale == 1:
            return ""
        if abs(root - round(root)) < 1e-6 * root:
            return f" / √{round(root)}"
        return f" · {self.config.scale:g}"

    def by_distance(self, at: str) -> str:
        """Add the positions that act on scores, by the distance of two tokens; the path of their
        box.
        """
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

    def scores(
        self, at: str, term: str, reads: Sequence[str], where: SourceLines, query: str, key: str
    ) -> str:
        """Add the scores of every query with every key, of the attention `at`; the path of their
        box. It `reads` the boxes of the queries, of the keys and of what else is added; `term` is
        what positions add, empty for nothing. `where` is the source that computes the scores;
        `query` and `key` are what the rows of both are, such as "token".
        """
        shape = (self.config.n_head, self.flows[reads[0]][1], self.flows[reads[1]][1])
        if term.startswith("−"):
            added = f" − {term[1:]}"
        elif term:
            added = f" + {term}"
        else:
            added = ""
        equation = cap_equation(f"q · kᵀ{self.scaling}{added}", self.config.score_cap)
        about = (
            "Every query is compared with every key: the larger the product, the better they fit."
        )
        if self.config.score_cap is not None:
            about += (
                f" A cap keeps every score between −{self.config.score_cap:g} and "
                f"{self.config.score_cap:g}."
            )
        box = Box(
            path=f"{at}.scores",
            name="Scores",
            role="pattern",
            about=about + self.sharing,
            equation=f"scores = {equation}",
            lines=where,
            pieces=(
                self.activation(
                    f"{at}.scores", shape, ("head", f"query ({query})", f"key ({key})"), "scores"
                ),
            ),
        )
        return self.add(box, reads)

    def add_reading(
        self, at: str, scores: str, mask: type[Mask] | Mask, v: str, query: str, key: str
    ) -> str:
        """Add all boxes from the scores and the values `v` to the attention's output; the path of
        its box.
        """
        if mask.only_padding and self.config.padding is None:
            visible = scores
        else:
            visible = self.add_mask(at, scores, mask)
        axes = ("head", f"query ({query})", f"key ({key})")
        box = Box(
            path=f"{at}.pattern",
            name="Pattern",
            role="pattern",
            about="Each token shares its attention among those it may read: every row sums to 1.",
            equation=f"pattern = softmax({'scores' if visible == scores else 'mask(scores)'})",
            lines=lines(AttentionBase.shares, "softmax(-1)"),
            pieces=(self.activation(f"{at}.pattern", self.flows[scores], axes, "pattern"),),
        )
        return self.gather(at, self.add(box, [visible]), v, query)

    def add_mask(self, at: str, scores: str, mask: type[Mask] | Mask) -> str:
        """Add the mask over the scores; the path of its box."""
        window = mask.window if isinstance(mask, WindowMask) else None
        about = mask.about
        if window is not None:
            about += " A query sees itself " + (
                "alone." if window == 1 else f"and the {window - 1} before it."
            )
        box = Box(
            path=f"{at}.mask",
            name="Mask" if window is None else "Window",
            role="stream",
            about=about,
            equation=mask.equation.replace("`window`", str(window)),
            lines=lines(mask.forward, "return"),
        )
        return self.add(box, [scores], gives=self.flows[scores])

    def gather(self, at: str, pattern: str, v: str, query: str) -> str:
        """Add the values weighted by the pattern, and their projection to the stream; the path of
        the latter's box.
        """
        config = self.config
        queries = self.flows[pattern][1]
        shape = (config.n_head, queries, config.head_size)
        box = Box(
            path=f"{at}.z",
            name="Mix",
            role="value",
            about="What each token gathers: the values of the others, weighted by its attention."
            + self.sharing,
            equation="z = pattern · v",
            lines=lines(AttentionBase.read_values, "self.multiply_grouped("),
            pieces=(self.activation(f"{at}.z", shape, ("head", query, "d_head"), "z"),),
        )
        z = self.add(box, [pattern, v])
        pieces = self.linear(f"{at}.output", "d_model", "head · d_head", "O")
        box = Box(
            path=f"{at}.out",
            name="Output",
            role="stream",
            about="What all heads gathered, side by side, is projected back to the width of the "
            "stream.",
            equation=f"out = {self.times('z', 'O', pieces)}",
            lines=lines(AttentionBase.write, "self.output("),
            pieces=(
                self.activation(f"{at}.out", (queries, config.d_model), (query, "d_model"), "out"),
                *pieces,
            ),
        )
        return self.add(box, [z])

    def mlp(self, at: str, x: Operand) -> str:
        """Add the MLP over `x`; the path of the box with its output."""
        config = self.config
        kind = MLPS[self.config.mlp]
        activation = ACTIVATIONS[self.config.activation]
        if issubclass(kind, MixtureOfExperts):
            return self.experts(at, x)
        wide = (self.flows[x.path][0], config.mlp_size)
        inner = kind.equation.removeprefix("down(").removesuffix(")")
        parts = WIDENED.findall(inner)
        reads = [self.add_matrix(f"{at}.{part}", part, x, wide) for part in parts]
        bent = re.sub(
            r"activation\((\w+)\)",
            lambda found: activation.equation_of(found[1]),
            WIDENED.sub(r"\1", inner),
        )
        about = (
            "What is left of the answers after the activation: most questions do not apply to a "
            "token. "
        )
        box = Box(
            path=f"{at}.neurons",
            name="Neurons",
            role="mlp",
            about=f"{about}{f'{kind.about} ' if len(parts) > 1 else ''}{activation.title}: "
            f"{activation.about}",
            equation=f"neurons = {bent}",
            lines=lines(kind.forward, 'tap("neurons"'),
            pieces=(
                self.activation(f"{at}.neurons", wide, (x.axis, "neuron"), "neurons"),
                *self.tensors(activation, f"{at}.activation"),
                self.what_mlp_reads(at, x),
            ),
        )
        neurons = self.add(box, reads)
        down = self.linear(f"{at}.down", "d_model", "neuron", "down")
        box = Box(
            path=f"{at}.out",
            part="down",
            name="Down",
            role="mlp",
            about="What the neurons found, projected back to the width of the stream.",
            equation=f"out = {self.times('neurons', 'down', down)}",
            lines=lines(kind.forward, 'tap("out"'),
            pieces=(
                self.activation(f"{at}.out", (wide[0], config.d_model), (x.axis, "d_model"), "out"),
                *down,
            ),
        )
        return self.add(box, [neurons])

    def what_mlp_reads(self, at: str, x: Operand) -> BoxTensor:
        """What the MLP reads: it stands in the first of its boxes, behind what that computes."""
        shape = self.flows[x.path][0], self.config.d_model
        return self.activation(f"{at}.read", shape, (x.axis, "d_model"), x.symbol)

    def experts(self, at: str, x: Operand) -> str:
        """Add a mixture of experts over `x`; the path of the box with its output."""
        config = self.config
        kind = MixtureOfExperts
        activation = ACTIVATIONS[self.config.activation]
        tokens = self.flows[x.path][0]
        columns = config.n_expert + (config.d_shared > 0)
        pieces = self.linear(f"{at}.router", "expert", "d_model", "router")
        box = Box(
            path=f"{at}.router",
            name="Router",
            role="mlp",
            about="How well each expert fits each token: the scores that the router gives.",
            equation=f"router = {self.times(x.symbol, 'router', pieces)}",
            lines=lines(kind.weights, "self.router("),
            pieces=(
                self.activation(
                    f"{at}.router", (tokens, config.n_expert), (x.axis, "expert"), "router"
                ),
                *pieces,
                self.what_mlp_reads(at, x),
            ),
        )
        router = self.add(box, [x.path])

        # how much each expert counts
        normed = ", divided by their sum" if config.expert_norm else ""
        if config.d_shared:
            shared = " The last one is shared: every token passes it."
        else:
            shared = ""
        box = Box(
            path=f"{at}.experts",
            name="Experts",
            role="mlp",
            about=f"How much each expert counts: the {config.n_active} largest shares of the "
            f"router{normed}, and 0 for all "
            f"others.{shared}",
            equation=f"weights = {config.n_active} largest of softmax(router){normed}",
            lines=lines(kind.weights, 'tap("experts"'),
            pieces=(
                self.activation(f"{at}.experts", (tokens, columns), (x.axis, "expert"), "weights"),
                *self.linear(f"{at}.shared_gate", "1", "d_model", "shared"),
            ),
        )
        weights = self.add(box, [router, *([x.path] if config.d_shared else [])])

        # the neurons of all experts, and what they add to the stream
        each = [
            *(f"experts.{index}" for index in range(config.n_expert)),
            *(["shared"] if config.d_shared else []),
        ]
        box = Box(
            path=f"{at}.neurons",
            name="Neurons",
            role="mlp",
            about="The neurons of all experts, each times the weight of its expert. "
            f"{activation.title}: {activation.about}",
            equation="neurons = weight_e · activation(gate_e(x)) · up_e(x)",
            lines=lines(kind.forward, 'tap("neurons"'),
            pieces=(
                self.activation(
                    f"{at}.neurons", (tokens, config.mlp_size), (x.axis, "neuron"), "neurons"
                ),
                *(
                    piece
                    for one in each
                    for name in ("gate", "up")
                    for piece in self.linear(
                        f"{at}.{one}.{name}", "neuron", "d_model", f"{name} {one}"
                    )
                ),
            ),
        )
        neurons = self.add(box, [x.path, weights])
        box = Box(
            path=f"{at}.out",
            part="down",
            name="Down",
            role="mlp",
            about="What the neurons of the chosen experts found, projected back to the width of "
            "the "
            "stream.",
            equation="out = Σ neurons_e · W_down_eᵀ",
            lines=lines(kind.forward, 'tap("out"'),
            pieces=(
                self.activation(f"{at}.out", (tokens, config.d_model), (x.axis, "d_model"), "out"),
                *(
                    piece
                    for one in each
                    for piece in self.linear(f"{at}.{one}.down", "d_model", "neuron", f"down {one}")
                ),
            ),
        )
        return self.add(box, [neurons])

    def add_matrix(self, path: str, part: str, x: Operand, gives: tuple[int, ...]) -> str:
        """Add a matrix of the MLP that reads `x`, called `part`; the path of its box."""
        pieces = self.linear(path, "neuron", "d_model", part)
        if part == "gate":
            each = "how much of each answer passes"
        else:
            each = "each a question asked of it"
        box = Box(
            path=path,
            name=part.title(),
            role="mlp",
            about=f"Every token's vector, widened to {gives[1]} numbers, {each}.",
            equation=f"{part} = {self.times(x.symbol, part, pieces)}",
            lines=lines(MLPS[self.config.mlp].forward, f"self.{part}("),
            pieces=tuple(pieces),
        )
        return self.add(box, [x.path], gives=gives)
