"""A mapping: a small JSON file that says how any GPT's tensors become our parameters; and its
comparison with a file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from gptviz.machine.bounded import parse_json, read_regular
from gptviz.model import Config
from gptviz.model.builder import parameter_shapes

from ..families import ImportRefusedError, Take
from ..families.base import in_order, rotary_rows
from .tensors import reading

LONGEST_MAPPING = 2**20  # bytes
MOST_VALUES = 100_000
# Comparing a name with patterns takes long if names are long and patterns have many numbers.
MOST_IGNORED = 100
MOST_NUMBERS = 3
LONGEST_NAME = 300
MOST_TENSORS = 4_096  # that one parameter may be made of: the heads of a block
FIELDS = ("config", "tensors", "ignore", "rotary_pairs", "tokenizer", "characters")
OPERATIONS = ("from", "stack", "transpose", "split", "by_head", "plus_one")
BLOCK = "{}"  # stands for the number of the block
Shape = tuple[int, ...]
MatchState = Literal["matched", "missing", "wrong shape", "left over", "not in the model"]


@dataclass(frozen=True)
class TensorRecipe:
    """How one parameter of ours is made of tensors of theirs. The operations are applied in the
    order below.
    """

    #: the names of the tensors; several are stacked along their first axis, after the next two
    #: operations
    stack: tuple[str, ...]
    #: whether their last two axes are swapped, for matrices stored as [in, out]
    transpose: bool = False
    #: (i, n): part i of n equal parts along the first axis is used
    split: tuple[int, int] | None = None
    #: whether the rows are ordered head by head: query, key and value of each
    by_head: bool = False
    plus_one: bool = False  #: whether they hold a gain's distance from 1

    def make_parameter(self, block: str, take: Take, config: Config) -> Tensor:
        """The parameter of the block with this number."""
        parts = [self._part(take(name.replace(BLOCK, block))) for name in self.stack]
        made = parts[0] if len(parts) == 1 else torch.cat(parts)
        if self.by_head:
            made = made.unflatten(0, (config.n_head, 3, -1)).transpose(0, 1).flatten(0, 2)
        if self.plus_one:
            return 1.0 + made.float()
        return made

    def _part(self, tensor: Tensor) -> Tensor:
        # such as [1, T, d_model], a table with a batch axis
        while tensor.ndim > 1 and tensor.shape[0] == 1:
            tensor = tensor[0]
        if self.transpose and tensor.ndim == 2:
            tensor = tensor.T
        if self.split is None:
            return tensor
        part, parts = self.split
        return tensor.unflatten(0, (parts, -1))[part]


@dataclass(frozen=True)
class TensorMap:
    """The content of a mapping file."""

    config: Config  #: our config of the model
    #: by the name of our parameter, with {} for the number of the block
    recipes: Mapping[str, TensorRecipe]
    ignore: tuple[str, ...] = ()  #: names of tensors that are not needed, with {} as above
    #: whether rotary positions turn the numbers 2i and 2i + 1 of a head together, instead of i and
    #: i + half
    neighbours: bool = False
    #: the name of a file next to the weights, or None to look for the usual names
    tokenizer: str | None = None
    #: the characters of its vocabulary, in the order of their numbers, or None if the tokenizer is
    #: another one
    characters: str | None = None

    def make_parameter(self, ours: str, take: Take) -> Tensor:
        """The parameter of ours with this name."""
        pattern, block = pattern_of(ours)
        recipe = self.recipes.get(ours) or self.recipes.get(pattern)
        if recipe is None:
            raise ImportRefusedError(f"the mapping has no line for {pattern}")
        made = recipe.make_parameter(block, take, self.config)
        expected = parameter_shapes(self.config).get(ours, ())
        # its axis in front was taken for that of a batch
        if expected[:1] == (1,) and tuple(made.shape) == expected[1:]:
            made = made[None]
        order = rotary_rows(self.config, neighbours=self.neighbours)
        if order is None:
            return made
        heads = self.config.n_head + self.config.key_heads
        if ".attention.qk_norm." in ours:
            heads = made.shape[0] // self.config.head_size
        elif ".attention.qkv." not in ours:
            return made
        return in_order(made, self.config, heads, order.to(made.device))


@dataclass(frozen=True)
class MatchRow:
    """One line of the comparison of a mapping with a file of tensors."""

    state: MatchState  #: "matched" or what is wrong
    #: our parameter, with {} for the block if the line is about several; empty for a tensor that is
    #: left over
    ours: str
    #: the tensors it is made of, with {} as above; empty if the mapping names none
    theirs: tuple[str, ...]
    found: Shape | None  #: the shape that they give, or None if they give none
    expected: Shape | None  #: the shape that the config asks for, or None if it asks for none
    count: int = 1  #: the number of parameters, or of tensors left over, that the line is about

    def as_json(self) -> dict[str, Any]:
        """The row as JSON values."""
        return {
            "state": self.state,
            "ours": self.ours,
            "theirs": list(self.theirs),
            "found": self.found and list(self.found),
            "expected": self.expected and list(self.expected),
            "count": self.count,
        }


def match_rows(mapping: TensorMap, shapes: Mapping[str, Shape]) -> list[MatchRow]:
    """The comparison of the model with a file that has tensors of these `shapes`; nothing is read
    or allocated.
    """
    expected = parameter_shapes(mapping.config)
    taken: set[str] = set()

    def take(name: str) -> Tensor:
        if name not in shapes:
            raise ImportRefusedError(name)
        taken.add(name)
        return torch.empty(shapes[name], device="meta")

    rows = []
    for ours, shape in expected.items():
        pattern = pattern_of(ours)[0]
        recipe = mapping.recipes.get(ours) or mapping.recipes.get(pattern)
        named = ours if ours in mapping.recipes else pattern
        shape_given: Shape | None = None
        state: MatchState = "missing"
        try:
            shape_given = tuple(mapping.make_parameter(ours, take).shape)
            state = "matched" if shape_given == shape else "wrong shape"
        except ImportRefusedError:
            pass
        except (RuntimeError, IndexError, ValueError):
            state = "wrong shape"
        rows.append(MatchRow(state, named, recipe.stack if recipe else (), shape_given, shape))
    in_model = {name for ours in expected for name in (ours, pattern_of(ours)[0])}
    rows += [
        MatchRow("not in the model", name, recipe.stack, None, None)
        for name, recipe in mapping.recipes.items()
        if name not in in_model
    ]
    ignored = [
        re.compile(re.escape(name).replace(re.escape(BLOCK), r"\d+")) for name in mapping.ignore
    ]
    matched = {
        name
        for name in shapes
        if len(name) <= LONGEST_NAME and any(pattern.fullmatch(name) for pattern in ignored)
    }
    left = [name for name in shapes if name not in taken | matched]
    rows += [MatchRow("left over", "", (number_free(name),), shapes[name], None) for name in left]
    # what is the same in all blocks once
    return [replace(row, count=count) for row, count in Counter(rows).items()]


def complaint(rows: Sequence[MatchRow]) -> str | None:
    """The mismatches in one line, or None if everything matches."""
    wrong = [row for row in rows if row.state != "matched"]
    if not wrong:
        return None
    counts = Counter[str]()
    for row in wrong:
        counts[row.state] += row.count
    first = wrong[0]
    what = first.ours or first.theirs[0]
    if first.found and first.expected:
        shapes = f", which is {list(first.found)} and must be {list(first.expected)}"
    else:
        shapes = ""
    return (
        f"{', '.join(f'{count} {state}' for state, count in counts.items())}; the first is "
        f"{what:.80}{shapes}"
    )


def pattern_of(ours: str) -> tuple[str, str]:
    """The name of one of our parameters with {} for its block, and the number of the block, empty
    if it is in no block.
    """
    match = re.match(r"blocks\.(\d+)\.", ours)
    if match is None:
        return (ours, "")
    return (f"blocks.{BLOCK}.{ours[match.end() :]}", match[1])


def number_free(name: str) -> str:
    """A name of theirs with {} for its first number, which is usually that of the block."""
    return re.sub(r"(?<=\.)\d+(?=\.)", BLOCK, name, count=1)


def additions_of(file: Path | None, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The value of `ModelSource.additions`: the mapping in this file, and `changes` of fields of
    our config.
    """
    if file is None:
        if changes:
            return {"set": dict(changes)}
        return {}
    with reading(file):
        fields = parse_json(read_regular(file, LONGEST_MAPPING), MOST_VALUES)
    if not isinstance(fields, dict) or not isinstance(fields.get("config"), dict):
        raise ImportRefusedError(
            f'{file.name} is no mapping: it must be a table with the tables "config" and "tensors"'
        )
    return {"mapping": fields | {"config": fields["config"] | dict(changes)}}


def mapping_of(fields: Any) -> TensorMap:
    """The mapping with these JSON values."""
    if (
        not isinstance(fields, dict)
        or not isinstance(fields.get("config"), dict)
        or not isinstance(fields.get("tensors"), dict)
    ):
        raise ImportRefusedError(
            'the mapping must be a table with the tables "config" and "tensors"'
        )
    if unknown := sorted(set(fields) - set(FIELDS)):
        raise ImportRefusedError(
            f"the mapping has the field {unknown[0]!r:.80}; it may have {', '.join(FIELDS)}"
        )
    values = fields["config"]
    if missing := [
        name for name in ("n_head", "vocab_size", "context_length") if values.get(name) is None
    ]:
        raise ImportRefusedError(
            f"the mapping does not say {missing[0]} in its config: fill it in, or add --set "
            f"{missing[0]}=…"
        )
    try:
        config = Config.from_dict(values)
    except (ValueError, TypeError) as error:
        raise ImportRefusedError(f"the mapping: {error}") from None
    if config.n_encoder_layer:
        raise ImportRefusedError(
            "the mapping: a mapping is for a model of one stack: leave n_encoder_layer out"
        )
    ignore = fields.get("ignore", [])
    pairs = fields.get("rotary_pairs", "halves")
    if not isinstance(ignore, list) or not all(isinstance(name, str) for name in ignore):
        raise ImportRefusedError('the mapping: "ignore" must be a list of names')
    if len(ignore) > MOST_IGNORED or any(name.count(BLOCK) > MOST_NUMBERS for name in ignore):
        raise ImportRefusedError(
            f'the mapping: "ignore" must have at most {MOST_IGNORED} names, each with at most '
            f"{MOST_NUMBERS} times {BLOCK}"
        )
    if pairs not in ("halves", "neighbours"):
        raise ImportRefusedError(
            f'the mapping: "rotary_pairs" is {pairs!r:.40}; it must be "halves" or "neighbours"'
        )
    texts = {name: fields.get(name) for name in ("tokenizer", "characters")}
    for name, text in texts.items():
        if text is not None and not isinstance(text, str):
            raise ImportRefusedError(f'the mapping: "{name}" must be a text')
    recipes = {name: _recipe(name, value) for name, value in fields["tensors"].items()}
    return TensorMap(config, recipes, tuple(ignore), pairs == "neighbours", **texts)


def _recipe(ours: str, value: Any) -> TensorRecipe:
    """The recipe in a JSON value."""
    if isinstance(value, str):
        return TensorRecipe((value,))
    where = f"the mapping: {ours:.80}"
    if not isinstance(value, dict) or ("from" in value) == ("stack" in value):
        raise ImportRefusedError(
            f'{where} must be a name, or a table with "from" (a name) or "stack" (a list of names)'
        )
    if unknown := sorted(set(value) - set(OPERATIONS)):
        raise ImportRefusedError(
            f"{where} has {unknown[0]!r:.40}; there are {', '.join(OPERATIONS)}"
        )
    stack = [value["from"]] if "from" in value else value["stack"]
    if (
        not isinstance(stack, list)
        or not 0 < len(stack) <= MOST_TENSORS
        or not all(isinstance(name, str) for name in stack)
    ):
        raise ImportRefusedError(
            f"{where}: the names must be texts, one to {MOST_TENSORS:,} of them"
        )
    switches = {name: value.get(name, False) for name in ("transpose", "by_head", "plus_one")}
    for name, switch in switches.items():
        if not isinstance(switch, bool):
            raise ImportRefusedError(f"{where}: {name} must be true or false")
    return TensorRecipe(tuple(stack), split=_split(where, value.get("split")), **switches)


def _split(where: str, value: Any) -> tuple[int, int] | None:
    if value is None:
        return None
    whole = (
        isinstance(value, list) and len(value) == 2 and all(type(number) is int for number in value)
    )
    if not whole or not 0 <= value[0] < value[1]:
        raise ImportRefusedError(f"{where}: split must be [i, n], for part i of n, counted from 0")
    return value[0], value[1]
