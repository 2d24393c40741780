"""Sources for decoders: a text, and tasks that generate their sequences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile
from typing import Any, ClassVar

import torch
from torch import Tensor

from gptviz.generate.generation import Generation
from gptviz.generate.sampling import Sampling
from gptviz.model import Config, Transformer
from gptviz.model.kinds import MODEL_KINDS, Kind
from gptviz.text import (
    BPETokenizer,
    CharTokenizer,
    Corpus,
    Task,
    Tokenizer,
    corpus_of,
    read_corpus,
    recall,
    remember,
    task,
)

from .batches import NOT_COUNTED, Batch, Data, Generated, Windows, consecutive_windows, spread
from .source import (
    LONGEST_EXCERPT,
    EvaluationData,
    FileSource,
    GeneratedSource,
    Share,
    Source,
    each_once,
)

# Every evaluation reads all the held-out tokens: for a long text, this many are enough.
MOST_HELD_OUT_TOKENS = 1_000_000
SAMPLE_TOKENS = 200
BPE_CHARACTERS = 3  # of an English text in a byte-pair token, about


def check_decoder(source: Source, config: Config) -> None:
    """Refuse a model of this config with a ValueError unless it continues texts."""
    if config.kind == "classifier":
        raise ValueError(
            f"{source.title} has no labels: give a CSV file with the columns text and label"
        )
    if config.kind != "decoder":
        raise ValueError(
            f"{source.title} has no sources and answers, but "
            f"{MODEL_KINDS[config.kind].with_article} learns from them: "
            "take a decoder"
        )


def continue_text(
    model: Transformer,
    tokenizer: Tokenizer,
    prompt: Tensor,
    n_tokens: int,
    sampling: Sampling,
    end: int | None = None,
) -> str:
    """The text of the prompt [T] and of `n_tokens` that the model, in evaluation mode, generates
    after it; fewer if it ends.
    """
    generation = Generation(
        model, prompt.to(model.embed.weight.device), sampling, never=tokenizer.unused_ids
    )
    tokens = (int(step.tokens[0]) for step in islice(generation, n_tokens))
    return tokenizer.decode([*prompt.tolist(), *takewhile(lambda token: token != end, tokens)])


@torch.inference_mode()
def _accuracy(model: Transformer, batches: Sequence[Batch]) -> float:
    """The share of predictions that count whose likeliest token was the right one; the model is in
    evaluation mode.
    """
    right = counted = 0
    for batch in batches:
        inputs, targets = batch.to(model.embed.weight.device)
        right += int((model(*inputs).argmax(-1) == targets).sum())
        counted += int((targets != NOT_COUNTED).sum())
    return right / counted


@dataclass(frozen=True)
class TextSource(FileSource):
    """A text: the first `fraction` of its characters is for training, the rest for validation."""

    kind: ClassVar = "text"
    model_kind: ClassVar[Kind] = "decoder"
    tokenizer_kinds: ClassVar = ("characters", "bpe")
    has_right_answers: ClassVar = False
    is_long: ClassVar = True
    read = staticmethod(read_corpus)
    parse = staticmethod(corpus_of)

    corpus: Corpus
    fraction: float = 0.9

    def data(self, tokenizer: Tokenizer, config: Config) -> Data:
        check_decoder(self, config)
        training = torch.from_numpy(tokenizer.encode_ids(self.corpus.split(self.fraction)[0]))
        return Windows(training, self.held_out(tokenizer), config.context_length)

    def excerpts(self) -> Sequence[str]:
        return (self.corpus.text[:LONGEST_EXCERPT],)

    def held_out(self, tokenizer: Tokenizer) -> Tensor:
        """The ids of the held-out text [N], at most `MOST_HELD_OUT_TOKENS` of them."""
        text = self.corpus.split(self.fraction)[1]
        # A token has only a few characters, so only the beginning of a text of gigabytes has to be
        # read.
        return torch.from_numpy(
            tokenizer.encode_ids(text[: 16 * MOST_HELD_OUT_TOKENS])[:MOST_HELD_OUT_TOKENS]
        )

    def evaluation(
        self,
        model: Transformer,
        tokenizer: Tokenizer,
        *,
        everything: bool = False,
        labels: Sequence[str] = (),
    ) -> EvaluationData:
        """The held-out text, or all of the text, in consecutive windows."""
        check_decoder(self, model.config)
        if everything:
            text = self.corpus.text
        else:
            text = self.corpus.split(self.fraction)[1]
        if everything:
            ids = torch.from_numpy(tokenizer.encode_ids(text))
        else:
            ids = self.held_out(tokenizer)
        return EvaluationData(
            consecutive_windows(ids, model.config.context_length), each_once([text], tokenizer)
        )

    def tokenizer(self, kind: str, vocab_size: int) -> Tokenizer:
        """Learned on the whole text."""
        if kind == BPETokenizer.kind:
            return BPETokenizer.learn(self.corpus.text, vocab_size)
        return CharTokenizer(self.corpus.text)

    def facts(self) -> dict[str, int]:
        """Its characters, its lines, and how many characters are different."""
        text = self.corpus.text
        return {
            "characters": len(text),
            "different characters": len(set(text)),
            "lines": text.count("\n") + 1,
        }

    def tokens_to_count(self, data: Data, tokenizer: Tokenizer) -> tuple[Tensor, str]:
        """All tokens of the text to train on."""
        assert isinstance(data, Windows)
        return data.ids, "the text to train on"

    def tokens(self, config: Config) -> int:
        return config.context_length

    def evaluation_tokens(self, config: Config, tokenizer_kind: str) -> int:
        """The tokens of the held-out text, at most `MOST_HELD_OUT_TOKENS`."""
        characters = int(len(self.corpus.text) * (1 - self.fraction))
        return min(
            characters // (BPE_CHARACTERS if tokenizer_kind == BPETokenizer.kind else 1),
            MOST_HELD_OUT_TOKENS,
        )

    def sample(self, model: Transformer, tokenizer: Tokenizer, data: Data) -> str:
        """The text that it writes after the first token of the text held out."""
        row = next(iter(data.validation())).inputs[0][0]
        return continue_text(model, tokenizer, row[:1], SAMPLE_TOKENS, Sampling())

    @property
    def title(self) -> str:
        return self.corpus.name

    def origin(self) -> dict[str, Any]:
        split = f"first {self.fraction:.0%} of the characters to train, the rest to validate"
        return {"corpus": self.corpus.name, "corpus_sha256": self.corpus.sha256, "split": split}

    def keep(self) -> None:
        remember(self.corpus)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "corpus": self.corpus.name,
            "sha256": self.corpus.sha256,
            "fraction": self.fraction,
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> TextSource:
        return cls(
            recall(content["corpus"], content["sha256"]), float(content.get("fraction", 0.9))
        )


@dataclass(frozen=True)
class TaskSource(GeneratedSource):
    """A task that generates its data."""

    kind: ClassVar = "task"
    model_kind: ClassVar[Kind] = "decoder"

    task: Task = field(hash=False)

    def data(self, tokenizer: Tokenizer, config: Config) -> Data:
        check_decoder(self, config)
        if tokenizer.to_json() != self.task.tokenizer.to_json():
            raise ValueError(
                f"{self.task.name} has tokens of its own: take a model trained on it, or a text "
                "instead of the task"
            )
        if config.context_length < self.task.length - 1:
            raise ValueError(
                f"context_length is {config.context_length}; a sequence of {self.task.name} needs "
                f"{self.task.length - 1} or more"
            )
        return Generated(self.task)

    @property
    def title(self) -> str:
        return self.task.title

    @property
    def floor(self) -> float:
        return self.task.floor

    @property
    def has_places(self) -> bool:
        return self.task.has_places

    @property
    def end(self) -> int | None:
        return self.task.end

    def tokens(self, config: Config) -> int:
        return self.task.length - 1

    def sample(self, model: Transformer, tokenizer: Tokenizer, data: Data) -> str:
        """Its continuation of the task's first question, or of the beginning of a held-out
        sequence, by the likeliest tokens.
        """
        batch = next(iter(data.validation()))
        end = self.end
        if asked := self.task.questions()[0]:
            prompt = torch.tensor(tokenizer.encode(asked[0]).ids)
            return continue_text(
                model,
                tokenizer,
                prompt,
                self.task.length - len(prompt),
                Sampling(temperature=0),
                end,
            )
        first = int((batch.targets[0] != NOT_COUNTED).nonzero()[0])
        if end is not None:
            given = first + 1
        else:
            given = max(first + 1, self.task.length // 2)
        return continue_text(
            model,
            tokenizer,
            batch.inputs[0][0][:given],
            self.task.length - given,
            Sampling(temperature=0),
            end,
        )

    def evaluation(
        self,
        model: Transformer,
        tokenizer: Tokenizer,
        *,
        everything: bool = False,
        labels: Sequence[str] = (),
    ) -> EvaluationData:
        """The sequences held out, and how often the model is right in each of the task's parts."""
        data = self.data(tokenizer, model.config)
        by_part = self.measure_model(model, tokenizer, data).get("accuracy_by_task", {})
        shares = tuple(Share(name, f"{name}: accuracy", value) for name, value in by_part.items())
        return EvaluationData(
            data.validation(), groups={"accuracy_by_task": shares} if shares else {}
        )

    def measure_model(
        self, model: Transformer, tokenizer: Tokenizer, data: Data, rows: int | None = None
    ) -> dict[str, Any]:
        """For a task with parts, `accuracy_by_task`: how often the likeliest token is the right
        one, by the name of the part.
        """
        assert isinstance(data, Generated)
        by_part = data.validation_by_part()
        some = {
            name: batches if rows is None else spread(batches, rows // len(by_part))
            for name, batches in by_part.items()
        }
        if some:
            return {
                "accuracy_by_task": {
                    name: _accuracy(model, batches) for name, batches in some.items()
                }
            }
        return {}

    def origin(self) -> dict[str, Any]:
        ends = {} if self.end is None else {"end_tokens": [self.end]}
        return {"task": self.task.name, "floor": self.floor, **ends}

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "task": self.task.name, "settings": self.task.settings()}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> TaskSource:
        return cls(task(content["task"], **content.get("settings", {})))
