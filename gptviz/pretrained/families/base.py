"""The common base of all families: reading a config, naming what is not supported, and converting
tensors.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from gptviz.model import Config
from gptviz.model.builder import parameter_shapes
from gptviz.model.config import MOST_BLOCKS
from gptviz.model.parts.norms import NORMS

from ..given import Given, ImportRefusedError, WithoutEffect

# Returns the tensor of this name, in the type it is stored in.
Take = Callable[[str], Tensor]
ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu-tanh",
    "gelu_fast": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
    "silu": "silu",
    "swish": "silu",
    "relu2": "relu2",
}
# The inverse: if a function has several names, the one that all families know.
NAMES_OF_ACTIVATIONS = {"gelu-tanh": "gelu_new"}
# A parameter of ours: whether it is in a block of the encoder, the number of its block, its part,
# and its ending.
_PARAMETER = re.compile(r"(?:(encoder\.)?blocks\.(\d+)\.)?(.+)\.(weight|bias)")
# The fields of a config.json that change nothing in a forward pass, of all families. From the
# classes
# of configs in transformers 4 and 5, and published configs.
WITHOUT_EFFECT: WithoutEffect = {
    "it is about training": """
        *dropout *dropout_prob *pdrop *layerdrop *_coef *_jitter_noise *init_std
        *initializer_range gradient_checkpointing unsloth* """,
    "it is about tokens or about generating text": """
        *token_id bad_words_ids suppress_tokens begin_suppress_tokens chat_template language prefix
        num_beam* num_return* forced* *_penalty *_ngram_size max_length model_max_length min_length
        max_sequence_length seq_length max_new_tokens do_sample early_stopping temperature top_k
        top_p typical_p predict_special_tokens n_special task_specific_params """,
    "it is about other heads or other outputs than the guess of a token": """
        summary* pooler* output_attentions output_hidden_states output_past output_projection
        output_router_logits output_scores problem_type finetuning_task num_labels id2label label2id
        return_dict directionality """,
    "it is about programs and files, or about how fast and exactly they compute": """
        _* *_version *_class *dtype *_implementation *_fusion *_in_fp32 model_type architectures
        auto_map name license torchscript fp16 bf16 fp32 transformers.js_config use_cache*
        use_bfloat16* use_flash* use_fast* is_encoder_decoder is_decoder is_llama_config
        chunk_size_feed_forward pretraining_tp reorder_and_upcast_attn skip_bias_add slow_but_exact
        base_model_tp_plan base_model_pp_plan keys_to_ignore_at_inference """,
    "another field or the tensors say it too, or older versions called a field so": """
        n_ctx n_embed scale_attn_weights rotary rotary_pct rotary_emb_base rope_theta
        rope_local_base_freq sliding_window_pattern offset_alibi learned_embeddings type_vocab_size
        tie_word_embeddings tie_weights_ sinusoidal_pos_embds extra_pos_embeddings """,
}


# The base and the share of a head's numbers that is turned, in a table of rotary positions, and the
# fields of it that change nothing.
_IN_TABLE = ("rope_theta", "partial_rotary_factor")
_UNREAD_ROTARY: WithoutEffect = {
    "only other ways to scale them read it": """
        factor low_freq_factor high_freq_factor original_max_position_embeddings""",
    "in these families all numbers of a head are turned": "partial_rotary_factor",
    "it is about training": "finetuned",
}


class ShapeError(ImportRefusedError):
    """A tensor has a shape that does not fit the config; the message names the tensor, but not the
    file.
    """


MISMATCHED = "they are not from one model: copy or download all its files again"

# Of the name of a class of `transformers`: it has a head in the place of the unembedding.
OTHER_HEADS = re.compile(r"For(?:\w*Classification|QuestionAnswering|MultipleChoice)\b")


def missing_tensor(files: str, tensor: str) -> ImportRefusedError:
    """The error about a tensor that these files lack."""
    return ImportRefusedError(
        f"{files}: the tensor {tensor} is missing: copy or download the model again, or see "
        "whether the config says what it is"
    )


class Expert(NamedTuple):
    """A matrix of an expert: the number of its block, its own, and whether it is its "gate", "up"
    or "down".
    """

    block: int
    number: int
    kind: str


class Family(ABC):
    """Models that share names and an architecture."""

    model_type: ClassVar[str]  #: their name in `config.json`
    title: ClassVar[str]  #: their usual name
    architecture: ClassVar[str] = ""  #: the class of `transformers` that computes them
    #: by its name in our config, a field that is in theirs too: its name there, and its value if it
    #: is missing (None: it must be there)
    table: ClassVar[dict[str, tuple[str, Any]]] = {}
    #: the fields that change nothing in such a model, or only beside another one that it has, in
    #: the form of `WITHOUT_EFFECT`
    without_effect: ClassVar[WithoutEffect] = {}
    #: by the name of a part of ours in its block, or outside of blocks, the part of theirs with the
    #: same numbers, or several
    parts: ClassVar[dict[str, str | tuple[str, ...]]] = {}
    #: the path of their blocks, with {} for the name of the stack if there are two
    layers: ClassVar[str] = "model.layers"
    turned: ClassVar[bool] = False  #: whether the matrices of a block are stored as [in, out]
    #: whether the rows of queries, keys and values are ordered head by head
    by_head: ClassVar[bool] = False
    #: whether rotary positions turn the numbers 2i and 2i + 1 together: see `rotary_rows`
    neighbours: ClassVar[bool] = False
    plus_one: ClassVar[bool] = False  #: whether the gain of a norm is stored as its distance from 1
    #: the endings of the names of tensors that a forward pass does not need, such as masks
    unused: ClassVar[tuple[str, ...]] = (
        *(".attn.bias", ".attn.masked_bias", ".attention.bias", ".attention.masked_bias"),
        "inv_freq",
    )

    def read_config(self, given: Given) -> dict[str, Any]:
        """The fields of our config that are in `table`."""
        return {
            ours: _READ[ours](given, theirs, usual)
            if ours in _READ
            else given.our_number(ours, theirs, usual)
            for ours, (theirs, usual) in self.table.items()
        }

    def write_config(self, config: Config) -> dict[str, Any]:
        """The inverse of `read_config`."""
        return {
            theirs: _WRITTEN.get(ours, attrgetter(ours))(config)
            for ours, (theirs, _) in self.table.items()
        }

    def given_fields(self, fields: Mapping[str, Any], file: str = "config.json") -> Given:
        """The fields of a config of this family."""
        return Given(fields, f"{self.title} model", file)

    def require_architecture(self, given: Given, about: str) -> None:
        """Refuse a model of this family that is made for something else; `about` says what this one
        does.
        """
        named = given.optional("architectures") or [self.architecture]
        named = named if isinstance(named, list) else [named]
        if self.architecture not in named:
            raise ImportRefusedError(
                f"config.json: the architecture is {' or '.join(map(str, named)):.80}; of "
                f"{self.title} models gptviz opens "
                f"{self.architecture}, which {about}"
            )

    def our_config(self, given: Given, **more: Any) -> Config:
        """`config`, whose every error is an `ImportRefusedError` in the words of their config;
        `more` are fields of ours that come from elsewhere.
        """
        with given.refusing():
            config = replace(self.config(given), **more)
        turned = config.head_size * config.rotary_fraction
        # For an odd number `transformers` computes other frequencies.
        if (
            config.positions == "rotary"
            and int(turned) % 2
            and abs(turned - 2 * round(turned / 2)) > 1e-6
        ):
            raise ImportRefusedError(
                f"config.json: rotary positions turn {int(turned)} of the {config.head_size} "
                "numbers of a head; gptviz turns "
                "pairs, which are an even number"
            )
        if OTHER_HEADS.search(str(given.optional("architectures"))):
            self.require_architecture(given, "continues a text")
        return config

    @abstractmethod
    def config(self, given: Given) -> Config:
        """Our config of such a model.

        Raises:
            ImportRefusedError: gptviz has no part for a feature of the model, or a size is
                impossible.
            ValueError: the same, in the words of our config.
        """

    def fields(self, config: Config) -> dict[str, Any]:
        """The `config.json` of the model of this family that is nearest to ours; reading it back
        shows the differences.
        """
        return self.write_config(config)

    def labels(self, given: Given) -> tuple[str, ...]:
        """The names of the labels that such a model tells apart; none for models that do not."""
        return ()

    def matches(self, config: Config) -> Iterator[Match]:
        """Every parameter of ours, with the tensors of theirs that hold the same numbers."""
        for ours in parameter_shapes(config):
            yield self.match(config, ours, self.their_names(ours))

    def their_names(self, parameter: str) -> tuple[str, ...]:
        """The names of the tensors that a parameter of ours is made of; none if there is no such
        parameter.
        """
        named = _PARAMETER.fullmatch(parameter)
        assert named is not None
        encoder, block, part, ending = named.groups()
        if block is None:
            at = ""
        else:
            at = f"{self.layers.format('encoder' if encoder else 'decoder')}.{block}."
        names = self.names(part)
        return tuple(
            f"{at}{name}.{ending}" for name in ((names,) if isinstance(names, str) else names)
        )

    def names(self, part: str) -> str | tuple[str, ...]:
        """The name of the part of theirs that holds the same numbers as a `part` of ours, or the
        names of several.
        """
        return self.parts.get(part, ())

    def match(self, config: Config, ours: str, theirs: tuple[str, ...]) -> Match:
        """How the parameter `ours` and the tensors `theirs` become one another."""
        if len(theirs) == 3:
            return stack_separate(
                ours, theirs, config, rotary_rows(config, neighbours=self.neighbours)
            )
        if len(theirs) == 2:
            return Match(
                ours,
                theirs,
                lambda tensors: torch.cat(list(tensors)),
                lambda tensor: tensor.chunk(2),
            )
        if self.by_head and ".attention.qkv." in ours:
            return by_head(ours, theirs, config, rotary_rows(config, neighbours=self.neighbours))
        if self.plus_one and "norm" in ours:
            return Match(
                ours,
                theirs,
                lambda tensors: 1.0 + tensors[0].float(),
                lambda tensor: (tensor.float() - 1.0,),
            )
        if (
            self.turned
            and ours.startswith("blocks.")
            and ours.endswith(".weight")
            and "norm" not in ours
        ):
            return Match(ours, theirs, lambda tensors: tensors[0].T, lambda tensor: (tensor.T,))
        return Match(ours, theirs, lambda tensors: tensors[0], lambda tensor: (tensor,))

    def expert(self, name: str) -> Expert | None:
        """The matrix of an expert that one of their tensors is, or None if it is another one."""
        return None

    def stored_tensors(self, tensors: Iterator[tuple[str, Tensor]]) -> Iterator[tuple[str, Tensor]]:
        """Their tensors, by name, as a file has them."""
        return tensors

    def tensors(self, config: Config, given: Given, take: Take) -> Iterator[tuple[str, Tensor]]:
        """Our parameters, by name, made of theirs; one at a time, so that a large model is never in
        memory twice.

        Raises:
            ImportRefusedError: a tensor is missing.
            ShapeError: a tensor has a shape that does not fit the config.
        """
        for match in self.matches(config):
            try:
                made = match.to_ours([take(name) for name in match.theirs])
            except (RuntimeError, IndexError):
                raise ShapeError(
                    f"the shape of {' or '.join(match.theirs)} does not go with the config: "
                    f"{MISMATCHED}"
                ) from None
            yield match.ours, made


@dataclass(frozen=True)
class Match:
    """A parameter of ours, and the tensors of theirs that hold the same numbers."""

    ours: str  #: the name of the parameter
    theirs: tuple[str, ...]  #: the names of the tensors
    to_ours: Callable[[Sequence[Tensor]], Tensor]  #: makes the parameter of these tensors
    to_theirs: Callable[[Tensor], Sequence[Tensor]]  #: the inverse


def stack_separate(
    ours: str, theirs: tuple[str, ...], config: Config, order: Tensor | None
) -> Match:
    """Queries, keys and values that are stored separately, stacked in one matrix or bias; `order`
    as in `in_order`.
    """
    heads = config.n_head + config.key_heads
    sizes = [
        config.head_size * count for count in (config.n_head, config.key_heads, config.key_heads)
    ]
    return Match(
        ours,
        theirs,
        lambda tensors: in_order(torch.cat(list(tensors)), config, heads, order),
        lambda tensor: in_order(tensor, config, heads, _inverse_order(order)).split(sizes),
    )


def by_head(ours: str, theirs: tuple[str, ...], config: Config, order: Tensor | None) -> Match:
    """Queries, keys and values in one matrix or bias whose rows are ordered head by head; ours has
    all queries, all keys, all values. `order` as in `in_order`.
    """
    heads = config.n_head

    def to_ours(tensors: Sequence[Tensor]) -> Tensor:
        rows = torch.arange(len(tensors[0])).unflatten(0, (heads, 3, -1))  # [n_head, 3, d_head]
        # [3 · n_head · d_head, …]
        return in_order(tensors[0][rows.transpose(0, 1).flatten()], config, 2 * heads, order)

    def to_theirs(tensor: Tensor) -> Sequence[Tensor]:
        # [3, n_head, d_head, …]
        rows = in_order(tensor, config, 2 * heads, _inverse_order(order)).unflatten(
            0, (3, heads, -1)
        )
        return (rows.transpose(0, 1).flatten(0, 2),)  # [n_head · 3 · d_head, …]

    return Match(ours, theirs, to_ours, to_theirs)


def rotary_rows(config: Config, *, neighbours: bool = False) -> Tensor | None:
    """The order of the rows of a head of a query or key with which rotary positions turn our pairs
    (i, i + d_head / 2); None if it is theirs too.

    Elsewhere the first `rotary_fraction` of a head's numbers are turned, as pairs (i, i + half of
    these), or with `neighbours` as (2i, 2i + 1); the other numbers are not turned. The same order
    for queries and keys changes no score.
    """
    if config.positions != "rotary" or not (neighbours or config.rotary_fraction < 1):
        return None
    size = config.head_size
    half = config.head_size // 2
    turned = 2 * round(half * config.rotary_fraction)
    pairs = torch.arange(turned)
    first, second = (
        (pairs[0::2], pairs[1::2]) if neighbours else (pairs[: turned // 2], pairs[turned // 2 :])
    )
    rest = torch.arange(turned, size)
    return torch.cat((first, rest[: half - turned // 2], second, rest[half - turned // 2 :]))


def in_order(tensor: Tensor, config: Config, heads: int, order: Tensor | None) -> Tensor:
    """The first `heads` · d_head rows of a stacked matrix or bias in another `order` within each
    head; the others unchanged.
    """
    if order is None:
        return tensor
    rows = torch.arange(len(tensor))
    count = heads * config.head_size
    moved = rows[:count].unflatten(0, (heads, config.head_size))[:, order].flatten()
    return tensor[torch.cat((moved, rows[count:]))]


def _inverse_order(order: Tensor | None) -> Tensor | None:
    """The order that undoes `order`."""
    if order is None:
        return None
    return order.argsort()


def window_pattern(layer_types: object, windowed: str, everything: str) -> str:
    """The shortest `Config.window_pattern` for a list with the kind of each block."""
    if not isinstance(layer_types, list) or not 0 < len(layer_types) <= MOST_BLOCKS:
        raise ImportRefusedError(
            f"config.json: the kinds of the blocks are {layer_types!r:.80}; it must be a list of "
            f"at most {MOST_BLOCKS} words"
        )
    letters = {windowed: "w", everything: "f"}
    for kind in layer_types:
        if not isinstance(kind, str) or kind not in letters:
            raise ImportRefusedError(
                f"config.json: a block is of kind {kind!r:.80}; gptviz has {windowed} and "
                f"{everything}"
            )
    pattern = "".join(letters[kind] for kind in layer_types)
    for length in range(1, len(pattern)):
        if (pattern[:length] * len(pattern))[: len(pattern)] == pattern:
            return pattern[:length]
    return pattern


def layer_types(config: Config, windowed: str, everything: str) -> list[str]:
    """The kind of each block: whether it sees only a window."""
    return [windowed if config.has_window(block) else everything for block in range(config.n_layer)]


def rotary_fields(config: Config) -> dict[str, Any]:
    """The inverse of `rotary`, without the share that is turned."""
    scaling: dict[str, Any] | None = None
    if config.rotary_scaling != "none":
        scaling = {"rope_type": config.rotary_scaling, "factor": config.rotary_factor}
    if config.rotary_scaling == "llama3":
        first = {
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": config.rotary_context,
        }
        scaling = {**(scaling or {}), **first}
    return {"rope_theta": config.rotary_base, "rope_scaling": scaling}


def turned_share(config: Config) -> float:
    """The share of a head's numbers that are turned; its product with d_head is never just below a
    whole number.
    """
    turned = 2 * round(config.head_size // 2 * config.rotary_fraction)
    share = turned / config.head_size
    if int(config.head_size * share) == turned:
        return share
    return math.nextafter(share, 2.0)


def activation_name(config: Config) -> str:
    """The name of the activation in `config.json`."""
    return NAMES_OF_ACTIVATIONS.get(config.activation, config.activation)


def eps_of(config: Config) -> float:
    """The ε of the norms, with its default filled in."""
    if config.norm_eps is None:
        return NORMS[config.norm].usual_eps
    return config.norm_eps


def rotary(
    given: Given,
    fields: Mapping[str, Any] | None = None,
    *,
    base: float = 10_000.0,
    share: float | None = None,
    outside: tuple[str, str] = _IN_TABLE,
) -> dict[str, Any]:
    """Our rotary settings, as any version of `transformers` reads them.

    Args:
        fields: the rotary table; by default that of the config.
        base: the base if there is none.
        share: the share of a head's numbers that is turned if there is none; None for families of
            which `transformers` turns all.
        outside: the names of base and share in a config that does not have them in a table.
    """
    if fields is None:
        older = {
            name: given.optional(theirs) for name, theirs in zip(_IN_TABLE, outside, strict=True)
        }
        scaling = given.table("rope_scaling")
        parameters = given.table("rope_parameters")
        fields = {name: value for name, value in older.items() if value is not None}
        fields |= scaling or parameters
    inner = given.inner_table("rotary positions", fields)
    kinds = [inner.optional(name) for name in ("rope_type", "type")]
    kind = next((kind for kind in kinds if kind is not None), "default")
    settings: dict[str, Any] = {
        "rotary_base": float(inner.our_number("rotary_base", "rope_theta", base))
    }
    if share is not None:
        settings["rotary_fraction"] = float(
            inner.our_number("rotary_fraction", "partial_rotary_factor", share)
        )
    elif kind != "default":
        inner.allow_only("partial_rotary_factor", 1)  # `transformers` fails there
    if kind in ("linear", "llama3"):
        settings |= {
            "rotary_scaling": kind,
            "rotary_factor": float(inner.our_number("rotary_factor", "factor")),
        }
    elif kind != "default":
        raise ImportRefusedError(
            f"config.json: rotary positions are scaled by {kind!r:.40} (rope_type); gptviz has "
            "linear and llama3"
        )
    if kind == "llama3":
        low = fields.get("low_freq_factor")
        high = fields.get("high_freq_factor")
        if (low, high) != (1.0, 4.0):
            raise ImportRefusedError(
                f"config.json: low_freq_factor and high_freq_factor are {low!r:.20} and "
                f"{high!r:.20}; gptviz has only 1 and 4"
            )
        # As in transformers since version 5.
        whole = given.optional("original_max_position_embeddings")
        usual = given.optional("max_position_embeddings")
        first = inner if whole is None else given
        settings["rotary_context"] = first.our_number(
            "rotary_context", "original_max_position_embeddings", usual
        )
    inner.refuse_unread(_UNREAD_ROTARY)
    return settings


def _activation(given: Given, name: str, default: str) -> str:
    """Our name of the activation that a config names."""
    value = given.optional(name) if name in given.fields else default
    if not isinstance(value, str) or value not in ACTIVATIONS:
        raise given.refusal(name, f"gptviz has {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[value]


# How the fields of a `table` are read that are no numbers, and written that have their own default.
_READ: dict[str, Callable[[Given, str, Any], Any]] = {
    "activation": _activation,
    "tied": Given.switch,
}
_WRITTEN: dict[str, Callable[[Config], Any]] = {
    "activation": activation_name,
    "norm_eps": eps_of,
    "d_mlp": lambda config: config.expert_size,
}
