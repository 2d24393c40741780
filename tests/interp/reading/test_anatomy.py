"""The anatomy of a model says what the model is: held to its parameters, to the passes it makes,
and to its equations, which are read and computed here.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from gptviz.interp.reading.anatomy import Anatomy, Box, anatomy, values
from gptviz.interp.trace import Trace, run
from gptviz.model import PRESETS, Config, Transformer, parameter_count
from gptviz.model.parts import attention, positions, shortcuts
from gptviz.model.parts.activations import ACTIVATIONS
from gptviz.model.parts.mlps import MLPS
from gptviz.model.parts.positions import alibi_slopes
from gptviz.model.tap import Tap
from tests.examples import tried
from tests.tiny import NO_SHORTCUTS, families, scrambled, some_ids, tiny

ROOT = Path(__file__).parents[3]
# Unlike each other and unlike any size of the models: a product along the wrong axis shows.
T = 5
S = 7
# What the lines marked beside a box of attention do, whose tap stands in another function or before
# it.
COMPUTED_BY = {
    "scores": "scores = self.multiply_grouped(",
    "pattern": ".softmax(-1)",
    "z": "self.multiply_grouped(",
    "out": "self.output(",
}


@st.composite
def anything(draw: st.DrawFn, **fixed: Any) -> Config:
    """Any decoder, classifier or encoder–decoder of the axes of variation; `fixed` fields stay as
    given.
    """
    kind = draw(st.sampled_from(["decoder", "flatten", "mean", "sum", "pair"]))
    padding = draw(st.sampled_from([None, 0]))
    if kind == "decoder":
        return draw(families(**fixed))
    if kind == "pair":
        return draw(
            families(n_encoder_layer=draw(st.integers(1, 2)), mask="causal", padding=padding)
        )
    return draw(families(head=kind, n_label=5, tied=False, padding=padding, **fixed))


def passed(config: Config, seed: int = 0) -> tuple[Transformer, Trace, Anatomy]:
    model = scrambled(config, seed).double().requires_grad_(False)
    # no padding among them
    ids = some_ids(T, 1, seed=seed) % 10 + 1
    source = some_ids(S, 1, seed=seed + 1) % 10 + 1
    has_encoder = config.n_encoder_layer > 0
    trace = run(model, ids, source=source if has_encoder else None)
    return model, trace, anatomy(config, T, S)


@tried(20, 80, anything())
def test_the_boxes_hold_every_parameter_once(config: Config) -> None:
    drawn = anatomy(config, T, S)
    assert sum(box.parameters for box in drawn.boxes) == parameter_count(config)
    model = scrambled(config)
    covered: Counter[str] = Counter()
    for box in drawn.boxes:
        for piece in box.pieces:
            if piece.kind == "weight":
                whole = model.get_parameter(piece.name)
                assert values(model, Trace(some_ids(), {}), piece).shape == piece.shape
                covered[piece.name] += piece.parameters
                assert piece.parameters in (0, math.prod(piece.shape))
                assert piece.rows is not None or piece.shape == whole.shape
    assert {name: p.numel() for name, p in model.named_parameters()} == {
        name: n for name, n in covered.items() if n
    }


@tried(20, 80, anything())
def test_the_boxes_show_every_value_of_a_pass_with_its_shape(config: Config) -> None:
    model, trace, drawn = passed(config)
    taps = [piece for box in drawn.boxes for piece in box.taps]
    assert sorted(piece.name for piece in taps) == sorted(trace)
    for piece in taps:
        recorded = tuple(trace[piece.name].shape)
        assert recorded == (
            piece.shape if piece.name.endswith("positions") else (1, *piece.shape)
        ), piece.name
        assert torch.equal(values(model, trace, piece), trace[piece.name].reshape(piece.shape))
        assert len(piece.axes) == len(piece.shape)
    aside = ("positions", ".read")  # what an MLP reads stands behind what its first box computes
    order = [name for name in trace if not name.endswith(aside)]
    assert [piece.name for piece in taps if not piece.name.endswith(aside)] == order, (
        "boxes stand as they are computed"
    )


@tried(20, 80, anything())
def test_the_arrows_lead_from_the_tokens_to_the_logits(config: Config) -> None:
    drawn = anatomy(config, T, S)
    paths = [box.path for box in drawn.boxes]
    assert len(set(paths)) == len(paths)
    assert {end for arrow in drawn.arrows for end in (arrow.start, arrow.end)} <= set(paths)

    def reached(start: set[str], forward: bool) -> set[str]:
        seen = set(start)
        while True:
            more = {
                a.end if forward else a.start
                for a in drawn.arrows
                if (a.start if forward else a.end) in seen
            } - seen
            if not more:
                return seen
            seen |= more

    # What depends on no token: places, and what queries, keys and scores are changed by.
    alone = {
        box.path for box in drawn.boxes if box.part in ("positions", "qk_norm", "turn", "distance")
    }
    assert reached({"ids", "encoder.ids"}, forward=True) >= set(paths) - alone
    useless = (
        {path for path in paths if path.startswith("encoder.") or path == "memory"}
        if not config.n_layer
        else set()
    )
    assert reached({"logits"}, forward=False) | useless == set(paths)
    flows = {box.path: box.pieces[0].shape for box in drawn.boxes if box.taps}
    assert all(
        arrow.shape == flows[arrow.start]
        for arrow in drawn.arrows
        if arrow.start in flows and arrow.start not in alone
    )


@settings(max_examples=30)
@given(anything())
def test_the_lines_of_a_box_are_those_of_the_file(config: Config) -> None:
    for box in anatomy(config, T, S).boxes:
        written = (
            (ROOT / box.lines.file)
            .read_text(encoding="utf-8")
            .splitlines()[box.lines.first - 1 : box.lines.last]
        )
        assert [line.strip() for line in written] == [
            line.strip() for line in box.lines.text.splitlines()
        ]
        marked = [written[number - box.lines.first] for number in box.lines.marked]
        for tap in box.taps:
            name = tap.name.rpartition(".")[2]
            if name in COMPUTED_BY and "attention" in tap.name:
                assert any(COMPUTED_BY[name] in line for line in marked), box.path
            # a residual or a norm computes the stream, and what an MLP reads of it
            elif not name.startswith(("resid", "read")):
                assert any(f'tap("{name}"' in line for line in marked), box.path


@settings(max_examples=20)
@given(families())
def test_the_lines_beside_the_boxes_of_attention_compute_their_values(config: Config) -> None:
    model, trace, drawn = passed(config)
    ids = some_ids(T, 1, seed=0) % 10 + 1
    no_tap = Tap()
    for index, block in enumerate(model.blocks):
        at = f"blocks.{index}.attention"
        part = block.attention
        part.cap = None  # scores are recorded below the cap
        blocked = model.masks[model.mask_of[index]](ids, slice(0, T), config.padding)
        inputs = {
            "pattern": (trace[f"{at}.scores"], blocked),
            "z": (trace[f"{at}.pattern"], trace[f"{at}.v"]),
        }
        for name, given_ in (inputs | {"out": (trace[f"{at}.z"],)}).items():
            box = drawn.box(f"{at}.{name}")
            found = dict(vars(attention))
            assert box is not None
            exec(box.lines.text, found)  # the lines as they stand beside the box
            function = found[box.lines.text.partition("def ")[2].partition("(")[0]]
            assert torch.equal(function(part, *given_, no_tap), trace[f"{at}.{name}"]), box.path


@pytest.mark.parametrize("kind", ["learned", "sinusoidal"])
def test_the_lines_beside_the_first_sum_add_the_positions(kind: str) -> None:
    model, trace, drawn = passed(tiny(positions=kind))
    box = drawn.box("blocks.0.resid_pre")
    found = dict(vars(positions))
    assert box is not None
    exec(box.lines.text, found)
    assert torch.equal(
        found["embed"](model.positions, trace["embed"], slice(0, T), Tap()),
        trace["blocks.0.resid_pre"],
    )


def test_the_lines_beside_a_stream_that_is_mixed_mix_it() -> None:
    model, trace, drawn = passed(tiny(positions="rotary", mix_embedding=True))
    box = drawn.box("blocks.1.resid_pre")
    found = dict(vars(shortcuts))
    assert box is not None
    exec(box.lines.text, found)
    mixed = found["forward"](model.blocks[1].mix, trace["blocks.0.resid_post"], trace["embed"])
    assert torch.equal(mixed, trace["blocks.1.resid_pre"])


def test_every_preset_is_drawn_and_blocks_are_alike() -> None:
    for name, config in PRESETS.items():
        drawn = anatomy(config, 4, 4)
        assert sum(box.parameters for box in drawn.boxes) == parameter_count(config), name
        blocks = [
            [
                (
                    box.part,
                    box.role,
                    box.name,
                    box.parameters,
                    [piece.shape for piece in box.pieces],
                )
                for box in drawn.boxes
                if box.path.startswith(f"blocks.{i}.") and box.part != "resid_pre"
            ]
            for i in range(config.n_layer)
        ]
        assert all(block == blocks[0] for block in blocks), name


# Equations, read as they stand


class V:
    """A tensor in an equation: `@` is the product that its two sides call for."""

    def __init__(self, tensor: Tensor, weight: str = "") -> None:
        self.tensor = tensor
        self.weight = weight

    @property
    def T(self) -> V:
        return V(self.tensor.transpose(-2, -1), self.weight)

    def __matmul__(self, other: V | float) -> V:
        if not isinstance(other, V):
            return V(self.tensor * other)
        a = self.tensor
        b = other.tensor
        if not other.weight.startswith("W_"):
            # a gain, a slope or equal shapes go number by number
            elementwise = self.weight or other.weight or a.shape == b.shape
            if not elementwise and len(b) < len(a):  # a key head for several heads
                b = torch.stack([b[head * len(b) // len(a)] for head in range(len(a))])
            return V(a * b if elementwise else a @ b)
        if a.ndim == 3:  # the heads side by side
            a = a.transpose(0, 1).flatten(1)
        product = a @ b
        return V(self.heads(product) if other.weight in ("W_Q", "W_K", "W_V") else product)

    def __rmatmul__(self, other: float) -> V:
        return V(self.tensor * other)

    def heads(self, x: Tensor) -> Tensor:
        return (
            x.unflatten(-1, (-1, V.d_head)).transpose(-3, -2)
            if x.ndim > 1
            else x.unflatten(-1, (-1, 1, V.d_head))
        )

    def _with(self, other: V | float) -> Tensor | float:
        if not isinstance(other, V):
            return other
        return self.heads(other.tensor) if other.weight in ("b_Q", "b_K", "b_V") else other.tensor

    def __add__(self, other: V | float) -> V:
        return V(self.tensor + self._with(other))

    def __radd__(self, other: float) -> V:
        return V(other + self.tensor)

    def __sub__(self, other: V | float) -> V:
        return V(self.tensor - self._with(other))

    def __truediv__(self, other: V | float) -> V:
        return V(self.tensor / self._with(other))

    def __pow__(self, power: int) -> V:
        return V(self.tensor**power)

    d_head = 1


def in_python(equation: str) -> str:
    """The right side of an equation as Python."""
    right = equation.split(" = ", 1)[1] if " = " in equation else equation
    right = re.sub(r"([\d.]+) · 10⁻", r"\1 * 10⁻", right)  # a product of two plain numbers
    for sign, code in (
        (", norm(x) = ", "#"),
        (", W_U = ", "#"),
        (", over ", "#"),
        ("R[query − key]", "R_apart"),
        ("|query − key|", "apart"),
        ("Σ_t shares[t]", "total(shares)"),
        ("W_E[ids[t]]", "rows(W_E, ids)"),
        ("W_P[t]", "rows(W_P, places)"),
        ("encoder.final_norm", "encoder_final_norm"),
        ("resid_post of the last block of the encoder", "encoder_last"),
        ("resid_post of the block before", "before"),
        ("mean of squares", "mean_square"),
        ("√T", "sqrt(T)"),
        ("10⁻⁵", "1e-5"),
        ("10⁻⁶", "1e-6"),
        ("attention.out", "attention_out"),
        ("mlp.out", "mlp_out"),
        ("σ", "sigma"),
        ("·", "@"),
        ("−", "-"),
        ("ᵀ", ".T"),
        ("²", "**2"),
        ("³", "**3"),
        ("½", "0.5"),
        ("π", "math.pi"),
        ("Φ", "phi"),
        ("max(0, up)", "positive(up)"),
        ("max(0, gate)", "positive(gate)"),
    ):
        right = right.replace(sign, code)
    return re.sub(r"√(\d+)", r"math.sqrt(\1)", right).replace("√", "sqrt")


def windowed(config: Config, path: str) -> bool:
    """Whether the self-attention that a path leads into sees a window alone."""
    found = re.match(r"blocks\.(\d+)\.attention", path)
    return bool(found and config.window and (config.window_pattern * 9)[int(found[1])] == "w")


def frequencies(config: Config, path: str) -> list[float]:
    """By how much rotary positions turn each pair from one token to the next, in radians."""
    own = windowed(config, path) and config.window_rotary_base is not None
    pairs = config.head_size // 2
    turned = round(pairs * config.rotary_fraction)
    base = config.window_rotary_base if own else config.rotary_base
    slow = [base ** (-i / turned) if i < turned else 0.0 for i in range(pairs)]
    if own or config.rotary_scaling == "none":
        return slow
    if config.rotary_scaling == "linear":
        return [one / config.rotary_factor for one in slow]
    kept = [
        min(1.0, max(0.0, (config.rotary_context * one / (2 * math.pi) - 1) / 3)) for one in slow
    ]
    return [
        keep * one + (1 - keep) * one / config.rotary_factor
        for keep, one in zip(kept, slow, strict=True)
    ]


def rotated(x: V, config: Config, path: str) -> V:
    """Each pair of numbers (i, i + d/2) as a complex number, turned by its angle."""
    a, b = x.tensor.chunk(2, -1)
    frequency = torch.tensor(frequencies(config, path), dtype=torch.float64)
    turn = torch.polar(
        torch.ones(1, dtype=torch.float64), torch.arange(x.tensor.shape[-2])[:, None] * frequency
    )
    turned = torch.complex(a, b) * turn
    return V(torch.cat((turned.real, turned.imag), -1))


# What the signs of equations mean, whatever the box.
ARITHMETIC: dict[str, Any] = {
    "math": math,
    "T": float(T),
    "sigma": lambda x: V(x.tensor.sigmoid()),
    "softmax": lambda x: V(x.tensor.softmax(-1)),
    "sqrt": lambda x: V(x.tensor.sqrt()) if isinstance(x, V) else math.sqrt(x),
    "tanh": lambda x: V(x.tensor.tanh()),
    "phi": lambda x: V(0.5 * (1 + torch.erf(x.tensor / math.sqrt(2)))),
    "positive": lambda x: V(x.tensor.clamp(min=0)),
    "total": lambda x: V(x.tensor.sum(0)),
    "rows": lambda table, places: V(table.tensor[places]),
}


class Place:
    """Where a box stands: the beginnings of the names that its equation leaves out.

    Attributes:
        stack: "encoder." or nothing.
        block: of its block, as in "blocks.1."; its stack's outside of blocks.
        part: the attention or MLP that it belongs to.
        beside: the path of what it is in, as in "blocks.1.attention".
    """

    def __init__(self, box: Box) -> None:
        found = re.match(r"(?:encoder\.)?(?:blocks\.\d+\.)?", box.path)
        self.stack = "encoder." if box.path.startswith("encoder.") else ""
        self.block = found[0]
        self.beside = box.path.rpartition(".")[0]
        self.part = box.path.removeprefix(self.block).split(".")[0]
        if self.part.startswith("resid"):  # what joined the sublayer to the stream
            self.part = box.part.partition(".")[0]


def recorded(place: Place, config: Config, trace: Trace) -> dict[str, V]:
    """What was recorded in the block and the part of a box, by the names that are used there."""
    found: dict[str, V] = {}
    for where in (place.stack, place.block, f"{place.block}{place.part}.", f"{place.beside}."):
        for name, value in trace.items():
            if name.startswith(where) and "." not in name.removeprefix(where):
                found[name.removeprefix(where)] = V(
                    value if name.endswith("positions") else value[0]
                )
    blocks = config.n_encoder_layer if place.stack else config.n_layer
    if blocks:
        found.setdefault("resid_post", V(trace[f"{place.stack}blocks.{blocks - 1}.resid_post"][0]))
    if "memory" in trace:
        found["memory"] = V(trace["memory"][0])
    for sublayer in ("attention", "mlp"):
        if f"{place.block}{sublayer}.out" in trace:
            found[f"{sublayer}_out"] = V(trace[f"{place.block}{sublayer}.out"][0])
    return found


def weights_of(box: Box | None, model: Transformer, trace: Trace) -> dict[str, Tensor]:
    """The weights of a box by their symbols."""
    return (
        {}
        if box is None
        else {one.symbol: values(model, trace, one) for one in box.pieces if one.kind == "weight"}
    )


def norms(
    box: Box, place: Place, model: Transformer, trace: Trace, drawn: Anatomy
) -> dict[str, Any]:
    """The norms that an equation may name. A norm before this box is a box of its own, which has
    the gain and bias.
    """
    config = model.config

    def normed(x: Tensor, own: dict[str, Tensor]) -> Tensor:
        gain = own.get("gain")
        bias = own.get("bias")
        size = x.shape[-1:]
        if config.norm == "rmsnorm":
            return F.rms_norm(x, size, gain, config.norm_eps or 1e-6)
        return F.layer_norm(x, size, gain, bias, config.norm_eps or 1e-5)

    def drawn_at(path: str) -> dict[str, Tensor]:
        return weights_of(drawn.box(path), model, trace)

    def norm(x: V) -> V:
        own = weights_of(box, model, trace)
        if "gain" in own:  # the box is the norm
            return V(normed(x.tensor, own))
        if box.part.endswith(".join"):
            return V(normed(x.tensor, drawn_at(f"{place.block}{place.part}.norm_after")))
        has_own = drawn.box(f"{place.block}mlp.norm") is not None
        is_shared = config.residual == "parallel-one-norm" and place.part == "mlp" and not has_own
        return V(
            normed(
                x.tensor,
                drawn_at(f"{place.block}attention.norm" if is_shared else f"{place.beside}.norm"),
            )
        )

    def qk_norm(x: V, name: str = "") -> V:
        own = drawn_at(f"{place.beside}.qk_norm{name}")
        if config.qk_norm != "whole":
            return V(normed(x.tensor, own))
        heads = x.tensor.shape[0]
        return V(
            normed(torch.cat(list(x.tensor), -1), own).unflatten(-1, (heads, -1)).transpose(0, 1)
        )

    return {
        "norm": norm,
        "qk_norm": qk_norm,
        "norm_q": lambda x: qk_norm(x, ".q"),
        "norm_k": lambda x: qk_norm(x, ".k"),
    }


def masked(x: V, box: Box, config: Config) -> V:
    """Scores with those of keys that a query may not read at −∞."""
    is_causal = (
        config.mask == "causal" and "cross" not in box.path and not box.path.startswith("encoder.")
    )
    reach = config.window if windowed(config, box.path) else None

    def is_seen(query: int, key: int) -> bool:
        return not is_causal or (key <= query and (reach is None or query - key < reach))

    queries, keys = x.tensor.shape[-2:]
    seen = torch.tensor([[is_seen(query, key) for key in range(keys)] for query in range(queries)])
    return V(x.tensor.masked_fill(~seen, -math.inf))


def names_for(box: Box, model: Transformer, trace: Trace, drawn: Anatomy) -> dict[str, Any]:
    """What the names in a box's equation stand for: its weights, and what was recorded in its
    block.
    """
    config = model.config
    place = Place(box)
    V.d_head = config.head_size
    ids = trace.source if place.stack else trace.ids
    count = torch.arange(S if place.stack else T)
    apart = count[:, None] - count
    found: dict[str, Any] = {
        **recorded(place, config, trace),
        **{symbol: V(weight, symbol) for symbol, weight in weights_of(box, model, trace).items()},
        **ARITHMETIC,
        **norms(box, place, model, trace, drawn),
        "mask": lambda x: masked(x, box, config),
        "rotate": lambda x: rotated(x, config, box.path),
        "ids": ids[0],
        "places": torch.arange(ids.shape[1]),
        "apart": V(apart.double().abs()),
        "slope": V(alibi_slopes(config.n_head).double()[:, None, None], "slope"),
    }
    table = drawn.box(f"{place.beside}.positions")
    if table is not None and config.positions == "relative":
        # [H, d_head, T, T]
        by = values(model, trace, table.pieces[0])[:, :, apart + config.context_length - 1]
        found["q_R"] = lambda q: V(torch.einsum("htd,hdtk->htk", q.tensor, by))
    return found


def computed(box: Box, model: Transformer, trace: Trace, drawn: Anatomy) -> Tensor:
    """What the equation of a box gives."""
    code = in_python(box.equation)
    names = names_for(box, model, trace, drawn)
    if "q @ R_apart" in code:
        code = code.replace("q @ R_apart", "q_R(q)")
    found = eval(code.split("#")[0], {}, names)
    assert isinstance(found, V)
    return found.tensor


# Not of what was recorded in the box's own place, or no formula of tensors: tested on their own
# below.
NAMED_ELSEWHERE = ("memory", "resid_pre")


@tried(15, 60, anything(**NO_SHORTCUTS), st.integers(0, 3))
def test_an_equation_computes_what_the_pass_recorded(config: Config, seed: int) -> None:
    model, trace, drawn = passed(config, seed)
    checked = set()
    for box in drawn.boxes:
        hidden_steps = (
            box.part in ("neurons", "experts")
            or "neurons_e" in box.equation
            or (box.part == "shares" and config.head == "flatten")
        )
        if not box.taps or box.part in NAMED_ELSEWHERE or hidden_steps or "sin(" in box.equation:
            continue
        expected = values(model, trace, box.taps[0])
        torch.testing.assert_close(
            computed(box, model, trace, drawn), expected, atol=1e-5, rtol=1e-5
        )
        checked.add(box.part)
    assert {"embed", "logits"} <= checked
    assert not config.n_layer or {"q", "k", "v", "scores", "pattern", "z", "out"} <= checked


@pytest.mark.parametrize("mlp", sorted(MLPS.keys() - {"experts"}))
@pytest.mark.parametrize("residual", ["pre-norm", "parallel", "parallel-one-norm", "branch-norm"])
@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
def test_gate_up_and_activation_make_the_neurons(activation: Any, residual: Any, mlp: Any) -> None:
    model, trace, drawn = passed(tiny(activation=activation, residual=residual, mlp=mlp))
    neurons = drawn.box("blocks.1.mlp.neurons")
    reads = {
        arrow.start.rpartition(".")[2]: drawn.box(arrow.start)
        for arrow in drawn.arrows
        if arrow.end == neurons.path
    }
    assert set(reads) == {"plain": {"up"}, "gated": {"gate", "up"}}[mlp]
    names = names_for(neurons, model, trace, drawn)
    names |= {
        name: V(computed(one, model, trace, drawn))
        for name, one in reads.items()
        if one is not None
    }
    found = eval(in_python(neurons.equation), {}, names)
    torch.testing.assert_close(found.tensor, trace["blocks.1.mlp.neurons"][0], atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("norm", ["layernorm", "rmsnorm"])
@pytest.mark.parametrize("gain", [True, False])
@pytest.mark.parametrize("eps", [None, 3e-6, 0.1])
def test_the_formula_of_a_norm_is_the_norm(norm: Any, gain: bool, eps: float | None) -> None:
    model, trace, drawn = passed(tiny(norm=norm, norm_gain=gain, norm_eps=eps))
    box = drawn.box("blocks.1.mlp.norm")
    x = trace["blocks.1.resid_mid"][0]
    names = names_for(box, model, trace, drawn) | {
        "mean": V(x.mean(-1, keepdim=True)),
        "variance": V(x.var(-1, keepdim=True, correction=0)),
        "mean_square": V(x.square().mean(-1, keepdim=True)),
    }
    found = eval(in_python(box.equation), {}, names)
    expected = model.get_submodule("blocks.1.mlp_residual.norm")(x)
    torch.testing.assert_close(found.tensor, expected, atol=1e-9, rtol=1e-9)


TURNS = {
    "usual": {},
    "half": {"rotary_base": 500_000.0, "rotary_fraction": 0.5},
    "linear": {"rotary_scaling": "linear", "rotary_factor": 4.0},
    "llama3": {"rotary_scaling": "llama3", "rotary_factor": 8.0, "rotary_context": 20},
    "windows": {
        "window": 3,
        "window_pattern": "wf",
        "window_rotary_base": 50.0,
        "rotary_scaling": "linear",
        "rotary_factor": 2.0,
    },
}


@pytest.mark.parametrize("name", TURNS)
def test_the_rotation_that_is_described_is_a_turn_of_pairs(name: str) -> None:
    config = tiny(positions="rotary", d_head=8, **TURNS[name])
    model, trace, drawn = passed(config)
    for path in ("blocks.0.attention.positions", "blocks.1.attention.positions"):
        box = drawn.box(path)
        cos, sin = (values(model, trace, piece)[:T] for piece in box.pieces)
        x = torch.randn(3, T, 8, dtype=torch.float64)
        swapped = torch.cat((x[..., 4:], x[..., :4]), -1)
        expected = rotated(V(x), config, path).tensor
        torch.testing.assert_close(x * cos + swapped * sin, expected, atol=1e-6, rtol=1e-6)
        # The same from its words.
        base, turned = map(
            float, re.findall(r"turns by (\d+)\^\(−i / (\d+)\) radians", box.about)[0]
        )
        assert ("others stay as they are" in box.about) == (turned < 4)
        pairs = [base ** (-i / turned) if i < turned else 0.0 for i in range(4)]
        if scaled := re.search(
            r"is scaled, [^:]+: (.+), with factor (\S+), context (\d+)\.", box.about
        ):
            names = {"factor": float(scaled[2]), "context": int(scaled[3]), "π": math.pi}
            names["clamp"] = lambda x, low, high: min(high, max(low, x))
            formula, _, kept = scaled[1].partition(", kept = ")
            read = [
                part.replace("·", "*").replace("−", "-").replace("2π", "(2 * π)")
                for part in (formula, kept or "0")
            ]
            for i, frequency in enumerate(pairs):
                own = names | {"frequency": frequency}
                pairs[i] = eval(read[0], {}, own | {"kept": eval(read[1], {}, own)})
        assert pairs == pytest.approx(frequencies(config, path))


@pytest.mark.parametrize("n_kv_head", [1, 2])
def test_it_is_said_which_heads_share_keys(n_kv_head: int) -> None:
    config = tiny(n_head=4, n_kv_head=n_kv_head)
    for path in ("blocks.0.attention.k", "blocks.0.attention.v"):
        box = anatomy(config, T).box(path)
        assert box.pieces[0].axes[0] == "key head"
        said = (
            "All 4 heads share one key head"
            if n_kv_head == 1
            else "key head 0 the heads 0 to 1, and so on"
        )
        assert said in box.about
    _, trace, _ = passed(config)
    q, k, scores = (trace[f"blocks.0.attention.{name}"][0] for name in ("q", "k", "scores"))
    for head in range(4):
        own = q[head] @ k[head * n_kv_head // 4].T / math.sqrt(3)
        torch.testing.assert_close(own, scores[head])


def test_the_sinusoids_that_are_described_are_those_added() -> None:
    _, trace, drawn = passed(tiny(positions="sinusoidal"))
    box = drawn.box("positions")
    assert box is not None
    for t in range(T):
        for i in range(6):
            angle = t / 10_000 ** (2 * i / 12)
            assert trace["positions"][t, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert trace["positions"][t, 2 * i + 1].item() == pytest.approx(
                math.cos(angle), abs=1e-6
            )


def test_flattened_shares_are_the_numbers_times_the_weights_of_their_places() -> None:
    model, trace, drawn = passed(tiny(head="flatten", n_label=3, mask="full"))
    number = drawn.box("head.token")
    shares = drawn.box("shares")
    assert number is not None
    numbers = computed(number, model, trace, drawn)[:, 0]
    weight = values(model, trace, shares.pieces[1])
    for t in range(T):
        for label in range(3):
            assert trace["shares"][0, t, label].item() == pytest.approx(
                (numbers[t] * weight[label, t]).item()
            )


@pytest.mark.parametrize("final_norm", [True, False])
def test_the_stream_of_a_block_is_that_of_the_block_before(final_norm: bool) -> None:
    model, trace, drawn = passed(tiny(n_encoder_layer=2, final_norm=final_norm))
    for stack in ("", "encoder."):
        first = drawn.box(f"{stack}blocks.0.resid_pre")
        second = drawn.box(f"{stack}blocks.1.resid_pre")
        torch.testing.assert_close(computed(first, model, trace, drawn), trace[first.path][0])
        assert second.equation == "resid_pre = resid_post of the block before"
        assert torch.equal(trace[second.path], trace[f"{stack}blocks.0.resid_post"])
    last = trace["encoder.final_norm"] if final_norm else trace["encoder.blocks.1.resid_post"]
    assert torch.equal(trace["memory"], last)
    box = drawn.box("memory")
    assert ("encoder.final_norm" in box.equation) == final_norm
