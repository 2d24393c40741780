"""Texts with labels as a source: split by a seed, read as words, each batch as wide as its longest
text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from gptviz.model import Config, Transformer
from gptviz.model.kinds import MODEL_KINDS, Kind
from gptviz.text import (
    GENERATED,
    LabelledTexts,
    Tokenizer,
    WordTokenizer,
    label_order,
    labelled_of,
    read_labelled,
    recall,
    words_of,
)
from gptviz.text.datasets.corpora import check_fraction

from .baseline import baseline
from .batches import EVALUATION_TOKENS, Batch, Data, spread, spread_evenly
from .source import EvaluationData, Share, SplitSource, first_of

# Every evaluation reads all the held-out texts: this many are enough.
MOST_HELD_OUT_TEXTS = 10_000
SAMPLE_TEXTS = 4
SAMPLE_CHARACTERS = 120  # of each text


@dataclass(frozen=True)
class LabelledSource(SplitSource[LabelledTexts]):
    """Texts with labels: for each label, `fraction` of the texts, drawn by `seed`, is to train on;
    the others are held out.

    Texts that are equal are either all trained on or all held out.
    """

    kind: ClassVar = "labelled"
    model_kind: ClassVar[Kind] = "classifier"
    tokenizer_kinds: ClassVar = ("words",)
    unit: ClassVar = "text"
    usually_lacking: ClassVar = 0.2  # rare words
    read = staticmethod(read_labelled)
    parse = staticmethod(labelled_of)

    labelled: LabelledTexts = field(hash=False)
    fraction: float = 0.9
    seed: int = 0

    @property
    def rows(self) -> LabelledTexts:
        return self.labelled

    def new_split(self) -> tuple[LabelledTexts, LabelledTexts]:
        """See `split`; at most `MOST_HELD_OUT_TEXTS` texts are held out."""
        check_fraction(self.fraction)
        training, held_out = _split_rows(
            self.labelled, self.fraction, np.random.default_rng(self.seed)
        )
        if not held_out:
            raise ValueError(
                f"{self.title} has one text of each label, not counting copies: there must be "
                "more, so that some can be held out"
            )
        return self.labelled.select_rows(training), self.labelled.select_rows(held_out)

    def excerpts(self) -> Sequence[str]:
        return first_of(self.split()[0].texts)

    @property
    def example(self) -> str | None:
        """The first text held out that has a word in it, or None if none has."""
        return next((text for text in self.split()[1].texts if words_of(text)), None)

    def tokenizer(self, kind: str, vocab_size: int) -> Tokenizer:
        """The most frequent words of the texts to train on."""
        return WordTokenizer.learn(self.split()[0].texts, vocab_size)

    def fit_config(self, config: Config, tokenizer: Tokenizer) -> Config:
        if config.kind != "classifier":
            raise ValueError(
                f"{self.title} has texts with labels: train a classifier on it, not a model that "
                f"is {MODEL_KINDS[config.kind].with_article}"
            )
        names = self.labelled.names
        ordered = label_order(names) == tuple(range(len(names)))
        return replace(super().fit_config(config, tokenizer), n_label=len(names), ordered=ordered)

    def data(self, tokenizer: Tokenizer, config: Config) -> Data:
        if config.kind != "classifier" or config.n_label != len(self.labelled.names):
            raise ValueError(
                f"{self.title} has texts with {len(self.labelled.names)} labels: train a "
                "classifier with as many labels"
            )
        return _TextData(tokenizer, *self.split(), config)

    def evaluation(
        self,
        model: Transformer,
        tokenizer: Tokenizer,
        *,
        everything: bool = False,
        labels: Sequence[str] = (),
    ) -> EvaluationData:
        """The texts held out, or all of them; for those held out, how often the baseline is
        right.
        """
        if model.config.kind != "classifier":
            raise ValueError(f"the model is not a classifier: give a text instead of {self.title}")
        training, held_out = self.split()
        texts = self.labelled if everything else held_out
        shares: tuple[Share, ...] = ()
        if not everything:
            words = "words counted and weighed (TF-IDF and logistic regression): accuracy"
            shares = (Share("baseline_accuracy", words, baseline(training, held_out).accuracy),)
        named = texts.renumber_labels(labels or self.labelled.names)
        return EvaluationData(
            batches(tokenizer, named, model.config.context_length, model.config.padding),
            shares=shares,
        )

    def facts(self) -> dict[str, int]:
        """Its texts, those of each label, and how they are split."""
        training, held_out = self.split()
        of_label = {
            f"labelled {name}": self.labelled.labels.count(label)
            for label, name in enumerate(self.labelled.names)
        }
        return {
            "texts": len(self.labelled),
            **of_label,
            "texts to train on": len(training),
            "texts held out": len(held_out),
        }

    @property
    def label_names(self) -> Sequence[str]:
        return self.labelled.names

    def tokens_to_count(self, data: Data, tokenizer: Tokenizer) -> tuple[Tensor, str]:
        """The words of all texts to train on, as far as the model reads them."""
        assert isinstance(data, _TextData)
        ids = data.rows.inputs[0]
        return ids[ids != data.padding], "the texts to train on"

    def tokens(self, config: Config) -> int:
        """The context: longer texts are cut."""
        return config.context_length

    def sample(self, model: Transformer, tokenizer: Tokenizer, data: Data) -> str:
        """How the model labels the first held-out text of each label."""
        held_out = self.split()[1]
        first = {label: row for row, label in reversed(list(enumerate(held_out.labels)))}
        rows = [first[label] for label in sorted(first)][:SAMPLE_TEXTS]
        ids = pad_texts(
            tokenizer,
            [held_out.texts[row] for row in rows],
            model.config.context_length,
            model.config.padding,
        )
        with torch.inference_mode():
            # [rows, n_label]
            probabilities = model(ids.to(model.embed.weight.device)).float().softmax(-1).cpu()
        return "\n".join(
            f"{self.labelled.names[int(of_labels.argmax())]} {of_labels.max():.0%} "
            f"({self.labelled.names[held_out.labels[row]]}): "
            f"{' '.join(held_out.texts[row].split())[:SAMPLE_CHARACTERS]}"
            for row, of_labels in zip(rows, probabilities, strict=True)
        )

    def measure_model(
        self, model: Transformer, tokenizer: Tokenizer, data: Data, rows: int | None = None
    ) -> dict[str, Any]:
        """The model's confusion matrix over the held-out texts: a row for each right label, a
        column for each predicted one.
        """
        n = len(self.labelled.names)
        counts = torch.zeros(n * n, dtype=torch.long)
        with torch.inference_mode():
            for batch in data.validation() if rows is None else spread(data.validation(), rows):
                predicted = model(batch.inputs[0].to(model.embed.weight.device)).argmax(-1).cpu()
                counts += torch.bincount(batch.targets * n + predicted, minlength=n * n)
        return {"confusion": counts.view(n, n).tolist()}

    def origin(self) -> dict[str, Any]:
        """The texts, their labels, how they are split, and how often the baseline is right on those
        held out.
        """
        training, held_out = self.split()
        if len(training) + len(held_out) == len(self.labelled):
            rest = "the rest"
        else:
            rest = f"{len(held_out):,} of the rest"
        return {
            "corpus": self.labelled.name,
            "corpus_sha256": self.labelled.sha256,
            "labels": list(self.labelled.names),
            "split": f"for each label {self.fraction:.0%} of the texts, drawn by seed {self.seed}, "
            f"to train, {rest} to validate",
            "texts": {"training": len(training), "held_out": len(held_out)},
            "baseline_accuracy": baseline(training, held_out).accuracy,
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> LabelledSource:
        name = content["labelled"]
        sha256 = content["sha256"]
        labelled = GENERATED[name]() if name in GENERATED else None
        if labelled is None or labelled.sha256 != sha256:
            labelled = LabelledTexts.from_canonical(name, recall(name, sha256).text)
        return cls(labelled, float(content.get("fraction", 0.9)), int(content.get("seed", 0)))


def _split_rows(
    labelled: LabelledTexts, fraction: float, rng: np.random.Generator
) -> tuple[list[int], list[int]]:
    """The rows to train on and those held out.

    For each label, `fraction` of the texts is trained on, but at least one text is in each part if
    the label has two. If texts are equal, only the first of them is drawn, by its label; the others
    go into the same part.
    """
    firsts: dict[str, int] = {}
    first = np.array(
        [firsts.setdefault(text.strip(), row) for row, text in enumerate(labelled.texts)]
    )
    labels = np.asarray(labelled.labels)
    chosen = np.zeros(len(first), bool)
    for label in np.unique(labels):
        rows = rng.permutation(np.flatnonzero((labels == label) & (first == np.arange(len(first)))))
        chosen[rows[: max(1, min(round(fraction * len(rows)), len(rows) - 1))]] = True
    training, held_out = (np.flatnonzero(part[first]) for part in (chosen, ~chosen))
    if len(held_out) > MOST_HELD_OUT_TEXTS:
        held_out = np.sort(rng.choice(held_out, MOST_HELD_OUT_TEXTS, replace=False))
    return training.tolist(), held_out.tolist()


def pad_texts(
    tokenizer: Tokenizer, texts: Sequence[str], context: int, padding: int | None = None
) -> Tensor:
    """The ids of texts [N, the longest], the first `context` of each, filled up with padding.

    A text without any word is read as one unknown word, because a model has to read something.
    `padding` is the model's token to fill up with, by default the tokenizer's; a ValueError if
    there is neither.
    """
    padding = _padding(tokenizer) if padding is None else padding
    instead = 0 if tokenizer.unknown_id is None else tokenizer.unknown_id
    rows = [
        tokenizer.beginning(tokenizer.encode_ids(text).tolist(), context) or [instead]
        for text in texts
    ]
    ids = np.full((len(rows), max(map(len, rows), default=1)), padding, np.int64)
    for row, of_text in zip(ids, rows, strict=True):
        row[: len(of_text)] = of_text
    return torch.from_numpy(ids)


def _padding(tokenizer: Tokenizer) -> int:
    """The token that fills up shorter texts."""
    if tokenizer.padding is None:
        return _words(tokenizer).padding
    return tokenizer.padding


def _words(tokenizer: Tokenizer) -> WordTokenizer:
    if not isinstance(tokenizer, WordTokenizer):
        raise ValueError(
            f"texts with labels are read word by word, but these tokens are {tokenizer.kind}: "
            "learn words instead"
        )
    return tokenizer


class _TextData:
    """Texts to train on, drawn at random, and texts to validate with."""

    def __init__(
        self, tokenizer: Tokenizer, training: LabelledTexts, held_out: LabelledTexts, config: Config
    ) -> None:
        self.padding = _words(tokenizer).padding
        self.rows = _rows(tokenizer, training, config.context_length, self.padding)
        self.held_out = _rows(tokenizer, held_out, config.context_length, self.padding)
        self.token_dropout = config.token_dropout

    def training(self, size: int, seed: int) -> Batch:
        """Texts drawn at random, each without a share of its words if the config has
        `token_dropout`.
        """
        generator = torch.Generator().manual_seed(seed)
        rows = torch.randint(len(self.rows.targets), (size,), generator=generator)
        ids = self.rows.inputs[0][rows]
        if self.token_dropout:
            ids = without_some(ids, self.token_dropout, self.padding, generator)
        return _narrow_batch(Batch((ids,), self.rows.targets[rows]), self.padding)

    def validation(self) -> Iterator[Batch]:
        """All texts held out, in their order."""
        return _in_order(self.held_out, self.padding)

    def trained_on(self) -> Iterator[Batch]:
        """Some of the texts trained on, evenly spread over them: as many as are held out."""
        some = torch.tensor(spread_evenly(len(self.held_out.targets), len(self.rows.targets)))
        return _in_order(Batch((self.rows.inputs[0][some],), self.rows.targets[some]), self.padding)


def without_some(ids: Tensor, share: float, padding: int, generator: torch.Generator) -> Tensor:
    """The texts `ids` [N, T] without a random `share` of their tokens, but one at least; those left
    move together, in order.
    """
    gone = (torch.rand(ids.shape, generator=generator) < share) | (ids == padding)
    gone[:, 0] &= ~gone.all(1)
    return ids.masked_fill(gone, padding).gather(1, gone.byte().argsort(dim=1, stable=True))


def batches(
    tokenizer: Tokenizer, labelled: LabelledTexts, context: int, padding: int | None = None
) -> Iterator[Batch]:
    """All these texts in their order, padded, about `EVALUATION_TOKENS` tokens at a time."""
    padding = _padding(tokenizer) if padding is None else padding
    return _in_order(_rows(tokenizer, labelled, context, padding), padding)


def _rows(tokenizer: Tokenizer, labelled: LabelledTexts, context: int, padding: int) -> Batch:
    """All these texts as one batch."""
    return Batch(
        (pad_texts(tokenizer, labelled.texts, context, padding),), torch.tensor(labelled.labels)
    )


def _in_order(batch: Batch, padding: int) -> Iterator[Batch]:
    n_rows = max(EVALUATION_TOKENS // batch.inputs[0].shape[1], 1)
    for start in range(0, len(batch.targets), n_rows):
        yield _narrow_batch(batch.rows(slice(start, start + n_rows)), padding)


def _narrow_batch(batch: Batch, padding: int) -> Batch:
    """The batch cut to the width of its longest text."""
    ids = batch.inputs[0]  # [B, T]
    return Batch((ids[:, : int((ids != padding).sum(1).max())],), batch.targets)
