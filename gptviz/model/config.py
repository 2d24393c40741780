"""One config for every architecture: each field is one choice, which the builder reads once."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any

from gptviz.fields import FieldInfo, check_choices, field_info, setting

from .activations import ACTIVATIONS
from .heads import HEADS
from .kinds import Kind
from .masks import MASKS
from .norms import NORMS
from .positions import POSITIONS
from .residuals import RESIDUALS


@dataclass(frozen=True, kw_only=True)
class Config:
    """The architecture of a transformer; `describe_field` says what each field is and which values it may have.

    A config may come from a stranger's file, so every size has a limit: laying out the empty parts stays quick, and the tables
    that positions compute, which no file of weights vouches for, stay small.

    Raises:
        ValueError: a size or choice that no model can have; the message names the field and its value.
    """

    vocab_size: int = field(metadata=setting("Vocabulary", "How many tokens it knows.", low=1, high=10_000_000))
    context_length: int = field(metadata=setting("Context (tokens)", "How many tokens it sees at a time.", low=1, high=131_072))
    d_model: int = field(
        metadata=setting(
            "Width (d_model)",
            "How many numbers stand for a token in the residual stream, between its blocks.",
            low=1,
            high=1_000_000,
        )
    )
    n_layer: int = field(metadata=setting("Blocks", "How many blocks it has; none is a bigram.", low=0, high=256))
    n_head: int = field(
        default=1,
        metadata=setting("Heads per block", "How many heads look at the text side by side in a block.", low=1, high=10_000),
    )
    d_head: int | None = field(
        default=None,
        metadata=setting(
            "Size of a head",
            "How many numbers a query, a key and a value have; unless given, the width divided by the number of heads.",
            low=1,
            high=1_000_000,
        ),
    )
    d_mlp: int | None = field(
        default=None,
        metadata=setting(
            "Neurons per MLP",
            "How many neurons a block's MLP has; 0 is no MLP. Unless given, four times the width.",
            low=0,
            high=10_000_000,
        ),
    )
    residual: str = field(
        default="pre-norm",
        metadata=setting(
            "Residual", "How what a sublayer computes joins the stream, and where it is normalised.", choices=RESIDUALS
        ),
    )
    norm: str = field(
        default="layernorm", metadata=setting("Norm", "How the numbers of a token are brought to one scale.", choices=NORMS)
    )
    norm_gain: bool = field(default=True, metadata=setting("Norm gain", "Whether norms multiply each number by a learned gain."))
    norm_bias: bool = field(
        default=True,
        metadata=setting("Norm bias", "Whether a layernorm adds a learned bias. It does so only where it has a gain too."),
    )
    final_norm: bool = field(
        default=True, metadata=setting("Final norm", "Whether a norm stands between the last block and the output.")
    )
    positions: str = field(
        default="learned", metadata=setting("Positions", "How it knows the order of its tokens.", choices=POSITIONS)
    )
    mask: str = field(
        default="causal",
        metadata=setting("Mask", "Which tokens a token sees: earlier ones (causal), or all (full).", choices=MASKS),
    )
    activation: str = field(default="gelu", metadata=setting("Activation", "What bends a neuron's input.", choices=ACTIVATIONS))
    qkv_bias: bool = field(
        default=True, metadata=setting("Bias of q, k, v", "Whether queries, keys and values have a learned bias.")
    )
    output_bias: bool = field(
        default=True, metadata=setting("Output bias", "Whether the output of attention has a learned bias.")
    )
    mlp_bias: bool = field(default=True, metadata=setting("MLP bias", "Whether both layers of the MLP have a learned bias."))
    unembed_bias: bool = field(default=False, metadata=setting("Unembed bias", "Whether every token's score has a learned bias."))
    tied: bool = field(
        default=False, metadata=setting("Tied embedding", "Whether one matrix serves to read tokens and to guess them.")
    )
    qk_norm: bool = field(
        default=False, metadata=setting("Normalised queries and keys", "Whether queries and keys are brought to one length.")
    )
    dropout: float = field(
        default=0.0,
        metadata=setting(
            "Dropout", "The share of numbers left out at random at each step of training.", low=0, high=1, high_excluded=True
        ),
    )
    attention_dropout: float = field(
        default=0.0,
        metadata=setting(
            "Dropout on attention",
            "The share of attention weights left out at random at each step of training: a token then does without some of those "
            "that it reads. The others are scaled up to make up for them.",
            low=0,
            high=1,
            high_excluded=True,
        ),
    )
    token_dropout: float = field(
        default=0.0,
        metadata=setting(
            "Dropout of tokens",
            "For a classifier: the share of a text's tokens left out at random each time the text is trained on, so that no "
            "label hangs on a single word.",
            low=0,
            high=1,
            high_excluded=True,
        ),
    )
    n_encoder_layer: int = field(
        default=0,
        metadata=setting(
            "Blocks of the encoder",
            "How many blocks read the source, before the others write the answer; 0 is a model without an encoder. "
            "The others read its output by cross-attention, and both share vocabulary, embedding and sizes.",
            low=0,
            high=256,
        ),
    )
    head: str = field(
        default="unembed",
        metadata=setting(
            "How a label is decided",
            "What its last state becomes: the next token (unembed), or a label, from a number of every token with a weight "
            "for its place (flatten) or from the mean of all tokens (mean).",
            choices=HEADS,
        ),
    )
    n_label: int = field(default=0, metadata=setting("Labels", "How many labels it tells apart.", low=0, high=10_000))
    ordered: bool = field(
        default=False,
        metadata=setting(
            "Labels in order", "Whether its labels are in an order from the lowest to the highest, as one to five stars are."
        ),
    )
    padding: int | None = field(
        default=None,
        metadata=setting("Padding", "The token that fills up the shorter texts of a batch, which nobody reads.", low=0),
    )

    def __post_init__(self) -> None:
        check_choices(self)
        self._check_sizes("vocab_size", "context_length", "d_model", "n_layer", "n_head", "n_encoder_layer", "n_label")
        if self.d_head is None:
            if self.d_model % self.n_head:
                raise ValueError(f"d_model {self.d_model} does not divide into n_head {self.n_head} heads: set d_head too")
            object.__setattr__(self, "d_head", self.d_model // self.n_head)
        if self.d_mlp is None:
            object.__setattr__(self, "d_mlp", 4 * self.d_model)
        self._check_sizes("d_head", "d_mlp")
        self._check_shares("dropout", "attention_dropout", "token_dropout")
        POSITIONS[self.positions].check(self)
        if self.tied and self.unembed_bias:
            raise ValueError("tied shares the embedding with the unembedding, which then has no bias: unset unembed_bias")
        self._check_kind()

    def _check_kind(self) -> None:
        """Refuse fields that an encoder, a classifier or padding does not allow.

        Raises:
            ValueError: the message names the field and its value.
        """
        padding = self.padding
        is_id = isinstance(padding, int) and not isinstance(padding, bool) and 0 <= padding < self.vocab_size
        if padding is not None and not is_id:
            raise ValueError(f"padding is {padding!r:.80}; it must be the id of a token, below {self.vocab_size:,}, or none")
        if not HEADS[self.head].classifies:
            if self.n_label:
                raise ValueError(f"n_label is {self.n_label}: labels need a head that tells them apart, flatten or mean")
            if self.ordered:
                raise ValueError("ordered is of labels, and this model tells none apart: unset it")
            if self.token_dropout:
                raise ValueError(f"token_dropout is {self.token_dropout:g}: only texts with labels can do without some tokens")
            return
        if self.n_label < 2:
            raise ValueError(f"n_label is {self.n_label}; a {self.head} head tells at least 2 labels apart")
        if self.n_encoder_layer:
            raise ValueError("n_encoder_layer feeds a decoder, whose head is unembed; a classifier is one stack")
        if self.tied:
            raise ValueError(f"tied shares the embedding with the unembedding; a {self.head} head has none: unset tied")

    def _check_sizes(self, *names: str) -> None:
        for name in names:
            value, info = getattr(self, name), describe_field(name)
            assert info.low is not None
            assert info.high is not None
            if isinstance(value, bool) or not isinstance(value, int) or not info.low <= value <= info.high:
                raise ValueError(f"{name} is {value!r:.80}; it must be a whole number from {info.low} to {info.high:,}")

    def _check_shares(self, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
                raise ValueError(f"{name} is {value!r:.80}; it must be a number from 0 up to, not including, 1")

    @property
    def head_size(self) -> int:
        """Numbers per head, `d_head` with its default filled in."""
        assert self.d_head is not None
        return self.d_head

    @property
    def mlp_size(self) -> int:
        """Neurons per MLP, `d_mlp` with its default filled in; 0 where there is no MLP."""
        assert self.d_mlp is not None
        return self.d_mlp

    @property
    def kind(self) -> Kind:
        """What it makes of a text: its next token, a label, or another text."""
        if HEADS[self.head].classifies:
            return "classifier"
        return "encoder-decoder" if self.n_encoder_layer else "decoder"

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Config:
        """A config from JSON values.

        Raises:
            ValueError: a field is unknown, missing or impossible; the message names it.
        """
        if not isinstance(values, dict):
            raise ValueError(f"a config is a table of fields, not {type(values).__name__}")
        known = {field.name for field in fields(cls)}
        if unknown := sorted(set(values) - known):
            raise ValueError(f"unknown config field {unknown[0]!r:.80}; known are {', '.join(sorted(known))}")
        if missing := [name for name in ("vocab_size", "context_length", "d_model", "n_layer") if name not in values]:
            raise ValueError(f"the config lacks {', '.join(missing)}")
        return cls(**values)


def describe_field(name: str) -> FieldInfo:
    """What there is to say about the field `name` of a config: its label, help, limits and choices.

    Raises:
        ValueError: a config has no such field.
    """
    return field_info(Config, name)
