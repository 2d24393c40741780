"""One config for every architecture: each field is one choice, which the builder reads once."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

from gptviz.settings.fields import (
    FieldInfo,
    check_choices,
    check_number,
    check_numbers,
    field_info,
    field_metadata,
    setting,
)
from gptviz.settings.known_names import name_known

from .kinds import Kind
from .parts.activations import ACTIVATIONS
from .parts.heads import HEADS
from .parts.masks import MASKS
from .parts.mlps import MLPS
from .parts.norms import NORMS
from .parts.positions import POSITIONS, ROTARY_SCALINGS
from .parts.qk_norms import QK_NORMS
from .parts.residuals import RESIDUALS

MOST_BLOCKS = 256
MOST_EXPERTS = 16_384  # of all blocks: each has parts of its own, which take time to lay out

# A field in each group of a form, and those that only some choices have.
_attention = partial(setting, group="Attention")
_mlp = partial(setting, group="MLP")
_joining = partial(setting, group="Residual and norms")
_positions = partial(setting, group="Positions")
_biases = partial(setting, group="Biases")
_ends = partial(setting, group="Embedding and output")
_dropout = partial(setting, group="Dropout")
_rotary = partial(_positions, needs=("positions", ("rotary",)))
_experts = partial(_mlp, needs=("mlp", ("experts",)))


@dataclass(frozen=True, kw_only=True)
class Config:
    """The architecture of a transformer; `describe_field` says what each field is and which values
    it may have. What no model can have is refused with a `ValueError` that names the field and its
    value.

    A config may come from a stranger's file, so every size has a limit: laying out the empty parts
    stays quick, and the tables that positions compute, which no file of weights vouches for, stay
    small.
    """

    vocab_size: int = field(
        metadata=field_metadata(
            "Vocabulary", "How many different tokens the model knows.", low=1, high=10_000_000
        )
    )
    context_length: int = field(
        metadata=field_metadata(
            "Context (tokens)", "How many tokens the model sees at a time.", low=1, high=131_072
        )
    )
    d_model: int = field(
        metadata=field_metadata(
            "Width (d_model)",
            "How many numbers a token has in the residual stream, between the blocks.",
            low=1,
            high=1_000_000,
        )
    )
    n_layer: int = field(
        metadata=field_metadata(
            "Blocks",
            "How many blocks the model has; without any it is a bigram, which guesses each token "
            "from the one before it.",
            low=0,
            high=MOST_BLOCKS,
        )
    )
    n_head: int = setting(
        1,
        "Heads per block",
        "How many heads look at the text side by side in a block.",
        low=1,
        high=10_000,
    )
    d_head: int | None = _attention(
        None,
        "Size of a head",
        "How many numbers a query, a key and a value have; unless given, the width divided by the "
        "number of heads.",
        low=1,
        high=1_000_000,
    )
    n_kv_head: int | None = _attention(
        None,
        "Key heads per block",
        "How many heads have their own keys and values; each of them serves a group of "
        "neighbouring heads, which read it "
        "with different queries. Unless given, every head has its own.",
        low=1,
        high=10_000,
    )
    d_mlp: int | None = _mlp(
        None,
        "Neurons per MLP",
        "How many neurons a block's MLP has, in a mixture each of its experts; 0 is no MLP. "
        "Unless given, four times the width.",
        low=0,
        high=10_000_000,
    )
    residual: str = _joining(
        "pre-norm",
        "Residual",
        "How what a sublayer computes joins the stream, and where it is normalised.",
        choices=RESIDUALS,
    )
    norm: str = _joining(
        "layernorm", "Norm", "How the numbers of a token are brought to one scale.", choices=NORMS
    )
    norm_eps: float | None = _joining(
        None,
        "Norm epsilon",
        "The small number ε that keeps a norm from dividing by 0; unless given, the usual one of "
        "the kind of norm.",
        above=0,
        high=1,
    )
    norm_gain: bool = _joining(
        True, "Norm gain", "Whether norms multiply each number by a learned gain."
    )
    norm_bias: bool = _joining(
        True,
        "Norm bias",
        "Whether a layernorm adds a learned bias. It does so only where it has a gain too.",
    )
    final_norm: bool = _joining(
        True, "Final norm", "Whether a norm stands between the last block and the output."
    )
    positions: str = _positions(
        "learned", "Positions", "How the model knows the order of its tokens.", choices=POSITIONS
    )
    rotary_base: float = _rotary(
        10_000.0,
        "Rotary base",
        "How slowly rotary positions turn: the slowest wave is about this many times as long as "
        "the fastest wave.",
        above=1,
        high=1e9,
    )
    rotary_fraction: float = _rotary(
        1.0,
        "Rotary share",
        "The share of a head's numbers that rotary positions turn.",
        above=0,
        high=1,
    )
    rotary_scaling: str = _rotary(
        "none",
        "Rotary scaling",
        "How rotary positions were slowed down after a first training on shorter texts.",
        choices=ROTARY_SCALINGS,
    )
    rotary_factor: float = _positions(
        1.0,
        "Rotary factor",
        "By how much rotary scaling slows positions down.",
        low=1,
        high=1e4,
        needs=("rotary_scaling", ("linear", "llama3")),
    )
    rotary_context: int = _positions(
        8_192,
        "Context before scaling",
        "How many tokens the first training saw at a time (scaling llama3).",
        low=1,
        high=10_000_000,
        needs=("rotary_scaling", ("llama3",)),
    )
    mask: str = _attention(
        "causal",
        "Mask",
        "Which tokens a token sees: earlier ones (causal), or all (full).",
        choices=MASKS,
    )
    window: int | None = _attention(
        None,
        "Window (tokens)",
        "In blocks with a window, how many tokens a query may read: its own token and those just "
        "before it. None means no "
        "window.",
        low=1,
        high=131_072,
    )
    window_pattern: str = _attention(
        "w",
        "Blocks with a window",
        "Which blocks see only the window: w sees the window, f sees everything; the letters are "
        "repeated from block 0 up, "
        "so fw gives every other block a window.",
        needs=("window", ()),
    )
    window_rotary_base: float | None = _positions(
        None,
        "Rotary base in a window",
        "The rotary base in blocks with a window; unless given, the same as in the others.",
        above=1,
        high=1e9,
        needs=("window", ()),
    )
    mlp: str = _mlp(
        "plain", "Kind of MLP", "How the neurons of a block's MLP get their numbers.", choices=MLPS
    )
    n_expert: int = _experts(
        8, "Experts per MLP", "How many MLPs a mixture has side by side.", low=1, high=1_024
    )
    n_active: int = _experts(
        2,
        "Experts per token",
        "How many experts the router chooses for each token.",
        low=1,
        high=1_024,
    )
    expert_norm: bool = _experts(
        True,
        "Weights sum to 1",
        "Whether the weights of the chosen experts are divided by their sum. If not, they are "
        "shares of all experts.",
    )
    d_shared: int = _experts(
        0,
        "Neurons of the shared expert",
        "How many neurons an expert has that every token passes, with a weight of its own; 0 is "
        "none.",
        low=0,
        high=10_000_000,
    )
    activation: str = _mlp(
        "gelu",
        "Activation",
        "The curved function that is applied to a neuron's input.",
        choices=ACTIVATIONS,
    )
    qkv_bias: bool = _biases(
        True, "Bias of q, k, v", "Whether queries, keys and values have a learned bias."
    )
    output_bias: bool = _biases(
        True, "Output bias", "Whether the output of attention has a learned bias."
    )
    mlp_bias: bool = _biases(
        True, "MLP bias", "Whether both layers of the MLP have a learned bias; experts have none."
    )
    unembed_bias: bool = _biases(
        False, "Unembed bias", "Whether every token's score has a learned bias."
    )
    tied: bool = _ends(
        False, "Tied embedding", "Whether the same matrix is used to read tokens and to guess them."
    )
    embed_scale: float = _ends(
        1.0,
        "Scale of the embedding",
        "What a token's vector is multiplied by when it is read.",
        above=0,
        high=1e4,
    )
    embed_norm: bool = _ends(
        False,
        "Norm after the embedding",
        "Whether the vectors of tokens, with those of their positions, are normalised before the "
        "first block.",
    )
    smear: int = _ends(
        0,
        "Smear of the embedding",
        "How many numbers of a token's vector decide which share of the vector before it is "
        "added; 0 is none.",
        low=0,
        high=1_000_000,
    )
    mix_embedding: bool = _ends(
        False,
        "Embedding in every block",
        "Whether the stream that enters a block is a learned mix of itself and of the embedding "
        "that entered block 0.",
    )
    backout: bool = _ends(
        False,
        "Middle taken out",
        "Whether a learned share of the stream in the middle of the blocks is taken from what "
        "leaves the last one.",
    )
    value_gate: int = _attention(
        0,
        "Gate of value embeddings",
        "In every other block, the last one too: how many numbers of what attention reads decide "
        "which share of a vector of "
        "the token's own is added to each value; 0 is none.",
        low=0,
        high=1_000_000,
    )
    qk_norm: str = _attention(
        "none",
        "Normalised queries and keys",
        "How queries and keys are brought to a common size.",
        choices=QK_NORMS,
    )
    score_scale: float | None = _attention(
        None,
        "Scale of scores",
        "What the product of a query and a key is multiplied by; unless given, 1 / √d_head.",
        above=0,
        high=1e4,
    )
    score_cap: float | None = _attention(
        None,
        "Cap of scores",
        "Scores s become cap · tanh(s / cap), so that none is larger than this.",
        above=0,
        high=1e6,
    )
    logit_cap: float | None = _ends(
        None,
        "Cap of logits",
        "Logits s become cap · tanh(s / cap), so that none is larger than this.",
        above=0,
        high=1e6,
    )
    dropout: float = _dropout(
        0.0,
        "Dropout",
        "The share of numbers left out at random at each step of training.",
        low=0,
        below=1,
    )
    attention_dropout: float = _dropout(
        0.0,
        "Dropout on attention",
        "The share of attention weights left out at random at each step of training: a token then "
        "has to do without some of "
        "the tokens that it reads. The other weights are scaled up to make up for the missing "
        "ones.",
        low=0,
        below=1,
    )
    token_dropout: float = _dropout(
        0.0,
        "Dropout of tokens",
        "For a classifier: the share of a text's tokens left out at random each time the text is "
        "trained on, so that no "
        "label depends on a single word.",
        low=0,
        below=1,
    )
    n_encoder_layer: int = setting(
        0,
        "Blocks of the encoder",
        "How many blocks the encoder has: it reads the source before the decoder writes the "
        "answer. 0 means a model without "
        "an encoder. The decoder reads the encoder's output by cross-attention, and both share "
        "vocabulary, embedding and "
        "sizes.",
        low=0,
        high=MOST_BLOCKS,
    )
    head: str = _ends(
        "unembed",
        "How a label is decided",
        "What the model's last state becomes: a guess at the next token (unembed), or a label: "
        "from one number for every "
        "token, weighed by its place (flatten), from the mean of all tokens (mean), from their "
        "sum divided by the square "
        "root of their number (sum), or from a layer that reads only the first token (first, "
        "first-relu).",
        choices=HEADS,
    )
    n_label: int = setting(
        0, "Labels", "How many labels a classifier chooses from.", low=0, high=10_000
    )
    ordered: bool = setting(
        False,
        "Labels in order",
        "Whether the labels have an order from the lowest to the highest, as one to five stars do.",
    )
    padding: int | None = setting(
        None,
        "Padding",
        "The token that fills up the shorter texts of a batch; no other token reads it.",
        low=0,
    )

    def __post_init__(self) -> None:
        if isinstance(self.qk_norm, bool):  # before there were several kinds
            object.__setattr__(self, "qk_norm", "shared" if self.qk_norm else "none")
        check_choices(self)
        self._check_sizes(
            "vocab_size",
            "context_length",
            "d_model",
            "n_layer",
            "n_head",
            "n_encoder_layer",
            "n_label",
        )
        if self.d_head is None:
            if self.d_model % self.n_head:
                raise ValueError(
                    f"d_model {self.d_model} does not divide into n_head {self.n_head} heads: set "
                    "d_head too"
                )
            object.__setattr__(self, "d_head", self.d_model // self.n_head)
        if self.d_mlp is None:
            object.__setattr__(self, "d_mlp", 4 * self.d_model)
        self._check_sizes("d_head", "d_mlp")
        check_numbers(self)
        if self.n_head % self.key_heads:
            raise ValueError(
                f"n_kv_head is {self.n_kv_head}; it must divide n_head {self.n_head} into groups "
                "of one size"
            )
        POSITIONS[self.positions].check(self)
        self._check_axes()
        self._check_kind()

    def _check_axes(self) -> None:
        """Refuse fields that do not go together."""
        pattern = self.window_pattern
        if (
            not isinstance(pattern, str)
            or not 0 < len(pattern) <= MOST_BLOCKS
            or set(pattern) - set("wf")
        ):
            raise ValueError(
                f"window_pattern is {pattern!r:.80}; it must be letters w (a window) and f "
                "(everything), such as fw"
            )
        if self.window is not None and self.mask != "causal":
            raise ValueError(f"window is {self.window}; it needs a causal mask, not {self.mask}")
        if self.mlp == "experts" and self.n_layer * self.n_expert > MOST_EXPERTS:
            raise ValueError(
                f"n_expert is {self.n_expert} in {self.n_layer} blocks; the most of a model are "
                f"{MOST_EXPERTS:,}"
            )
        if self.mlp == "experts" and self.n_active > self.n_expert:
            raise ValueError(
                f"n_active is {self.n_active}; a router of n_expert {self.n_expert} experts "
                "cannot choose more"
            )
        for name in ("smear", "value_gate"):
            if getattr(self, name) > self.d_model:
                raise ValueError(
                    f"{name} is {getattr(self, name)}; a token has only d_model {self.d_model} "
                    "numbers"
                )
        if self.n_encoder_layer and self.has_shortcuts:
            raise ValueError(
                "smear, mix_embedding, backout and value_gate are for models without an encoder"
            )
        if RESIDUALS[self.residual].parallel and (self.mix_embedding or self.backout):
            raise ValueError(
                f"residual {self.residual} has no place for mix_embedding or backout: unset them"
            )
        if RESIDUALS[self.residual].parallel and self.n_encoder_layer:
            raise ValueError(
                f"residual {self.residual} has attention and an MLP side by side; there is no "
                "cross-attention in it"
            )
        if self.n_encoder_layer and not QK_NORMS[self.qk_norm].crosses:
            raise ValueError(
                f"qk_norm {self.qk_norm} is only for self-attention; this model has "
                "cross-attention too"
            )

    def _check_kind(self) -> None:
        """Refuse fields that an encoder, a classifier or padding does not allow."""
        padding = self.padding
        is_id = (
            isinstance(padding, int)
            and not isinstance(padding, bool)
            and 0 <= padding < self.vocab_size
        )
        if padding is not None and not is_id:
            raise ValueError(
                f"padding is {padding!r:.80}; it must be the id of a token, below "
                f"{self.vocab_size:,}, or none"
            )
        if not HEADS[self.head].classifies:
            if self.n_label:
                with_labels = " or ".join(name for name, head in HEADS.items() if head.classifies)
                raise ValueError(f"n_label is {self.n_label}: labels need the head {with_labels}")
            if self.ordered:
                raise ValueError("ordered is about labels, and this model has none: unset it")
            if self.token_dropout:
                raise ValueError(
                    f"token_dropout is {self.token_dropout:g}: it is only for models that learn "
                    "labels"
                )
            return
        if self.n_label < 2:
            raise ValueError(
                f"n_label is {self.n_label}; a {self.head} head needs at least 2 labels"
            )
        if self.n_encoder_layer:
            raise ValueError(
                "n_encoder_layer feeds a decoder, whose head is unembed; a classifier is one stack"
            )
        if self.tied:
            raise ValueError(
                f"tied shares the embedding with the unembedding; a {self.head} head has none: "
                "unset tied"
            )

    def _check_sizes(self, *names: str) -> None:
        for name in names:
            check_number(describe_field(name), name, getattr(self, name))

    @property
    def head_size(self) -> int:
        """Numbers per head, `d_head` with its default filled in."""
        assert self.d_head is not None
        return self.d_head

    @property
    def mlp_size(self) -> int:
        """Neurons per MLP, those of all its experts together; 0 where there is no MLP."""
        if self.mlp != "experts" or not self.expert_size:
            return self.expert_size
        return self.n_expert * self.expert_size + self.d_shared

    @property
    def expert_size(self) -> int:
        """Neurons of an MLP or of each expert, `d_mlp` with its default filled in."""
        assert self.d_mlp is not None
        return self.d_mlp

    @property
    def experts(self) -> int:
        """Experts of an MLP, a shared one included; 0 where the MLPs are no mixtures."""
        if self.mlp == "experts" and self.expert_size:
            return self.n_expert + (self.d_shared > 0)
        return 0

    @property
    def key_heads(self) -> int:
        """Heads with their own keys and values, `n_kv_head` with its default filled in."""
        if self.n_kv_head is None:
            return self.n_head
        return self.n_kv_head

    @property
    def scale(self) -> float:
        """The number that the product of a query and a key is multiplied by, `score_scale` with its
        default filled in.
        """
        return float(self.head_size**-0.5 if self.score_scale is None else self.score_scale)

    def has_window(self, block: int) -> bool:
        """Whether this block sees only a window."""
        return (
            self.window is not None and self.window_pattern[block % len(self.window_pattern)] == "w"
        )

    @property
    def has_shortcuts(self) -> bool:
        """Whether a block reads more than what the one before it left in the stream."""
        return self.smear > 0 or self.mix_embedding or self.backout or self.value_gate > 0

    def embeds_values(self, block: int) -> bool:
        """Whether the attention of this block has embeddings of values."""
        return self.value_gate > 0 and (self.n_layer - 1 - block) % 2 == 0

    def in_block(self, block: int) -> Config:
        """The config with the rotary positions of this block: in a window they may have another
        base, without scaling.
        """
        if not self.has_window(block) or self.window_rotary_base is None:
            return self
        return replace(self, rotary_base=self.window_rotary_base, rotary_scaling="none")

    @property
    def of_encoder(self) -> Config:
        """The config of the stack that reads the source, which looks ahead."""
        return replace(
            self, n_layer=self.n_encoder_layer, n_encoder_layer=0, mask="full", window=None
        )

    @property
    def kind(self) -> Kind:
        """The kind of its result for a text: its next token, a label, or another text."""
        if HEADS[self.head].classifies:
            return "classifier"
        if self.n_encoder_layer:
            return "encoder-decoder"
        return "decoder"

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON values."""
        # plain values all: `asdict` copies each
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Config:
        """A config from JSON values; a field that is unknown or missing is named too."""
        if not isinstance(values, dict):
            raise ValueError(f"a config is a table of fields, not {type(values).__name__}")
        known = {field.name for field in fields(cls)}
        if unknown := sorted(set(values) - known):
            raise ValueError(
                f"unknown config field {unknown[0]!r:.80}{name_known(unknown[0], sorted(known))}"
            )
        if missing := [
            name
            for name in ("vocab_size", "context_length", "d_model", "n_layer")
            if name not in values
        ]:
            raise ValueError(f"the config lacks {', '.join(missing)}")
        return cls(**values)


def describe_field(name: str) -> FieldInfo:
    """The description of the field `name` of a config: its label, help, limits and choices."""
    return field_info(Config, name)
