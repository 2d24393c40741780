"""The costs of a model, gathered: parameters by tensor, operations, and memory, for one batch and
length or over many lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from gptviz.labelled_array import Axis, LabelledArray
from gptviz.machine.memory import FLOAT32
from gptviz.model import Config, parameter_count
from gptviz.model.costs.activations import KeptActivations, kept_activations
from gptviz.model.costs.operations import (
    Product,
    TensorSize,
    by_part,
    cache_numbers,
    flops,
    in_every_block,
    products,
    sizes,
    weight_bytes,
)
from gptviz.model.precision import TYPES
from gptviz.settings.fields import check_number, is_within, whole_number
from gptviz.train.optimisers import optimiser_numbers
from gptviz.train.recipe import Optimiser, Recipe

# What training holds in memory, and what generating does.
MEMORY = ("weights", "gradients", "optimiser", "activations")
CACHE = "keys and values"
BYTES = "bytes"
OPERATIONS = "operations"
PARAMETERS = "parameters"
PassKind = Literal["forward", "training"]


@dataclass(frozen=True)
class Costs:
    """The costs of a model for one batch of texts."""

    config: Config  #: its architecture
    batch: int  #: how many texts are read side by side
    tokens: int  #: of each text; of each source too, in an encoder–decoder
    tensors: list[TensorSize]  #: every tensor of parameters
    products: list[Product]  #: every matrix product
    kept: KeptActivations  #: what a step of training keeps of its forward pass, as formulas

    @property
    def parameters(self) -> int:
        """The numbers that training changes, tied ones once."""
        return sum(tensor.parameters for tensor in self.tensors)

    @property
    def forward(self) -> int:
        """Operations of the matrix products of a forward pass."""
        return sum(product.forward for product in self.products)

    @property
    def training(self) -> int:
        """Operations of the matrix products of a step of training, without the optimiser."""
        return sum(product.training for product in self.products)

    @property
    def weights(self) -> dict[str, int]:
        """The bytes of the weights by the precision that they are kept in."""
        return {name: weight_bytes(self.config, dtype.itemsize) for name, dtype in TYPES.items()}

    @property
    def activations(self) -> int:
        """The bytes that a step of training keeps of its forward pass."""
        return self.kept.total(self.batch, self.tokens)

    @property
    def gradients(self) -> int:
        """The bytes of the gradients of all parameters."""
        return FLOAT32 * self.parameters

    @property
    def optimiser(self) -> dict[str, int]:
        """The bytes that each optimiser keeps from step to step."""
        return {name: optimiser_bytes(self.config, name) for name in get_args(Optimiser)}

    @property
    def cache(self) -> int | None:
        """The bytes of the keys and values that generating keeps, or None for a model that does not
        generate.
        """
        return cache_bytes(self.config, self.batch, self.tokens)

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON values; memory is in bytes."""
        return {
            "batch": self.batch,
            "context": self.tokens,
            "parameters": self.parameters,
            "tensors": [
                _named_values(tensor, "name", "part", "shape", "parameters")
                for tensor in self.tensors
            ],
            "operations": _named_values(self, "forward", "training")
            | {
                "products": [
                    _named_values(
                        product, "name", "part", "formula", "times", "forward", "training"
                    )
                    for product in self.products
                ]
            },
            "memory": {
                "weights": self.weights,
                "gradients": self.gradients,
                "activations": self.activations,
                "activations_by_part": {
                    part: {"bytes": count, "formula": self.kept.formula(part)}
                    for part, count in self.kept.by_part(self.batch, self.tokens).items()
                },
                "optimiser": self.optimiser,
                "keys_and_values": self.cache,
            },
        }


def _named_values(holder: object, *names: str) -> dict[str, Any]:
    return {name: getattr(holder, name) for name in names}


def costs(config: Config, batch: int = 1, tokens: int | None = None) -> Costs:
    """The costs of a model of `config` for `batch` texts of so many `tokens`, by default as many as
    the context holds; nothing is allocated or run to find out. A ValueError if the batch or the
    number of tokens is impossible.
    """
    tokens = config.context_length if tokens is None else tokens
    check_number(whole_number(1), "batch", batch)
    if not is_within(whole_number(1, config.context_length), tokens):
        raise ValueError(
            f"a text of {tokens!r:.80} tokens; this model reads from 1 to {config.context_length:,}"
        )
    return Costs(
        config,
        batch,
        tokens,
        sizes(config),
        products(config, batch, tokens),
        kept_activations(config, batch, tokens),
    )


def optimiser_bytes(config: Config, name: Optimiser) -> int:
    """The bytes that the optimiser of this name keeps from step to step."""
    return FLOAT32 * optimiser_numbers(config, Recipe(steps=1, optimiser=name))


def cache_bytes(config: Config, batch: int, tokens: int) -> int | None:
    """The bytes of the keys and values of this many tokens, or None for a model that does not
    generate token by token.
    """
    if config.kind == "classifier" or config.mask != "causal":
        return None
    return FLOAT32 * cache_numbers(config, batch, tokens)


def by_tensor(config: Config) -> LabelledArray:
    """The parameters [tensor], in the order in which a forward pass reads them; tensors that are
    alike in all blocks together.
    """
    counts: dict[str, int] = {}
    for size in sizes(config):
        name = in_every_block(size.name)
        counts[name] = counts.get(name, 0) + size.parameters
    return LabelledArray(
        np.array([*counts.values()], np.int64), (Axis("tensor", tuple(counts)),), PARAMETERS
    )


def operations_over(
    config: Config, batch: int, lengths: Sequence[int], of: PassKind
) -> LabelledArray:
    """The operations [part, tokens] of a forward pass, or of a step of training, over texts of
    these lengths.
    """
    columns = [
        by_part(
            [(product.part, getattr(product, of)) for product in products(config, batch, length)]
        )
        for length in lengths
    ]
    parts = tuple(columns[-1])
    values = np.array([[column.get(part, 0) for column in columns] for part in parts], np.int64)
    return LabelledArray(
        values, (Axis("part", parts), Axis("tokens", tuple(map(str, lengths)))), OPERATIONS
    )


def memory_over(
    config: Config, batch: int, lengths: Sequence[int], optimiser: Optimiser
) -> LabelledArray:
    """The bytes [what, tokens] that training holds with this optimiser, and the keys and values
    that generating keeps.
    """
    parameters = FLOAT32 * parameter_count(config)
    fixed = {
        "weights": parameters,
        "gradients": parameters,
        "optimiser": optimiser_bytes(config, optimiser),
    }
    rows = {name: [size] * len(lengths) for name, size in fixed.items()}
    rows["activations"] = [
        kept_activations(config, batch, length).total(batch, length) for length in lengths
    ]
    if cache_bytes(config, batch, 1) is not None:
        rows[CACHE] = [cache_bytes(config, batch, length) or 0 for length in lengths]
    axes = (Axis("what", tuple(rows)), Axis("tokens", tuple(map(str, lengths))))
    return LabelledArray(np.array([*rows.values()], np.int64), axes, BYTES)


def share_between_tokens(config: Config, tokens: int) -> float:
    """Which share of the operations of a forward pass lies in products between tokens: those that
    grow with T².
    """
    between = [
        product.forward
        for product in products(config, 1, tokens)
        if product.name.endswith((".scores", ".z"))
    ]
    return sum(between) / max(1, flops(config, 1, tokens)[0])
