"""Sources: where a run's data comes from, written down so that the run can be resumed and its model evaluated later."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from gptviz.model import Config
from gptviz.text import TASKS, Corpus, Task, Tokenizer, corpora, recall, remember, task

from .data import Data, Generated, Windows

# Every evaluation reads all that is held out: of a long text, so many tokens tell enough.
MOST_HELD_OUT = 1_000_000


@dataclass(frozen=True)
class TextSource:
    """A text; its first part is trained on, the rest validates."""

    corpus: Corpus
    fraction: float = 0.9

    def data(self, tokenizer: Tokenizer, config: Config) -> Data:
        """The text as batches for a model of this config.

        Raises:
            ValueError: it is too short.
        """
        training = torch.from_numpy(tokenizer.encode_ids(self.corpus.split(self.fraction)[0]))
        return Windows(training, self.held_out(tokenizer), config.context_length)

    def held_out(self, tokenizer: Tokenizer) -> Tensor:
        """The ids of the text that validates, at most `MOST_HELD_OUT` of them."""
        text = self.corpus.split(self.fraction)[1]
        # No token is made of more than some characters; of a text of gigabytes only the beginning is read.
        return torch.from_numpy(tokenizer.encode_ids(text[: 16 * MOST_HELD_OUT])[:MOST_HELD_OUT])

    @property
    def floor(self) -> None:
        """Nobody knows how well a text can be predicted."""
        return None

    @property
    def title(self) -> str:
        """What it is called."""
        return self.corpus.name

    def keep(self) -> None:
        """Keep a copy of the text, for `source_from`."""
        remember(self.corpus)

    def to_dict(self) -> dict[str, Any]:
        """JSON values that `source_from` understands: the text's name and SHA-256, not the text."""
        return {"corpus": self.corpus.name, "sha256": self.corpus.sha256, "fraction": self.fraction}


@dataclass(frozen=True)
class TaskSource:
    """A task that generates its data."""

    task: Task = field(hash=False)

    def data(self, tokenizer: Tokenizer, config: Config) -> Data:
        """The task as batches for a model of this config.

        Raises:
            ValueError: its sequences do not fit in the context, or the tokens are not its own.
        """
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
    def title(self) -> str:
        """What it is called."""
        return self.task.name

    def keep(self) -> None:
        """Nothing needs to be kept."""

    def to_dict(self) -> dict[str, Any]:
        """JSON values that `source_from` understands."""
        return {"task": self.task.name, "settings": self.task.settings()}


Source = TextSource | TaskSource


def source_named(name: str, fraction: float = 0.9) -> Source:
    """The task or the corpus called `name`.

    Raises:
        ValueError: there is none; the message names those there are.
        CorpusUnavailableError: it is not to be had now.
    """
    if name in TASKS:
        return TaskSource(task(name))
    offers = {offer.name: offer for offer in corpora()}
    if name not in offers:
        raise ValueError(f"no data named {name[:80]!r}; there are the texts {', '.join(offers)} and the tasks {', '.join(TASKS)}")
    return TextSource(offers[name].open(), fraction)


def source_from(content: dict[str, Any]) -> Source:
    """The source that `to_dict` wrote down.

    Raises:
        ValueError: it names no source.
        CorpusUnavailableError: the text is not here any more.
    """
    try:
        if "task" in content:
            return TaskSource(task(content["task"], **content.get("settings", {})))
        return TextSource(recall(content["corpus"], content["sha256"]), float(content.get("fraction", 0.9)))
    except (AttributeError, KeyError, OverflowError, TypeError) as error:
        raise ValueError(f"it is not written down what the model learned from ({error})") from None
