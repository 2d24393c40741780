"""One config for every architecture: each field is one axis of variation, resolved once by the builder."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args, get_type_hints

Residual = Literal["pre-norm", "post-norm", "plain", "norm-only", "none"]
Norm = Literal["layernorm", "rmsnorm"]
Positions = Literal["learned", "sinusoidal", "rotary", "relative", "alibi", "none"]
Mask = Literal["causal", "full"]
Head = Literal["unembed", "flatten", "mean"]
Kind = Literal["decoder", "classifier", "encoder-decoder"]
Activation = Literal["relu", "gelu", "gelu-tanh", "relu2"]

# A config may come from a stranger's file: no dimension may exceed these, so that even laying out the empty parts is quick,
# and the tables that positions compute, which no file of weights vouches for, stay small.
LIMITS = {
    "vocab_size": 10_000_000,
    "context_length": 131_072,
    "d_model": 1_000_000,
    "n_layer": 256,
    "n_encoder_layer": 256,
    "n_label": 10_000,
    "n_head": 10_000,
    "d_head": 1_000_000,
    "d_mlp": 10_000_000,
}


@dataclass(frozen=True, kw_only=True)
class Config:
    """The architecture of a transformer.

    Sizes are counts of numbers: `vocab_size` tokens, `context_length` positions, `d_model` numbers in the residual
    stream, `n_layer` blocks (0 is the bigram), `n_head` heads of `d_head` numbers each (default `d_model / n_head`),
    `d_mlp` neurons (default 4 · d_model; 0 leaves the MLP out). `norm_bias` counts where a layernorm has a gain.

    `n_encoder_layer` blocks more make an encoder, whose output every block of the stack above reads by cross-attention; both
    stacks share vocabulary, embedding and sizes. `head` turns the stream into logits of every next token, or of `n_label`
    labels of the whole text. `padding` is the token that fills up the shorter texts of a batch: nobody reads it.

    Raises:
        ValueError: a size or choice that no model can have; the message names the field and its value.
    """

    vocab_size: int
    context_length: int
    d_model: int
    n_layer: int
    n_head: int = 1
    d_head: int | None = None
    d_mlp: int | None = None
    residual: Residual = "pre-norm"
    norm: Norm = "layernorm"
    norm_gain: bool = True
    norm_bias: bool = True
    final_norm: bool = True
    positions: Positions = "learned"
    mask: Mask = "causal"
    activation: Activation = "gelu"
    qkv_bias: bool = True
    output_bias: bool = True
    mlp_bias: bool = True
    unembed_bias: bool = False
    tied: bool = False
    qk_norm: bool = False
    dropout: float = 0.0
    n_encoder_layer: int = 0
    head: Head = "unembed"
    n_label: int = 0
    padding: int | None = None

    def __post_init__(self) -> None:
        choices = get_type_hints(type(self))
        for field in fields(self):
            value = getattr(self, field.name)
            allowed = get_args(choices[field.name])
            if isinstance(choices[field.name], type) and choices[field.name] is bool:
                if not isinstance(value, bool):
                    raise ValueError(f"{field.name} is {value!r:.80}; it must be true or false")
            elif allowed and all(isinstance(choice, str) for choice in allowed) and value not in allowed:
                raise ValueError(f"{field.name} is {value!r:.80}; it must be one of {', '.join(allowed)}")
        self._check_sizes("vocab_size", "context_length", "d_model", "n_layer", "n_head", "n_encoder_layer", "n_label")
        if self.d_head is None:
            if self.d_model % self.n_head:
                raise ValueError(f"d_model {self.d_model} does not divide into n_head {self.n_head} heads: set d_head too")
            object.__setattr__(self, "d_head", self.d_model // self.n_head)
        if self.d_mlp is None:
            object.__setattr__(self, "d_mlp", 4 * self.d_model)
        self._check_sizes("d_head", "d_mlp")
        if isinstance(self.dropout, bool) or not isinstance(self.dropout, int | float) or not 0 <= self.dropout < 1:
            raise ValueError(f"dropout is {self.dropout!r:.80}; it must be a number from 0 up to, not including, 1")
        if self.positions == "rotary" and self.head_size % 2:
            raise ValueError(f"rotary positions turn pairs of numbers: d_head {self.d_head} must be even")
        if self.positions == "sinusoidal" and self.d_model % 2:
            raise ValueError(f"sinusoidal positions pair a sine with a cosine: d_model {self.d_model} must be even")
        if self.tied and self.unembed_bias:
            raise ValueError("tied shares the embedding with the unembedding, which then has no bias: unset unembed_bias")
        self._check_kind()

    def _check_kind(self) -> None:
        """What an encoder, a classifier and padding ask of the other fields."""
        padding = self.padding
        is_id = isinstance(padding, int) and not isinstance(padding, bool) and 0 <= padding < self.vocab_size
        if padding is not None and not is_id:
            raise ValueError(f"padding is {padding!r:.80}; it must be the id of a token, below {self.vocab_size:,}, or none")
        if self.head == "unembed":
            if self.n_label:
                raise ValueError(f"n_label is {self.n_label}: labels need a head that tells them apart, flatten or mean")
            return
        if self.n_label < 2:
            raise ValueError(f"n_label is {self.n_label}; a {self.head} head tells at least 2 labels apart")
        if self.n_encoder_layer:
            raise ValueError("n_encoder_layer feeds a decoder, whose head is unembed; a classifier is one stack")
        if self.tied:
            raise ValueError(f"tied shares the embedding with the unembedding; a {self.head} head has none: unset tied")

    def _check_sizes(self, *names: str) -> None:
        for name in names:
            value, least = getattr(self, name), 0 if name in ("n_layer", "d_mlp", "n_encoder_layer", "n_label") else 1
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= LIMITS[name]:
                raise ValueError(f"{name} is {value!r:.80}; it must be a whole number from {least} to {LIMITS[name]:,}")

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
        if self.head != "unembed":
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
