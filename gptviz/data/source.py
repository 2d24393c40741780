"""Sources: where a run's data comes from, written down so that the run can be resumed and its model evaluated later."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from gptviz.generate.generation import Generation
from gptviz.generate.sampling import Sampling
from gptviz.model import Config, Transformer
from gptviz.text import (
    PAIR_TASKS,
    TASKS,
    BPETokenizer,
    CharTokenizer,
    Corpus,
    Task,
    Tokenizer,
    corpora,
    opinions,
    recall,
    remember,
    task,
)

from .batches import NOT_COUNTED, Data, Generated, Windows

# Every evaluation reads all that is held out: of a long text, so many tokens tell enough.
MOST_HELD_OUT = 1_000_000
SAMPLE = 200  # tokens


class Source(ABC):
    """Where data comes from: what a run asks of it."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What it is called."""

    @property
    def floor(self) -> float | None:
        """The loss that no model can beat, in nats per prediction; None where nobody knows."""
        return None

    @property
    def has_places(self) -> bool:
        """Whether every row is alike, so that the accuracy at each place in it means something."""
        return False

    @abstractmethod
    def tokenizer(self, kind: str, vocab_size: int) -> Tokenizer:
        """The tokenizer it brings, or one of this `kind` learned on it, of `vocab_size` tokens where that can be chosen."""

    def fitted(self, config: Config, tokenizer: Tokenizer) -> Config:
        """`config` with the sizes that the data and its tokens decide."""
        return replace(config, vocab_size=tokenizer.vocab_size, padding=tokenizer.padding)

    @abstractmethod
    def data(self, tokenizer: Tokenizer, config: Config) -> Data:
        """Its batches for a model of this config.

        Raises:
            ValueError: they do not go together; the message says what to change.
        """

    @abstractmethod
    def tokens(self, config: Config) -> int:
        """How many tokens a row of its batches has, at most."""

    @abstractmethod
    def sample(self, model: Transformer, tokenizer: Tokenizer, data: Data) -> str:
        """What the model, in evaluation mode, now makes of something held out, as text."""

    def measured(self, model: Transformer, tokenizer: Tokenizer, data: Data) -> dict[str, Any]:
        """What a card says of the model, in evaluation mode, beside its loss and accuracy: JSON values.

        Those that are numbers are also noted at every evaluation.
        """
        return {}

    @abstractmethod
    def origin(self) -> dict[str, Any]:
        """What a card says about it."""

    @abstractmethod
    def keep(self) -> None:
        """Keep a copy of whatever `source_from` will need."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """JSON values that `source_from` understands."""


def _written(model: Transformer, tokenizer: Tokenizer, prompt: Tensor, more: int, sampling: Sampling) -> str:
    """The prompt [T] and the `more` tokens that follow it."""
    grown = Generation(model, prompt.to(model.embed.weight.device), sampling)
    return tokenizer.decode([*prompt.tolist(), *(int(step.tokens[0]) for step in islice(grown, more))])


def check_decoder(source: Source, config: Config) -> None:
    """That a model of this config goes on with texts.

    Raises:
        ValueError: it is a classifier or an encoder–decoder.
    """
    if config.kind == "classifier":
        raise ValueError(f"{source.title} has no labels to tell apart: give a CSV file with the columns text and label")
    if config.kind != "decoder":
        raise ValueError(f"{source.title} has no sources and answers, which an {config.kind} learns from: take a decoder")


@dataclass(frozen=True)
class TextSource(Source):
    """A text; its first part is trained on, the rest validates."""

    corpus: Corpus
    fraction: float = 0.9

    def data(self, tokenizer: Tokenizer, config: Config) -> Data:
        """The text as batches for a model of this config.

        Raises:
            ValueError: it is too short, or the model does not go on with texts.
        """
        check_decoder(self, config)
        training = torch.from_numpy(tokenizer.encode_ids(self.corpus.split(self.fraction)[0]))
        return Windows(training, self.held_out(tokenizer), config.context_length)

    def held_out(self, tokenizer: Tokenizer) -> Tensor:
        """The ids of the text that validates, at most `MOST_HELD_OUT` of them."""
        text = self.corpus.split(self.fraction)[1]
        # No token is made of more than some characters; of a text of gigabytes only the beginning is read.
        return torch.from_numpy(tokenizer.encode_ids(text[: 16 * MOST_HELD_OUT])[:MOST_HELD_OUT])

    def tokenizer(self, kind: str, vocab_size: int) -> Tokenizer:
        """Learned on the whole text."""
        if kind == BPETokenizer.kind:
            return BPETokenizer.learn(self.corpus.text, vocab_size)
        return CharTokenizer.from_text(self.corpus.text)

    def tokens(self, config: Config) -> int:
        """The context."""
        return config.context_length

    def sample(self, model: Transformer, tokenizer: Tokenizer, data: Data) -> str:
        """What it writes after the first token of the text held out."""
        row = next(iter(data.validation())).inputs[0][0]
        return _written(model, tokenizer, row[:1], SAMPLE, Sampling())

    @property
    def title(self) -> str:
        """What it is called."""
        return self.corpus.name

    def origin(self) -> dict[str, Any]:
        """The text, and how it is split."""
        split = f"first {self.fraction:.0%} of the characters to train, the rest to validate"
        return {"corpus": self.corpus.name, "corpus_sha256": self.corpus.sha256, "split": split}

    def keep(self) -> None:
        """Keep a copy of the text, for `source_from`."""
        remember(self.corpus)

    def to_dict(self) -> dict[str, Any]:
        """JSON values that `source_from` understands: the text's name and SHA-256, not the text."""
        return {"corpus": self.corpus.name, "sha256": self.corpus.sha256, "fraction": self.fraction}


@dataclass(frozen=True)
class TaskSource(Source):
    """A task that generates its data."""

    task: Task = field(hash=False)

    def data(self, tokenizer: Tokenizer, config: Config) -> Data:
        """The task as batches for a model of this config.

        Raises:
            ValueError: its sequences do not fit in the context, the tokens are not its own, or the model does not go on with
                texts.
        """
        check_decoder(self, config)
        if tokenizer.to_json() != self.task.tokenizer.to_json():
            raise ValueError(f"{self.task.name} has tokens of its own: take a model trained on it, or a text instead of the task")
        if config.context_length < self.task.length - 1:
            raise ValueError(
                f"context_length is {config.context_length}; a sequence of {self.task.name} needs {self.task.length - 1} or more"
            )
        return Generated(self.task)

    @property
    def floor(self) -> float:
        """The loss that no model can beat, in nats per token."""
        return self.task.floor

    @property
    def has_places(self) -> bool:
        """Every sequence of a task has the same shape."""
        return True

    @property
    def title(self) -> str:
        """What it is called."""
        return self.task.name

    def tokenizer(self, kind: str, vocab_size: int) -> Tokenizer:
        """The task's own."""
        return self.task.tokenizer

    def tokens(self, config: Config) -> int:
        """The task's own length."""
        return self.task.length - 1

    def sample(self, model: Transformer, tokenizer: Tokenizer, data: Data) -> str:
        """What it makes of what is given of the first sequence held out, the likeliest token each time."""
        batch = next(iter(data.validation()))
        first = int((batch.targets[0] != NOT_COUNTED).nonzero()[0])
        given = max(first + 1, self.task.length // 2)
        return _written(model, tokenizer, batch.inputs[0][0][:given], self.task.length - given, Sampling(temperature=0))

    def origin(self) -> dict[str, Any]:
        """The task, and what no model can beat."""
        return {"task": self.task.name, "floor": self.floor}

    def keep(self) -> None:
        """Nothing needs to be kept."""

    def to_dict(self) -> dict[str, Any]:
        """JSON values that `source_from` understands."""
        return {"task": self.task.name, "settings": self.task.settings()}


def source_named(name: str, fraction: float = 0.9) -> Source:
    """The task, of sequences or of pairs, or the corpus called `name`, or "opinions", texts with labels.

    Raises:
        ValueError: there is none; the message names those there are.
        CorpusUnavailableError: it is not to be had now.
    """
    from .classification import LabelledSource
    from .seq2seq import PairTaskSource

    if name in TASKS:
        return TaskSource(task(name))
    if name in PAIR_TASKS:
        return PairTaskSource(PAIR_TASKS[name])
    if name == "opinions":
        return LabelledSource(opinions(), fraction)
    offers = {offer.name: offer for offer in corpora()}
    if name not in offers:
        raise ValueError(
            f"no data named {name[:80]!r}; there are the texts {', '.join(offers)}, the texts with labels opinions "
            f"and the tasks {', '.join((*TASKS, *PAIR_TASKS))}"
        )
    return TextSource(offers[name].open(), fraction)


def source_from(content: dict[str, Any]) -> Source:
    """The source that `to_dict` wrote down.

    Raises:
        ValueError: it names no source.
        CorpusUnavailableError: the text is not here any more.
    """
    from .classification import LabelledSource
    from .seq2seq import PairSource, PairTaskSource

    try:
        if "labelled" in content:
            return LabelledSource.from_dict(content)
        if "pair_task" in content:
            return PairTaskSource.from_dict(content)
        if "pairs" in content:
            return PairSource.from_dict(content)
        if "task" in content:
            return TaskSource(task(content["task"], **content.get("settings", {})))
        return TextSource(recall(content["corpus"], content["sha256"]), float(content.get("fraction", 0.9)))
    except (AttributeError, KeyError, OverflowError, TypeError) as error:
        raise ValueError(f"it is not written down what the model learned from ({error})") from None
