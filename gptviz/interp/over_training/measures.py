"""Measures: numbers of a model, each computed by the function that its page shows it with.

A measure gives one number for each of its series, such as a head, by name. What it reads,
`MeasureInput`, is the same at every snapshot of a model, and is made once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from torch import Tensor

from gptviz.model import Config, Transformer
from gptviz.model.kinds import MODEL_KINDS, Kind
from gptviz.settings.known_names import name_known
from gptviz.text.datasets.tasks import Modular

from ..changing.ablation import NOT_COUNTED, Rows, loss, loss_with_each
from ..changing.before_after import guess
from ..changing.edit import Edit, Inputs
from ..changing.edits import edit_unit
from ..compare import matrices
from ..explaining.attribution import attribute
from ..explaining.circuit import circuit
from ..explaining.circuit_check import check
from ..explaining.circuit_reads import means
from ..explaining.context_use import by_position
from ..explaining.random_edges import DRAWS
from ..reading.embeddings import cosine, mean_cosine, vectors
from ..reading.stream import lengths, stream
from ..reading.waves import powers
from ..trace import one_row
from ..units.head_scores import SCORES, Score, scores_of_stack, stacks_of
from ..units.unit import heads_and_mlps

Needs = Literal[
    "weights",
    "vowels",
    "texts for heads",
    "a prompt",
    "a token",
    "two tokens",
    "held-out data",
    "held-out texts",
    "a unit",
    "tasks",
    "answers",
    "a clock",
]
# The share of a logit that a circuit is to trace back, as on the page Circuit.
CIRCUIT_SHARE = 0.8


@dataclass(frozen=True)
class MeasureQuestion:
    """What a measure is asked about, where it reads a prompt."""

    #: the text; if empty, heads read repeated random tokens. For an encoder–decoder its source.
    prompt: str = ""
    #: the token that is guessed, as text or id; None for the likeliest. Of a classifier, a label.
    token: str | int | None = None
    #: another one, whose logit is taken from that of `token`, or whose vector is compared with its
    #: vector
    against: str | int | None = None
    #: the name of the unit that is switched off: a head, MLP, neuron, feature or another; empty
    #: where a measure is of none
    unit: str = ""


@dataclass(frozen=True, eq=False)
class MeasureInput:
    """What a model reads at every snapshot, as far as a measure needs it."""

    #: the tokens of the prompt; of an encoder–decoder those that its decoder reads
    ids: tuple[int, ...] = ()
    #: the tokens that its encoder reads; None for other kinds
    source: tuple[int, ...] | None = None
    token: int = 0  #: the token that is guessed after it, or the label
    against: int | None = None  #: the one that it is compared with
    #: [T] or [B, T], what heads read
    texts: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.long))
    #: repeated random tokens, for scores that have no meaning over `texts`
    repeats: Tensor | None = None
    counted_from: int = 1  #: the position in `texts` of the first token whose prediction counts
    #: data held out, with what is to be predicted, by the name of their series
    rows: Mapping[str, Sequence[Rows]] = field(default_factory=dict)
    held_out: Sequence[Sequence[int]] = ()  #: texts held out
    #: the tokens of each kind, such as "vowel", by its name
    kinds: Mapping[str, Sequence[int]] = field(default_factory=dict)
    clock: Modular | None = None  #: the task of sums on a clock
    edit: Edit | None = None  #: the edit that switches a unit off

    @property
    def tokens(self) -> int:
        """About how many tokens one pass reads."""
        rows = sum(row.reading.ids.numel() for each in self.rows.values() for row in each)
        return max(
            1,
            len(self.ids)
            + len(self.source or ())
            + self.texts.numel()
            + rows
            + sum(map(len, self.held_out)),
        )


Numbers = dict[str, float]
Compute = Callable[[Transformer, MeasureInput], Numbers]


@dataclass(frozen=True)
class Measure:
    """A number of a model, or several, that can be followed through training."""

    name: str  #: as commands and addresses have it
    title: str  #: as pages have it
    about: str  #: its definition, in a sentence
    unit: str  #: of its values
    needs: Needs  #: what it reads
    page: str  #: the name of the page that shows it, or empty
    compute: Compute  #: its values by the name of the series, for a model and what it is given
    #: about how many passes through a model with this configuration it takes
    passes: Callable[[Config], int] = lambda _: 1
    #: the kinds of models that have it
    kinds: tuple[Kind, ...] = ("decoder", "classifier", "encoder-decoder")
    #: for some kinds, what is different there: its `title`, `about`, `unit` or `page`
    differs: Mapping[Kind, Mapping[str, Any]] = field(default_factory=dict)

    def for_kind(self, kind: Kind) -> Measure:
        """The measure as models of this kind have it."""
        return replace(self, **self.differs.get(kind, {}))


GUESS_TOKENS: tuple[Kind, ...] = ("decoder", "encoder-decoder")
DECODERS: tuple[Kind, ...] = ("decoder",)
_NATS = "nats per token"
_PER_TEXT: Mapping[Kind, Mapping[str, Any]] = {"classifier": {"unit": "nats per text"}}

MEASURES: dict[str, Measure] = {}
"""The measures by name."""


def measure(
    name: str, title: str, unit: str, needs: Needs, page: str = "", **more: Any
) -> Callable[[Compute], Compute]:
    """Make a function a measure, whose definition is its docstring; the arguments are fields of
    `Measure`.
    """

    def add(compute: Compute) -> Compute:
        about = more.pop("about", None) or " ".join((compute.__doc__ or "").split())
        MEASURES[name] = Measure(name, title, about, unit, needs, page, compute, **more)
        return compute

    return add


@measure("loss", "Loss", _NATS, "held-out data", "switch_off", differs=_PER_TEXT)
def _losses(model: Transformer, given: MeasureInput) -> Numbers:
    """The mean surprise at the right token, over data held out."""
    return {name: loss(model, rows) for name, rows in given.rows.items()}


@measure("loss.by_task", "Loss, each task", _NATS, "tasks", kinds=DECODERS)
def _losses_by_task(model: Transformer, given: MeasureInput) -> Numbers:
    """The loss over data held out, for each of the tasks that it has learned."""
    return _losses(model, given)


@measure(
    "loss.by_position", "Loss, each position", _NATS, "held-out texts", "context", kinds=DECODERS
)
def _losses_by_position(model: Transformer, given: MeasureInput) -> Numbers:
    """The loss of the tokens at each position of texts held out."""
    losses = by_position(model, given.held_out)
    # the first is not guessed
    return dict(zip(losses.axes[0].labels[1:], losses.values[1:].tolist(), strict=True))


def _measure_heads(name: str, score: Score) -> None:
    unit = {"distance": "tokens", "delta_loss": _NATS}.get(name, "score")
    # A classifier writes no tokens, and its loss needs the right label.
    more: dict[str, Any] = {"kinds": GUESS_TOKENS} if name in ("copying", "delta_loss") else {}
    if name == "delta_loss":
        more["passes"] = lambda config: sum(unit.is_head for unit in heads_and_mlps(config))

    @measure(
        f"heads.{name}",
        f"{score.title}, each head",
        unit,
        "texts for heads",
        "heads",
        about=score.about,
        **more,
    )
    def _scores(model: Transformer, given: MeasureInput) -> Numbers:
        texts = torch.atleast_2d(given.texts)
        if given.source is None:
            source = None
        else:
            source = torch.tensor([given.source], device=texts.device)
        first = given.counted_from if name == "delta_loss" else None
        values = dict[str, float]()
        for stack in stacks_of(model):
            scores = scores_of_stack(model, stack, texts, source, given.repeats, counted_from=first)
            values |= {
                row["name"]: float("nan") if row.get(name) is None else row[name]
                for row in scores.rows()
            }
        return values


for _name, _score in SCORES.items():
    _measure_heads(_name, _score)


@measure(
    "accuracy",
    "Right answers",
    "share",
    "answers",
    differs={
        "classifier": {
            "about": "The share of texts that get the right label: of texts held out and, as many, "
            "of those learned."
        },
        "encoder-decoder": {
            "about": "The share of answers that are right from their first token to their end: of "
            "data held out and, where there are few to learn from, of those learned."
        },
    },
)
@torch.inference_mode()
def _share_right(model: Transformer, given: MeasureInput) -> Numbers:
    """The share of the answers that are right: in data held out and, where there are few to learn
    from, in those learned.
    """
    # An encoder–decoder that always takes the likeliest token writes an answer if each token is the
    # likeliest after those before.
    whole = model.config.kind == "encoder-decoder"

    def is_right(rows: Rows) -> Tensor:
        counted = rows.targets != NOT_COUNTED
        guessed = model(*rows.reading).argmax(-1) == rows.targets
        if whole:
            return (guessed | ~counted).all(-1)
        return guessed[counted]

    return {
        name: float(torch.cat(list(map(is_right, rows))).double().mean())
        for name, rows in given.rows.items()
    }


@measure(
    "waves", "Waves of the logits, each frequency", "share", "a clock", "embeddings", kinds=DECODERS
)
def _waves(model: Transformer, given: MeasureInput) -> Numbers:
    """The share of each frequency in the logits of a model of sums on a clock: see the view Waves
    of Embeddings.
    """
    assert given.clock is not None
    shares = powers(model, given.clock)
    return dict(zip(shares.axes[1].labels, shares.values[-1].tolist(), strict=True))


@measure(
    "switched_off",
    "Loss without each head and MLP",
    _NATS,
    "held-out data",
    "switch_off",
    passes=lambda config: 1 + len(heads_and_mlps(config)),
    differs=_PER_TEXT,
)
def _switched_off(model: Transformer, given: MeasureInput) -> Numbers:
    """How much the loss rises, over data held out, if what a part computes is replaced by zero."""
    (rows,) = given.rows.values()
    usual = loss(model, rows)
    losses = loss_with_each(model, rows, [edit_unit(unit) for unit in heads_and_mlps(model.config)])
    return {edit.unit.name: value - usual for edit, value in losses}


@measure(
    "loss.without",
    "Loss without a unit",
    _NATS,
    "a unit",
    "switch_off",
    passes=lambda _: 2,
    differs=_PER_TEXT,
)
def _without_unit(model: Transformer, given: MeasureInput) -> Numbers:
    """How much the loss rises, over data held out, if a head, MLP, neuron or feature is switched
    off. A feature is of one dictionary, the same at every step.
    """
    assert given.edit is not None
    (rows,) = given.rows.values()
    ((edit, without),) = loss_with_each(model, rows, [given.edit])
    return {edit.unit.name: without - loss(model, rows)}


_TO_A_LABEL = (
    "What each head, MLP and bias adds to the logit of a label, or to its difference from another."
)
_IN_THE_DECODER = (
    "What each head, MLP and bias of the decoder adds to the logit of the first token of the "
    "answer, or to its difference from "
    "another."
)


@measure(
    "attribution",
    "Attribution, each part",
    "logit",
    "a token",
    "attribution",
    differs={"classifier": {"about": _TO_A_LABEL}, "encoder-decoder": {"about": _IN_THE_DECODER}},
)
def _attribution(model: Transformer, given: MeasureInput) -> Numbers:
    """What each head, MLP and bias adds to the logit of the token after the prompt, or to its
    difference from another.
    """
    return attribute(model, given.ids, given.token, None, given.against, given.source).values


@measure(
    "circuit.share",
    "Share of the circuit",
    "share",
    "a token",
    "circuit",
    passes=lambda _: 20 + DRAWS,
    kinds=DECODERS,
)
def _circuit(model: Transformer, given: MeasureInput) -> Numbers:
    """The share of the logit, or of the difference of two, that is left if all outside the circuit
    found at this step writes its mean; and what as many random edges keep, the median of 20 draws.
    """
    ids = torch.tensor(given.ids, device=model.embed.weight.device)
    usual = means(model, ids[None])
    last = len(ids) - 1
    own = circuit(
        model, ids, last, given.token, given.against, CIRCUIT_SHARE, usual=usual if last else None
    )
    checked = check(own, model, usual)
    return {"circuit": checked.share, "random edges": checked.random.median}


@measure(
    "probability",
    "Probability of the token",
    "probability",
    "a token",
    "next_token",
    differs={
        "classifier": {
            "title": "Probability of the label",
            "about": "How likely the label is for the prompt.",
            "page": "classify",
        },
        "encoder-decoder": {
            "about": "How likely the answer is to begin with the token.",
            "page": "translate",
        },
    },
)
def _probability(model: Transformer, given: MeasureInput) -> Numbers:
    """How likely the token is to come after the prompt."""
    return {
        "probability": float(
            guess(model, Inputs(*one_row(model, given.ids, given.source)))[given.token]
        )
    }


@measure("similarity", "Similarity of two tokens", "cosine", "two tokens", "embeddings")
def _similarity(model: Transformer, given: MeasureInput) -> Numbers:
    """The cosine between the embeddings of two tokens: 1 the same direction, 0 at right angles, −1
    the opposite.
    """
    assert given.against is not None
    return {"cosine": cosine(vectors(model, "embedding"), given.token, given.against)}


@measure("similarity.vowels", "Similarity of vowels", "cosine", "vowels", "embeddings")
def _vowels(model: Transformer, given: MeasureInput) -> Numbers:
    """The mean cosine between the embeddings of two vowels, and between those of a vowel and a
    consonant.
    """
    rows = vectors(model, "embedding")
    vowels = given.kinds["vowel"]
    consonants = given.kinds["consonant"]
    return {
        "two vowels": mean_cosine(rows, vowels, vowels),
        "a vowel and a consonant": mean_cosine(rows, vowels, consonants),
    }


@measure(
    "stream.length",
    "Length of the stream, each layer",
    "length",
    "a prompt",
    "stream",
    kinds=GUESS_TOKENS,
    differs={
        "encoder-decoder": {
            "about": "How long the vector of the last token of the answer is after each layer of "
            "the decoder."
        }
    },
)
def _stream(model: Transformer, given: MeasureInput) -> Numbers:
    """How long the vector of the last token of the prompt is after each layer."""
    by_layer = lengths(stream(model, given.ids, given.source), [""] * len(given.ids))
    return dict(zip(by_layer.axes[0].labels, by_layer.values[:, -1].tolist(), strict=True))


@measure("weights.norm", "Norm, each matrix", "norm", "weights")
def _norms(model: Transformer, _: MeasureInput) -> Numbers:
    """The size of each matrix of weights: the root of the sum of the squares of its numbers."""
    return {name: float(matrix.norm()) for name, matrix in matrices(model).items()}


@measure("weights.rank", "Rank, each matrix", "directions", "weights")
def _ranks(model: Transformer, _: MeasureInput) -> Numbers:
    """In how many directions a matrix of weights really works, its effective rank: e to the power
    of the entropy of its singular values, each divided by their sum.
    """
    shares = {name: torch.linalg.svdvals(matrix) for name, matrix in matrices(model).items()}
    return {
        name: float(torch.special.entr(values / values.sum()).sum().exp())
        for name, values in shares.items()
    }


def measure_named(name: str, kind: Kind = "decoder") -> Measure:
    """The measure of this name for models of this kind; if there is none, a ValueError names those
    that there are.
    """
    if name not in MEASURES:
        raise ValueError(f"there is no measure {name!r:.60}{name_known(name, MEASURES)}")
    if kind not in MEASURES[name].kinds:
        having = " or ".join(MODEL_KINDS[one].with_article for one in MEASURES[name].kinds)
        raise ValueError(
            f"{MODEL_KINDS[kind].with_article} has no measure {name}: it is one of {having}"
        )
    return MEASURES[name].for_kind(kind)
