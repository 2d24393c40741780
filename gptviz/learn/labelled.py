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
from .data import Batch, Data
from .sources import Source

SHOWN = 120  # characters of a text in a sample


@dataclass(frozen=True)
class LabelledSource(Source):
    """Texts with labels: of each label, `fraction` of the texts, drawn by `seed`, to train on, the others held out."""

    labelled: LabelledTexts = field(hash=False)
    fraction: float = 0.9
    seed: int = 0

    def split(self) -> tuple[LabelledTexts, LabelledTexts]:
        """The texts to train on and those held out, each in their order.

        Raises:
            ValueError: one of the two would be empty, or the fraction is not between 0 and 1.
        """
        return _split(self.labelled, self.fraction, self.seed)

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

    def origin(self) -> dict[str, Any]:
        """The texts, their labels, how they are split, and how often the baseline is right on those held out."""
        training, held_out = self.split()
        return {
            "corpus": self.labelled.name,
            "corpus_sha256": self.labelled.sha256,
            "labels": list(self.labelled.names),
            "split": f"of each label {self.fraction:.0%} of the texts, drawn by seed {self.seed}, to train, the rest to validate",
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
def _split_rows(labels: tuple[int, ...], fraction: float, seed: int) -> tuple[list[int], list[int]]:
    """The rows to train on and those held out: of each label its share, but at least one text in each part, if there are two."""
    rng = np.random.default_rng(seed)
    of = np.asarray(labels)
    training: list[int] = []
    for label in np.unique(of):
        rows = rng.permutation(np.flatnonzero(of == label))
        training += rows[: max(1, min(round(fraction * len(rows)), len(rows) - 1))].tolist()
    return sorted(training), sorted(set(range(len(of))) - set(training))


def _split(labelled: LabelledTexts, fraction: float, seed: int) -> tuple[LabelledTexts, LabelledTexts]:
    if not 0 < fraction < 1:
        raise ValueError(f"the training fraction must lie between 0 and 1, not {fraction}")
    training, held_out = _split_rows(labelled.labels, fraction, seed)
    if not held_out:
        raise ValueError(f"{labelled.name} has one text of each label: to hold some out there must be more")
    return labelled.only(training), labelled.only(held_out)


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
    at_a_time = max(8_192 // batch.inputs[0].shape[1], 1)
    for start in range(0, len(batch.targets), at_a_time):
        yield _narrowed(batch.rows(slice(start, start + at_a_time)), padding)


def _narrowed(batch: Batch, padding: int) -> Batch:
    """The batch as wide as its longest text."""
    ids = batch.inputs[0]  # [B, T]
    return Batch((ids[:, : int((ids != padding).sum(1).max())],), batch.targets)
