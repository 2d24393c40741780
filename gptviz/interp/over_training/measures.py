"""Measures: numbers of a model, each computed by the function that its page shows it with.

A measure gives one number for each of its series, such as a head, by name. What it reads, `Given`, is the same at every snapshot
of a model, and is made once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from torch import Tensor

from gptviz.model import Config, Transformer
from gptviz.model.kinds import MODEL_KINDS, Kind
from gptviz.settings.known_names import instead
from gptviz.text.datasets.tasks import Modular

from ..changing.ablation import NOT_COUNTED, Rows, loss, loss_with_each
from ..changing.before_after import guess
from ..changing.edits import Inputs, UnitEdit
from ..compare import matrices
from ..explaining.attribution import attribute
from ..explaining.circuit import circuit
from ..explaining.circuit_check import check
from ..explaining.circuit_reads import means
from ..explaining.context_use import by_position
from ..reading.embeddings import cosine, mean_cosine, vectors
from ..reading.stream import lengths, stream
from ..reading.waves import powers
from ..units.head_scores import SCORES, Score, scores_of_model, with_losses
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
    "tasks",
    "answers",
    "a clock",
]
# The share of a logit that a circuit is to trace back, as on the page Circuit.
CIRCUIT_SHARE = 0.8


@dataclass(frozen=True)
class Question:
    """What a measure is asked about, where it reads a prompt."""

    prompt: str = ""  #: the text; if empty, heads read repeated random tokens. For an encoder–decoder its source.
    token: str | int | None = None  #: the token that is guessed, as text or id; None for the likeliest. Of a classifier, a label.
    #: another one, whose logit is taken from that of `token`, or whose vector is compared with its vector
    against: str | int | None = None


@dataclass(frozen=True, eq=False)
class Given:
    """What a model reads at every snapshot, as far as a measure needs it."""

    ids: tuple[int, ...] = ()  #: the tokens of the prompt; of an encoder–decoder those that its decoder reads
    source: tuple[int, ...] | None = None  #: the tokens that its encoder reads; None for other kinds
    token: int = 0  #: the token that is guessed after it, or the label
    against: int | None = None  #: the one that it is compared with
    texts: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.long))  #: [T] or [B, T], what heads read
    repeats: Tensor | None = None  #: repeated random tokens, for scores that have no meaning over `texts`
    counted_from: int = 1  #: the position in `texts` of the first token whose prediction counts
    #: data held out, with what is to be predicted, by the name of their series
    rows: Mapping[str, Sequence[Rows]] = field(default_factory=dict)
    held_out: Sequence[Sequence[int]] = ()  #: texts held out
    kinds: Mapping[str, Sequence[int]] = field(default_factory=dict)  #: the tokens of each kind, such as "vowel", by its name
    clock: Modular | None = None  #: the task of sums on a clock

    @property
    def tokens(self) -> int:
        """About how many tokens one pass reads."""
        rows = sum(row.reading.ids.numel() for each in self.rows.values() for row in each)
        return max(1, len(self.ids) + len(self.source or ()) + self.texts.numel() + rows + sum(map(len, self.held_out)))


Values = dict[str, float]


@dataclass(frozen=True)
class Measure:
    """A number of a model, or several, that can be followed through training."""

    name: str  #: as commands and addresses have it
    title: str  #: as pages have it
    about: str  #: its definition, in a sentence
    unit: str  #: of its values
    needs: Needs  #: what it reads
    page: str  #: the name of the page that shows it, or empty
    compute: Callable[[Transformer, Given], Values]  #: its values by the name of the series, for a model and what it is given
    passes: Callable[[Config], int] = lambda _: 1  #: about how many passes through a model with this configuration it takes
    kinds: tuple[Kind, ...] = ("decoder", "classifier", "encoder-decoder")  #: the kinds of models that have it
    #: for some kinds, what is different there: its `title`, `about`, `unit` or `page`
    told: Mapping[Kind, Mapping[str, Any]] = field(default_factory=dict)

    def of(self, kind: Kind) -> Measure:
        """The measure as it is said of models of this kind."""
        return replace(self, **self.told.get(kind, {}))


def _losses(model: Transformer, given: Given) -> Values:
    return {name: loss(model, rows) for name, rows in given.rows.items()}


@torch.inference_mode()
def _right(model: Transformer, given: Given) -> Values:
    # By its likeliest tokens an encoder–decoder writes the answer of which each token is the likeliest after those before it.
    whole = model.config.kind == "encoder-decoder"

    def right(one: Rows) -> Tensor:
        counted = one.targets != NOT_COUNTED
        guessed = model(*one.reading).argmax(-1) == one.targets
        return (guessed | ~counted).all(-1) if whole else guessed[counted]

    return {name: float(torch.cat([right(one) for one in rows]).double().mean()) for name, rows in given.rows.items()}


def _waves(model: Transformer, given: Given) -> Values:
    assert given.clock is not None
    found = powers(model, given.clock)
    return dict(zip(found.axes[1].labels, found.values[-1].tolist(), strict=True))


def _by_position(model: Transformer, given: Given) -> Values:
    found = by_position(model, given.held_out)
    return dict(zip(found.axes[0].labels[1:], found.values[1:].tolist(), strict=True))  # the first is not guessed


def _switched_off(model: Transformer, given: Given) -> Values:
    (rows,) = given.rows.values()
    usual = loss(model, rows)
    each = loss_with_each(model, rows, [UnitEdit(unit) for unit in heads_and_mlps(model.config)])
    return {one.unit.name: value - usual for one, value in each}


def _attribution(model: Transformer, given: Given) -> Values:
    found = attribute(model, given.ids, given.token, None, given.against, given.source)
    return {part.name: part.value for part in found.parts}


def _circuit(model: Transformer, given: Given) -> Values:
    ids = torch.tensor(given.ids, device=model.embed.weight.device)
    usual = means(model, ids[None])
    last = len(ids) - 1
    own = circuit(model, ids, last, given.token, given.against, CIRCUIT_SHARE, usual=usual if last else None)
    return {"circuit": check(own, model, usual).share}


def _probability(model: Transformer, given: Given) -> Values:
    device = model.embed.weight.device
    source = None if given.source is None else torch.tensor([given.source], device=device)
    return {"probability": float(guess(model, Inputs(torch.tensor([given.ids], device=device), source))[given.token])}


def _similarity(model: Transformer, given: Given) -> Values:
    assert given.against is not None
    return {"cosine": cosine(vectors(model, "embedding"), given.token, given.against)}


def _vowels(model: Transformer, given: Given) -> Values:
    rows, vowels, consonants = vectors(model, "embedding"), given.kinds["vowel"], given.kinds["consonant"]
    return {"two vowels": mean_cosine(rows, vowels, vowels), "a vowel and a consonant": mean_cosine(rows, vowels, consonants)}


def _stream(model: Transformer, given: Given) -> Values:
    found = lengths(stream(model, given.ids, given.source), [""] * len(given.ids))
    return dict(zip(found.axes[0].labels, found.values[:, -1].tolist(), strict=True))


def _norms(model: Transformer, _: Given) -> Values:
    return {name: float(matrix.norm()) for name, matrix in matrices(model).items()}


def _ranks(model: Transformer, _: Given) -> Values:
    def rank(matrix: Tensor) -> float:
        values = torch.linalg.svdvals(matrix)
        return float(torch.special.entr(values / values.sum()).sum().exp())

    return {name: rank(matrix) for name, matrix in matrices(model).items()}


def _of_heads(name: str, score: Score) -> Measure:
    def compute(model: Transformer, given: Given) -> Values:
        source = None if given.source is None else torch.tensor(given.source, device=given.texts.device)
        rows = scores_of_model(model, given.texts, source, given.repeats)
        if name == "delta_loss":
            rows = with_losses(model, rows, given.texts, source, counted_from=given.counted_from)
        return {row["name"]: float("nan") if row.get(name) is None else row[name] for row in rows}

    unit = {"distance": "tokens", "delta_loss": "nats per token"}.get(name, "score")
    passes = (lambda config: sum(one.is_head for one in heads_and_mlps(config))) if name == "delta_loss" else (lambda _: 1)
    title = f"{score.title}, each head"
    # A classifier writes no tokens, and its loss needs the right label.
    kinds: tuple[Kind, ...] = GUESS_TOKENS if name in ("copying", "delta_loss") else tuple(MODEL_KINDS)
    return Measure(f"heads.{name}", title, score.about, unit, "texts for heads", "heads", compute, passes, kinds)


_NATS = "nats per token"
GUESS_TOKENS: tuple[Kind, ...] = ("decoder", "encoder-decoder")
DECODERS: tuple[Kind, ...] = ("decoder",)
_PER_TEXT: Mapping[Kind, Mapping[str, Any]] = {"classifier": {"unit": "nats per text"}}
MEASURES: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        Measure(
            "loss",
            "Loss",
            "The mean surprise at the right token, over data held out.",
            _NATS,
            "held-out data",
            "switch_off",
            _losses,
            told=_PER_TEXT,
        ),
        Measure(
            "loss.by_task",
            "Loss, each task",
            "The loss over data held out, for each of the tasks that it has learned.",
            _NATS,
            "tasks",
            "",
            _losses,
            kinds=DECODERS,
        ),
        Measure(
            "loss.by_position",
            "Loss, each position",
            "The loss of the tokens at each position of texts held out.",
            _NATS,
            "held-out texts",
            "context",
            _by_position,
            kinds=DECODERS,
        ),
        *(_of_heads(name, score) for name, score in SCORES.items()),
        Measure(
            "accuracy",
            "Right answers",
            "The share of the answers that are right: in data held out and, where there are few to learn from, in those learned.",
            "share",
            "answers",
            "",
            _right,
            told={
                "classifier": {
                    "about": "The share of texts that get the right label: of texts held out and, as many, of those learned."
                },
                "encoder-decoder": {
                    "about": "The share of answers that are right from their first token to their end: of data held out and, "
                    "where there are few to learn from, of those learned."
                },
            },
        ),
        Measure(
            "waves",
            "Waves of the logits, each frequency",
            "The share of each frequency in the logits of a model of sums on a clock: see the view Waves of Embeddings.",
            "share",
            "a clock",
            "embeddings",
            _waves,
            kinds=DECODERS,
        ),
        Measure(
            "switched_off",
            "Loss without each head and MLP",
            "How much the loss rises, over data held out, if what a part computes is replaced by zero.",
            _NATS,
            "held-out data",
            "switch_off",
            _switched_off,
            lambda config: 1 + len(heads_and_mlps(config)),
            told=_PER_TEXT,
        ),
        Measure(
            "attribution",
            "Attribution, each part",
            "What each head, MLP and bias adds to the logit of the token after the prompt, or to its difference from another.",
            "logit",
            "a token",
            "attribution",
            _attribution,
            told={
                "classifier": {
                    "about": "What each head, MLP and bias adds to the logit of a label, or to its difference from another."
                },
                "encoder-decoder": {
                    "about": "What each head, MLP and bias of the decoder adds to the logit of the first token of the answer, or "
                    "to its difference from another."
                },
            },
        ),
        Measure(
            "circuit.share",
            "Share of the circuit",
            "The share of the logit, or of the difference of two, that is left if all outside the circuit found at this step "
            "writes its mean.",
            "share",
            "a token",
            "circuit",
            _circuit,
            lambda _: 20,
            kinds=DECODERS,
        ),
        Measure(
            "probability",
            "Probability of the token",
            "How likely the token is to come after the prompt.",
            "probability",
            "a token",
            "next_token",
            _probability,
            told={
                "classifier": {
                    "title": "Probability of the label",
                    "about": "How likely the label is for the prompt.",
                    "page": "classify",
                },
                "encoder-decoder": {"about": "How likely the answer is to begin with the token.", "page": "translate"},
            },
        ),
        Measure(
            "similarity",
            "Similarity of two tokens",
            "The cosine between the embeddings of two tokens: 1 the same direction, 0 at right angles, −1 the opposite.",
            "cosine",
            "two tokens",
            "embeddings",
            _similarity,
        ),
        Measure(
            "similarity.vowels",
            "Similarity of vowels",
            "The mean cosine between the embeddings of two vowels, and between those of a vowel and a consonant.",
            "cosine",
            "vowels",
            "embeddings",
            _vowels,
        ),
        Measure(
            "stream.length",
            "Length of the stream, each layer",
            "How long the vector of the last token of the prompt is after each layer.",
            "length",
            "a prompt",
            "stream",
            _stream,
            kinds=GUESS_TOKENS,
            told={
                "encoder-decoder": {
                    "about": "How long the vector of the last token of the answer is after each layer of the decoder."
                }
            },
        ),
        Measure(
            "weights.norm",
            "Norm, each matrix",
            "The size of each matrix of weights: the root of the sum of the squares of its numbers.",
            "norm",
            "weights",
            "",
            _norms,
        ),
        Measure(
            "weights.rank",
            "Rank, each matrix",
            "In how many directions a matrix of weights really works, its effective rank: e to the power of the entropy of its "
            "singular values, each divided by their sum.",
            "directions",
            "weights",
            "",
            _ranks,
        ),
    )
}
"""The measures by name."""


def measure_named(name: str, kind: Kind = "decoder") -> Measure:
    """The measure of this name, as it is said of models of this kind.

    Raises:
        ValueError: there is none, or none for this kind; the message names those that there are.
    """
    if name not in MEASURES:
        raise ValueError(f"there is no measure {name!r:.60}{instead(name, MEASURES)}")
    if kind not in MEASURES[name].kinds:
        having = " or ".join(MODEL_KINDS[one].with_article for one in MEASURES[name].kinds)
        raise ValueError(f"{MODEL_KINDS[kind].with_article} has no measure {name}: it is one of {having}")
    return MEASURES[name].of(kind)
