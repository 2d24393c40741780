"""A first draft of a mapping, guessed from the names and shapes of an unknown model's tensors, and
what they leave open.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .mapping import BLOCK, Shape, number_free

WEIGHT = ("weight", "gamma", "scale", "kernel", "g", "w")
BIAS = ("bias", "beta", "shift", "b")
POSITIONS = r"wpe|pos"
EMBEDDING = r"wte|tok|word|vocab|embed|emb"
UNEMBEDDING = r"head|output|logit|decoder|embed_out|unembed|proj"
FUSED = r"qkv|c_attn|in_proj|query_key_value"
SEPARATE = {
    kind: rf"(?:w|to_|linear_)?{kind[0]}(?:_?proj|_lin|_linear)?|(?:w_)?{kind}s?"
    for kind in ("query", "key", "value")
}
SMALL_NORMS = {kind: rf"{kind}_?(?:layer_?)?norm" for kind in ("q", "k")}
OUTPUT = r"attn|attention|^sa\b|\bsa\.|self|o_proj|\bwo$|out_proj"
UP = r"c_fc|fc_?1|fc_in|\bup|h_to_4h|w1$|linear_?1|\.0$"
GATE = r"gate"
DOWN = r"c_proj|fc_?2|fc_out|down|4h_to_h|w2$|linear_?2|\.[23]$"
MASKS = r"mask|tril|bias|causal|inv_freq|freqs|rope|rotary"
FIRST_NORM = r"ln_?1|norm_?1|att|input|sa_"
# The values that a mapping need not say.
_USUAL = {"residual": "pre-norm", "final_norm": True, "unembed_bias": False, "mlp": "plain"}
SECOND_NORM = r"ln_?2|norm_?2|post_att|ff|mlp|post_"


@dataclass
class Draft:
    """A mapping as far as it follows from names and shapes."""

    #: fields of our config; None for those that do not follow from the tensors
    config: dict[str, Any] = field(default_factory=dict)
    tensors: dict[str, Any] = field(default_factory=dict)  #: the lines of the mapping
    ignore: list[str] = field(default_factory=list)  #: tensors that the model does not need
    #: the assumptions that were made, in sentences
    assumed: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)  #: tensors that have no line

    @property
    def unknown_fields(self) -> list[str]:
        """The fields of the config that the user has to fill in."""
        return [name for name, value in self.config.items() if value is None]

    def as_json(self) -> dict[str, Any]:
        """The mapping file, as JSON values."""
        return {"config": self.config, "tensors": self.tensors, "ignore": self.ignore}

    @property
    def text(self) -> str:
        """The mapping file."""
        return json.dumps(self.as_json(), indent=2, ensure_ascii=False) + "\n"

    def remarks(self) -> list[str]:
        """The assumptions, the tensors without a line and the unknown values, a line each."""
        assumed = [f"Assumed: {sentence}" for sentence in self.assumed]
        if self.left:
            left = [f"These tensors have no line: {', '.join(self.left)}."]
        else:
            left = []
        return [
            *assumed,
            *left,
            *(
                [f"Not told by the tensors: {', '.join(self.unknown_fields)}."]
                if self.unknown_fields
                else []
            ),
        ]


def draft_mapping(
    shapes: Mapping[str, Shape], same: Callable[[str, str], bool] = lambda one, other: False
) -> Draft:
    """A draft for a file with tensors of these `shapes`, by name; `same` says whether two are one
    in memory, as tied ones are.
    """
    outside, inside, layers = _split_blocks(shapes)
    draft = Draft()
    left = _Left(dict(outside))
    width = _embedding(draft, left, same)
    in_block = _Left(dict(inside))
    _attention(draft, in_block, width)
    _norms(draft, in_block, left, width)
    _mlp(draft, in_block, width)
    _list_unused(draft, [*left.shapes.items(), *in_block.shapes.items()])
    draft.config["n_layer"] = layers
    for name, usual in _USUAL.items():
        if draft.config.get(name) == usual:
            del draft.config[name]
    if layers == 0:
        draft.config["n_head"] = 1
    return draft


def _split_blocks(shapes: Mapping[str, Shape]) -> tuple[dict[str, Shape], dict[str, Shape], int]:
    """The tensors outside of the blocks, those of block 0 with {} for its number, and the number of
    blocks.
    """
    numbers_after: dict[str, set[int]] = {}
    for name in shapes:
        if match := re.match(r"((?:[^.]+\.)*?)(\d+)\.", name):
            numbers_after.setdefault(match[1], set()).add(int(match[2]))
    prefixes = [
        prefix for prefix, numbers in numbers_after.items() if numbers == set(range(len(numbers)))
    ]
    prefix = max(
        prefixes, key=lambda one: sum(name.startswith(one) for name in shapes), default=None
    )
    if prefix is None:
        return dict(shapes), {}, 0
    block = re.compile(re.escape(prefix) + r"(\d+)\.(.+)")
    outside = {name: shape for name, shape in shapes.items() if not block.match(name)}
    inside = {
        f"{prefix}{BLOCK}.{match[2]}": shape
        for name, shape in shapes.items()
        if (match := block.match(name)) and match[1] == "0"
    }
    return outside, inside, len(numbers_after[prefix])


class _Left:
    """The tensors that have no line in the draft yet."""

    def __init__(self, shapes: dict[str, Shape]) -> None:
        self.shapes = shapes

    def matrices(self) -> list[str]:
        """The names of the tensors that are matrices, not counting axes of length 1 in front, and
        no masks.
        """
        return [
            name
            for name, shape in self.shapes.items()
            if len(squeeze_shape(shape)) == 2 and not _is_mask(name, shape)
        ]

    def matching_names(self, pattern: str, names: list[str] | None = None) -> list[str]:
        """The names that match this pattern without their endings."""
        among = self.matrices() if names is None else names
        return [name for name in among if re.search(pattern, _stem(name)[0].lower())]

    def take(self, *names: str) -> None:
        """Remove these tensors: they have a line now."""
        for name in names:
            self.shapes.pop(name, None)


def squeeze_shape(shape: Shape) -> Shape:
    """A shape without axes of length 1 in front."""
    while len(shape) > 1 and shape[0] == 1:
        shape = shape[1:]
    return shape


def _stem(name: str) -> tuple[str, str]:
    stem, _, ending = name.rpartition(".")
    if ending in WEIGHT + BIAS and stem:
        return (stem, ending)
    return (name, "")


def _leaf(name: str) -> str:
    return _stem(name)[0].rpartition(".")[2].lower()


def _is_mask(name: str, shape: Shape) -> bool:
    square = len(shape) >= 2 and shape[-1] == shape[-2]
    return square and (
        len(shape) > 2
        or re.search(r"mask|tril|causal", name.lower()) is not None
        or name.endswith(".bias")
    )


def _line(draft: Draft, ours: str, left: _Left, theirs: list[str], **how: Any) -> bool:
    """Add the line of a weight, and that of its bias if there is one. Returns whether there is a
    bias.
    """
    switches = {name: value for name, value in how.items() if value}
    source: dict[str, Any] = {"from": theirs[0]} if len(theirs) == 1 else {"stack": theirs}
    draft.tensors[f"{ours}.weight"] = (
        source | switches if switches or len(theirs) > 1 else theirs[0]
    )
    possible = [
        [bias for end in BIAS if (bias := f"{_stem(name)[0]}.{end}") in left.shapes]
        for name in theirs
    ]
    biases = [names[0] for names in possible if names]
    left.take(*theirs)
    if len(biases) != len(theirs):
        return False
    draft.tensors[f"{ours}.bias"] = biases[0] if len(biases) == 1 else {"stack": biases}
    left.take(*biases)
    return True


def _embedding(draft: Draft, left: _Left, same: Callable[[str, str], bool]) -> int:
    """Add the lines of the tensors outside the blocks, except the final norm. Returns d_model."""
    config = draft.config
    config |= dict.fromkeys(("vocab_size", "context_length", "d_model", "n_layer", "n_head"))
    tables = left.matching_names(POSITIONS)
    tokens = [name for name in left.matching_names(EMBEDDING) if name not in tables] or [
        n for n in left.matrices() if n not in tables
    ]
    if not tokens:
        return 0
    embedding = tokens[0]
    vocabulary, width = squeeze_shape(left.shapes[embedding])
    config |= {"vocab_size": vocabulary, "d_model": width}
    draft.tensors["embed.weight"] = embedding
    left.take(embedding)
    tables = [
        name
        for name in tables
        if name != embedding and squeeze_shape(left.shapes[name])[1] == width
    ]
    config["positions"] = "learned" if tables else "rotary"
    if tables:
        config["context_length"] = squeeze_shape(left.shapes[tables[0]])[0]
        draft.tensors["positions.table.weight"] = tables[0]
        left.take(tables[0])
    else:
        draft.assumed.append(
            "positions: rotary, since there is no table of them; which numbers of a head turn "
            "together stands in rotary_pairs."
        )
    outputs = [
        name
        for name in left.matching_names(UNEMBEDDING)
        if sorted(squeeze_shape(left.shapes[name])) == sorted((vocabulary, width))
    ]
    config["tied"] = not outputs or same(embedding, outputs[0])
    if outputs and config["tied"]:
        draft.ignore.append(outputs[0])
        left.take(outputs[0])
    elif outputs:
        turned = squeeze_shape(left.shapes[outputs[0]])[0] == width != vocabulary
        config["unembed_bias"] = _line(draft, "head.unembed", left, outputs[:1], transpose=turned)
    return width


def _attention(draft: Draft, left: _Left, width: int) -> None:
    """Add the lines of attention."""
    config = draft.config
    ours = f"blocks.{BLOCK}.attention"
    fused = [
        name for name in left.matching_names(FUSED) if max(squeeze_shape(left.shapes[name])) > width
    ]
    turned = False
    if fused:
        shape = squeeze_shape(left.shapes[fused[0]])
        turned = shape[0] == width
        if max(shape) != 3 * width:  # heads share keys, or d_head is not d_model / n_head
            config |= {"n_kv_head": None, "d_head": None}
        config["qkv_bias"] = _line(draft, f"{ours}.qkv", left, fused[:1], transpose=turned)
        if re.search("query_key_value", fused[0]):
            draft.assumed.append(
                "by_head: rows of query_key_value are taken as all queries, all keys, all values."
            )
    elif names := _find_separate(draft, left, width):
        config["qkv_bias"] = _line(draft, f"{ours}.qkv", left, names)
    for kind, pattern in SMALL_NORMS.items():
        if small := [
            name
            for name in left.shapes
            if re.fullmatch(pattern, _leaf(name)) and len(left.shapes[name]) == 1
        ]:
            _line(draft, f"{ours}.qk_norm.{kind}", left, small[:1])
    if shared := [
        name for name in left.shapes if _leaf(name) == "qk_norm" and len(left.shapes[name]) == 1
    ]:
        config |= {"qk_norm": "shared", "n_head": width // left.shapes[shared[0]][0]}
        _line(draft, f"{ours}.qk_norm", left, shared[:1])
    outputs = [
        name for name in left.matching_names(OUTPUT) if width in squeeze_shape(left.shapes[name])
    ]
    outputs = outputs or [
        name for name in left.matrices() if squeeze_shape(left.shapes[name]) == (width, width)
    ]
    if outputs:
        config["output_bias"] = _line(draft, f"{ours}.output", left, outputs[:1], transpose=turned)


def _find_separate(draft: Draft, left: _Left, width: int) -> list[str]:
    """Queries, keys and values that are stored separately, or head by head; empty if they are not
    found.
    """
    separate = {
        kind: [n for n in left.matrices() if re.fullmatch(pattern, _leaf(n))]
        for kind, pattern in SEPARATE.items()
    }
    if not all(separate.values()):
        return []
    heads = len(separate["query"])
    keys = len(separate["key"])
    rows, key_rows = (squeeze_shape(left.shapes[separate[kind][0]])[0] for kind in ("query", "key"))
    norm = next(
        (
            shape
            for name, shape in left.shapes.items()
            if re.fullmatch(SMALL_NORMS["q"], _leaf(name))
        ),
        None,
    )
    if norm is not None:
        draft.config["qk_norm"] = "whole" if norm[0] == rows else "separate"
    if heads > 1:  # each head is a module
        size = rows
    elif norm is not None and rows % norm[0] == 0 and norm[0] < rows:
        heads = rows // norm[0]
        keys = key_rows // norm[0]
        size = norm[0]
    else:
        draft.config |= {"d_head": None} if rows != width else {}
        draft.config |= {"n_kv_head": None} if key_rows < rows else {}
        return [separate[kind][0] for kind in SEPARATE]
    draft.config["n_head"] = heads
    draft.config |= {"n_kv_head": keys} if keys != heads else {}
    draft.config |= {"d_head": size} if size * heads != width else {}
    return [
        name
        for kind in SEPARATE
        for name in sorted(separate[kind], key=lambda name: [*map(int, re.findall(r"\d+", name))])
    ]


def _norms(draft: Draft, inside: _Left, outside: _Left, width: int) -> None:
    """Add the lines of the norms of a block, and of the final norm."""
    config = draft.config

    def gains(left: _Left) -> list[str]:
        return [
            name
            for name, shape in left.shapes.items()
            if shape == (width,) and _stem(name)[1] not in BIAS
        ]

    among = gains(inside)
    first = next(
        (
            name
            for name in among
            if re.search(FIRST_NORM, _stem(name)[0].rpartition(BLOCK)[2].lower())
        ),
        None,
    )
    second = next(
        (
            name
            for name in among
            if name != first and re.search(SECOND_NORM, _stem(name)[0].rpartition(BLOCK)[2].lower())
        ),
        None,
    )
    if first is None or second is None:
        first, second = [*among[:2], None, None][:2]
    biased = []
    for ours, theirs in (("attention_residual", first), ("mlp_residual", second)):
        if theirs is not None:
            biased.append(_line(draft, f"blocks.{BLOCK}.{ours}.norm", inside, [theirs]))
    config["residual"] = "plain"
    if first or second:
        config["residual"] = "pre-norm" if second else "parallel-one-norm"
    if early := [name for name in gains(outside) if re.search(EMBEDDING, _stem(name)[0].lower())]:
        config["embed_norm"] = True
        biased.append(_line(draft, "embed_norm", outside, early[:1]))
    final = gains(outside)
    config["final_norm"] = bool(final)
    if final:
        biased.append(_line(draft, "head.final_norm", outside, final[-1:]))
    config["norm_bias"] = any(biased)
    config["norm"] = (
        "layernorm" if any(biased) or config.get("positions") == "learned" else "rmsnorm"
    )
    if first:
        draft.assumed.append(
            f"residual: {config['residual']}; norm: {config['norm']}, with its usual epsilon."
        )


def _mlp(draft: Draft, left: _Left, width: int) -> None:
    """Add the lines of the MLP."""
    config = draft.config
    ours = f"blocks.{BLOCK}.mlp"
    matrices = [name for name in left.matrices() if width in squeeze_shape(left.shapes[name])]
    gated = len(matrices) >= 3
    if gated and all(any(_leaf(name) == end for name in matrices) for end in ("w1", "w2", "w3")):
        parts = [
            next(name for name in matrices if _leaf(name) == end) for end in ("w1", "w3", "w2")
        ]
    elif gated:
        parts = [
            next(iter(left.matching_names(pattern, matrices)), "")
            for pattern in (GATE, r"\bup", DOWN)
        ]
        if all(parts):
            parts = parts
        else:
            parts = [matrices[0], matrices[1], matrices[2]]
    else:
        up, down = (
            next(iter(left.matching_names(pattern, matrices)), "") for pattern in (UP, DOWN)
        )
        parts = [up, down] if up and down and up != down else matrices[:2]
    if len(parts) < 2:
        config["d_mlp"] = 0
        return
    shape = squeeze_shape(left.shapes[parts[-2]])
    turned = shape[0] == width != shape[1]
    config["d_mlp"] = shape[1] if turned else shape[0]
    config["mlp"] = "gated" if gated else "plain"
    config["activation"] = "silu" if gated else "gelu"
    draft.assumed.append(f"activation: {config['activation']}; no tensor tells it.")
    names = ("gate", "up", "down") if gated else ("up", "down")
    biased = [
        _line(draft, f"{ours}.{name}", left, [part], transpose=turned)
        for name, part in zip(names, parts, strict=True)
    ]
    config["mlp_bias"] = all(biased)


def _list_unused(draft: Draft, left: list[tuple[str, Shape]]) -> None:
    """Ignore masks and tables of rotary positions, which are no weights, and list the other tensors
    that have no line.

    The shape of a mask gives the context length.
    """
    for name, shape in left:
        is_weight = not re.search(MASKS, name.lower().rpartition(".")[2]) or (
            len(shape) == 1 and name.endswith(BIAS)
        )
        listed = draft.left if is_weight else draft.ignore
        if _number_free(name) not in listed:
            listed.append(_number_free(name))
        if is_weight:
            continue
        if (
            draft.config.get("context_length") is None
            and len(shape) >= 2
            and shape[-1] == shape[-2]
        ):
            draft.config["context_length"] = shape[-1]


def _number_free(name: str) -> str:
    """The name with {} for every number: each head may have its own mask."""
    return re.sub(r"(?<=\.)\d+(?=\.)", BLOCK, name)


def grouped_shapes(shapes: Mapping[str, Shape]) -> Iterator[tuple[str, Shape]]:
    """The tensors of a file for a reader: those of one shape in all blocks are listed once, with {}
    for the number.
    """
    yield from dict.fromkeys((number_free(name), shape) for name, shape in shapes.items())
