"""Texts with labels as a source: split by a seed, read as words, a batch filled up to its longest text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gptviz.model import Config, Transformer
from gptviz.text import Corpus, LabelledTexts, Tokenizer, WordTokenizer, opinions, recall, remember

from .baseline import baseline
from .batches import EVALUATION_TOKENS, Batch, Data
from .source import Source

# Every evaluation reads all that is held out: so many texts tell enough.
MOST_HELD_OUT = 10_000
SHOWN = 120  # characters of a text in a sample


@dataclass(frozen=True)
class LabelledSource(Source):
    """Texts with labels: of each label, `fraction` of the texts, drawn by `seed`, to train on, the others held out.

    Equal texts are on one side.
    """

    labelled: LabelledTexts = field(hash=False)
    fraction: float = 0.9
    seed: int = 0

    def split(self) -> tuple[LabelledTexts, LabelledTexts]:
        """The texts to train on and those held out, at most `MOST_HELD_OUT` of them, each in their order. Asked again, the same.

        Raises:
            ValueError: one of the two would be empty, or the fraction is not between 0 and 1.
        """
        return _split(self)

    @property
    def title(self) -> str:
        """What it is called."""
        return self.labelled.name

    def tokenizer(self, kind: str, vocab_size: int) -> Tokenizer:
        """The most frequent words of the texts to train on."""
        return WordTokenizer.learn(self.split()[0].texts, vocab_size)

    def fitted(self, config: Config, tokenizer: Tokenizer) -> Config:
        """`config` with the sizes that the words and the labels decide.

        Raises:
            ValueError: it is no classifier's.
        """
        if config.kind != "classifier":
            raise ValueError(f"{self.title} has texts with labels: train a classifier on it, not a model that is a {config.kind}")
        return replace(super().fitted(config, tokenizer), n_label=len(self.labelled.names))

    def data(self, tokenizer: Tokenizer, config: Config) -> Data:
        """The texts as batches for a model of this config.

        Raises:
            ValueError: the model is no classifier of as many labels, the tokens are no words, or there are too few texts.
        """
        if config.kind != "classifier" or config.n_label != len(self.labelled.names):
            raise ValueError(
                f"{self.title} has texts with {len(self.labelled.names)} labels: train a classifier that tells as many apart"
            )
        return _Texts(tokenizer, *self.split(), config.context_length)

    def tokens(self, config: Config) -> int:
        """The context: what is longer is cut."""
        return config.context_length

    def sample(self, model: Transformer, tokenizer: Tokenizer, data: Data) -> str:
        """What it makes of the first text held out of each label."""
        held_out = self.split()[1]
        first = {label: row for row, label in reversed(list(enumerate(held_out.labels)))}
        rows = [first[label] for label in sorted(first)][:4]
        ids = padded(tokenizer, [held_out.texts[row] for row in rows], model.config.context_length)
        with torch.inference_mode():
            found = model(ids.to(model.embed.weight.device)).float().softmax(-1).cpu()  # [rows, n_label]
        return "\n".join(
            f"{self.labelled.names[int(each.argmax())]} {each.max():.0%} "
            f"({self.labelled.names[held_out.labels[row]]}): {' '.join(held_out.texts[row].split())[:SHOWN]}"
            for row, each in zip(rows, found, strict=True)
        )

    def measured(self, model: Transformer, tokenizer: Tokenizer, data: Data) -> dict[str, Any]:
        """Its confusion: of the texts held out of each label, a row each, how many it took for which."""
        n = len(self.labelled.names)
        counts = torch.zeros(n * n, dtype=torch.long)
        with torch.inference_mode():
            for batch in data.validation():
                predicted = model(batch.inputs[0].to(model.embed.weight.device)).argmax(-1).cpu()
                counts += torch.bincount(batch.targets * n + predicted, minlength=n * n)
        return {"confusion": counts.view(n, n).tolist()}

    def origin(self) -> dict[str, Any]:
        """The texts, their labels, how they are split, and how often the baseline is right on those held out."""
        training, held_out = self.split()
        rest = "the rest" if len(training) + len(held_out) == len(self.labelled) else f"{len(held_out):,} of the rest"
        return {
            "corpus": self.labelled.name,
            "corpus_sha256": self.labelled.sha256,
            "labels": list(self.labelled.names),
            "split": f"of each label {self.fraction:.0%} of the texts, drawn by seed {self.seed}, to train, {rest} to validate",
            "texts": {"training": len(training), "held_out": len(held_out)},
            "baseline_accuracy": baseline(training, held_out).accuracy,
        }

    def keep(self) -> None:
        """Keep a copy of the texts, for `from_dict`."""
        remember(Corpus(self.labelled.name, self.labelled.canonical))

    def to_dict(self) -> dict[str, Any]:
        """JSON values that `from_dict` understands: name and SHA-256, not the texts."""
        return {
            "labelled": self.labelled.name,
            "sha256": self.labelled.sha256,
            "fraction": self.fraction,
            "seed": self.seed,
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> LabelledSource:
        """The source that `to_dict` wrote down.

        Raises:
            ValueError: it names no source.
            CorpusUnavailableError: the texts are not here any more.
        """
        name, sha256 = content["labelled"], content["sha256"]
        known = opinions() if name == "opinions" else None
        if known is None or known.sha256 != sha256:
            known = LabelledTexts.from_canonical(name, recall(name, sha256).text)
        return cls(known, float(content.get("fraction", 0.9)), int(content.get("seed", 0)))


@lru_cache(maxsize=4)
def _split(source: LabelledSource) -> tuple[LabelledTexts, LabelledTexts]:
    if not 0 < source.fraction < 1:
        raise ValueError(f"the training fraction must lie between 0 and 1, not {source.fraction}")
    training, held_out = _split_rows(source.labelled, source.fraction, np.random.default_rng(source.seed))
    if not held_out:
        raise ValueError(f"{source.title} has one text of each label, copies not counted: to hold some out there must be more")
    return source.labelled.only(training), source.labelled.only(held_out)


def _split_rows(labelled: LabelledTexts, fraction: float, rng: np.random.Generator) -> tuple[list[int], list[int]]:
    """The rows to train on and those held out: of each label its share, but at least one text in each part, if there are two.

    Of equal texts the first is drawn, by its label, and the others go with it.
    """
    firsts: dict[str, int] = {}
    first = np.array([firsts.setdefault(text.strip(), row) for row, text in enumerate(labelled.texts)])
    labels = np.asarray(labelled.labels)
    chosen = np.zeros(len(first), bool)
    for label in np.unique(labels):
        rows = rng.permutation(np.flatnonzero((labels == label) & (first == np.arange(len(first)))))
        chosen[rows[: max(1, min(round(fraction * len(rows)), len(rows) - 1))]] = True
    training, held_out = (np.flatnonzero(part[first]) for part in (chosen, ~chosen))
    if len(held_out) > MOST_HELD_OUT:
        held_out = np.sort(rng.choice(held_out, MOST_HELD_OUT, replace=False))
    return training.tolist(), held_out.tolist()


def padded(tokenizer: Tokenizer, texts: Sequence[str], context: int) -> Tensor:
    """The ids of texts [N, the longest], the first `context` of each, filled up with padding.

    A text without any word is read as one unknown word, as a model has to read something.

    Raises:
        ValueError: the tokens are no words.
    """
    words = _words(tokenizer)
    rows = [words.encode_ids(text)[:context] for text in texts]
    ids = np.full((len(rows), max(map(len, rows), default=0) or 1), words.padding, np.int64)
    for row, found in zip(ids, rows, strict=True):
        row[: len(found) or 1] = found if len(found) else words.unknown
    return torch.from_numpy(ids)


def _words(tokenizer: Tokenizer) -> WordTokenizer:
    if not isinstance(tokenizer, WordTokenizer):
        raise ValueError(f"texts with labels are read word by word, and these tokens are {tokenizer.kind}: learn words instead")
    return tokenizer


class _Texts:
    """Texts to train on, drawn at random, and texts to validate with."""

    def __init__(self, tokenizer: Tokenizer, training: LabelledTexts, held_out: LabelledTexts, context: int) -> None:
        self.known = _rows(tokenizer, training, context)
        self.held_out = _rows(tokenizer, held_out, context)
        self.padding = _words(tokenizer).padding

    def training(self, size: int, seed: int) -> Batch:
        """Texts drawn at random."""
        rows = torch.randint(len(self.known.targets), (size,), generator=torch.Generator().manual_seed(seed))
        return _narrowed(Batch((self.known.inputs[0][rows],), self.known.targets[rows]), self.padding)

    def validation(self) -> Iterator[Batch]:
        """All that are held out, in their order."""
        return _in_order(self.held_out, self.padding)


def batches(tokenizer: Tokenizer, labelled: LabelledTexts, context: int) -> Iterator[Batch]:
    """All these texts in their order, at most `context` words of each, some at a time.

    Raises:
        ValueError: the tokens are no words.
    """
    return _in_order(_rows(tokenizer, labelled, context), _words(tokenizer).padding)


def _rows(tokenizer: Tokenizer, labelled: LabelledTexts, context: int) -> Batch:
    """All these texts as one batch."""
    return Batch((padded(tokenizer, labelled.texts, context),), torch.tensor(labelled.labels))


def _in_order(batch: Batch, padding: int) -> Iterator[Batch]:
    at_a_time = max(EVALUATION_TOKENS // batch.inputs[0].shape[1], 1)
    for start in range(0, len(batch.targets), at_a_time):
        yield _narrowed(batch.rows(slice(start, start + at_a_time)), padding)


def _narrowed(batch: Batch, padding: int) -> Batch:
    """The batch as wide as its longest text."""
    ids = batch.inputs[0]  # [B, T]
    return Batch((ids[:, : int((ids != padding).sum(1).max())],), batch.targets)
