"""The interface between a run and the data it learns from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from functools import lru_cache
from os import PathLike
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import torch
from torch import Tensor

from gptviz.model import Config, Transformer
from gptviz.model.kinds import Kind
from gptviz.text import Corpus, LabelledTexts, Pairs, PairTask, Task, Tokenizer, remember
from gptviz.text.datasets.base import HELD_OUT
from gptviz.text.tokenizers.base import Encoding

from .batches import Batch, Data

Portion = TypeVar("Portion", bound=Sized)
DRAWN = 1_000  # rows in which tokens are counted if the data never end
LONGEST_EXCERPT = 100_000  # characters; of many texts, the first ones with about so many


class Share(NamedTuple):
    """A result of an evaluation other than loss and accuracy."""

    name: str  #: its key in JSON
    words: str  #: its name for people
    value: float  #: between 0 and 1


@dataclass(frozen=True)
class EvaluationData:
    """The data that a model is evaluated on."""

    batches: Iterable[Batch]  #: the rows, each once
    #: a text with every character or word of the data (see `each_once`), if the reader should know
    #: which ones the vocabulary lacks; else empty
    sample: str = ""
    shares: tuple[Share, ...] = ()  #: results on the same rows, of this model or of a simpler one
    #: by their key in JSON, shares that belong together, such as one for each part of a task
    groups: Mapping[str, tuple[Share, ...]] = field(default_factory=dict)


def each_once(texts: Iterable[str], tokenizer: Tokenizer) -> str:
    """A text with all of these that the vocabulary may lack: each of their characters once, or,
    where words are cut or are the tokens, each of their words.
    """
    if tokenizer.way == "characters":
        return "".join(sorted(set().union(*texts)))
    return " ".join(dict.fromkeys(word for text in texts for word in text.split()))


class Source(ABC):
    """Where data comes from.

    A source is written down on the card of a model (`to_dict`), so that its run can be resumed and
    the model evaluated later (`gptviz.data.registry.source_from`).

    Where a source, a tokenizer and a model do not go together, its methods raise a ValueError that
    says what to change.
    """

    kind: ClassVar[str]  #: its name on a card
    model_kind: ClassVar[Kind]  #: the kind of model that learns from it
    #: the kinds of tokens that can be learned on it; empty if it brings its own tokenizer
    tokenizer_kinds: ClassVar[tuple[str, ...]] = ()
    unit: ClassVar[str] = "token"  #: the unit over which a loss is the mean: a "token" or a "text"
    #: whether a prediction is right or wrong, so that a card states the accuracy. (A text can go on
    #: in many ways.)
    has_right_answers: ClassVar[bool] = True
    #: the share of its tokens that a vocabulary which was learned on it may lack
    usually_lacking: ClassVar[float] = 0.0
    #: whether it may take long to read, so that a form does not read it before the run begins
    is_long: ClassVar[bool] = False

    @property
    @abstractmethod
    def title(self) -> str:
        """Its name."""

    @property
    def floor(self) -> float | None:
        """The loss that no model can beat, in nats per prediction, or None if nobody knows it."""
        return None

    @property
    def has_places(self) -> bool:
        """Whether all rows have the same form, so that the accuracy at each place in a row means
        something.
        """
        return False

    @property
    def end(self) -> int | None:
        """The token that follows the last one of a row and fills the rest of it, or None if rows
        have no such token.
        """
        return None

    @property
    def example(self) -> str | None:
        """A text on which to try a model that has learned from this source, or None."""
        return None

    @abstractmethod
    def tokenizer(self, kind: str, vocab_size: int) -> Tokenizer:
        """The tokenizer it brings, or one of this `kind` learned on it, with `vocab_size` tokens if
        that can be chosen.
        """

    def fit_config(self, config: Config, tokenizer: Tokenizer) -> Config:
        """`config` with the sizes that the data and its tokens decide."""
        return replace(config, vocab_size=tokenizer.vocab_size, padding=tokenizer.padding)

    @abstractmethod
    def data(self, tokenizer: Tokenizer, config: Config) -> Data:
        """Its batches for a model of this config."""

    def facts(self) -> dict[str, int]:
        """The amounts of data, for a reader, such as the number of texts; empty if the data never
        end.
        """
        return {}

    @property
    def label_names(self) -> Sequence[str]:
        """The labels that its texts have; empty if they have none."""
        return ()

    def tokens_to_count(self, data: Data, tokenizer: Tokenizer) -> tuple[Tensor, str]:
        """Token ids [N] in which the tokens can be counted, without padding, and a name for
        them.
        """
        ids = torch.cat([tensor.flatten() for tensor in data.training(DRAWN, 0).inputs])
        return ids[
            ids != tokenizer.padding
        ] if tokenizer.padding is not None else ids, f"{DRAWN:,} rows drawn to train on"

    def excerpts(self) -> Sequence[str]:
        """Some of the texts to train on, as they are; none where the data bring their own
        tokens.
        """
        return ()

    def describe_unread(self, tokenizer: Tokenizer) -> str:
        """What of its `excerpts` the vocabulary lacks, in sentences; empty if that is no more than
        usual.
        """
        read = [tokenizer.encode(text) for text in self.excerpts()]
        lacking = Encoding([], tuple(piece for encoding in read for piece in encoding.unknown))
        count = sum(len(encoding.ids) for encoding in read)
        if len(lacking.unknown) <= self.usually_lacking * count:
            return ""
        where = (
            f"In the first {count:,} tokens of {self.title} the vocabulary lacks something "
            f"{len(lacking.unknown):,} times."
        )
        return f"{where} {lacking.unknown_sentence()}"

    @abstractmethod
    def tokens(self, config: Config) -> int:
        """How many tokens a row of its batches has, at most."""

    @abstractmethod
    def evaluation_tokens(self, config: Config, tokenizer_kind: str) -> int:
        """About how many tokens an evaluation during a run reads: all that are held out."""

    def evaluation(
        self,
        model: Transformer,
        tokenizer: Tokenizer,
        *,
        everything: bool = False,
        labels: Sequence[str] = (),
    ) -> EvaluationData:
        """The data that a model, in evaluation mode, is evaluated on after its training: those held
        out, or with `everything` all of them; the data of a task never end. `labels` are those that
        a classifier tells apart, in its order, by default those of the source.
        """
        return EvaluationData(self.data(tokenizer, model.config).validation())

    @abstractmethod
    def sample(self, model: Transformer, tokenizer: Tokenizer, data: Data) -> str:
        """The output of the model, in evaluation mode, for something held out, as text."""

    def measure_model(
        self, model: Transformer, tokenizer: Tokenizer, data: Data, rows: int | None = None
    ) -> dict[str, Any]:
        """Further entries of the card besides loss and accuracy, measured in evaluation mode: JSON
        values.

        Those that are numbers, or objects of numbers, are also noted at every evaluation. They are
        measured on about so many held-out `rows`, evenly spread, or on all of them.
        """
        return {}

    @abstractmethod
    def origin(self) -> dict[str, Any]:
        """The entries of the card about the data: JSON values."""

    @abstractmethod
    def keep(self) -> None:
        """Save a copy of all that `from_dict` will need; an OSError if it cannot be written."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """JSON values that `from_dict` understands, `kind` among them. The data itself is not in
        them.
        """

    @classmethod
    @abstractmethod
    def from_dict(cls, content: dict[str, Any]) -> Self:
        """The source that `to_dict` wrote down.

        Raises:
            ValueError, KeyError, TypeError: the content does not describe a source of this kind.
            CorpusUnavailableError: the data is no longer on this machine.
        """


class GeneratedSource(Source):
    """Rows that a task makes: they never end, and nothing of them has to be kept."""

    task: Task | PairTask  #: the task

    @property
    def title(self) -> str:
        return self.task.name

    @property
    def example(self) -> str:
        return self.task.example_prompt()

    def tokenizer(self, kind: str, vocab_size: int) -> Tokenizer:
        return self.task.tokenizer

    def evaluation_tokens(self, config: Config, tokenizer_kind: str) -> int:
        """Those of the rows that the task holds out, if each is as long as the longest."""
        return HELD_OUT * min(self.tokens(config), config.context_length)

    def keep(self) -> None:
        """Nothing needs to be kept."""


class FileSource(Source):
    """The user's data, a `fraction` of which is trained on."""

    #: reads a file or a folder of such data
    read: ClassVar[staticmethod[[str | PathLike[str]], Any]]
    parse: ClassVar[staticmethod[[bytes, str], Any]]  #: reads the content of a file with this name

    @classmethod
    def from_file(cls, path: str | PathLike[str], fraction: float = 0.9) -> Self:
        """The data in a file or a folder; an OSError if it cannot be read, a ValueError if it holds
        no such data.
        """
        return cls(cls.read(path), fraction)  # type: ignore[call-arg]

    @classmethod
    def from_bytes(cls, data: bytes, name: str, fraction: float = 0.9) -> Self:
        """The content of a file called `name`; a ValueError if it holds no such data."""
        return cls(cls.parse(data, name), fraction)  # type: ignore[call-arg]


def first_of(texts: Iterable[str]) -> list[str]:
    """The first of some texts, with about `LONGEST_EXCERPT` characters together."""
    first = list[str]()
    length = 0
    for text in texts:
        if length >= LONGEST_EXCERPT:
            break
        first.append(text[:LONGEST_EXCERPT])
        length += len(text)
    return first


class SplitSource(FileSource, Generic[Portion]):
    """The user's rows: a `fraction` of them, drawn by `seed`, is trained on, the others are held
    out.
    """

    fraction: float
    seed: int

    def split(self) -> tuple[Portion, Portion]:
        """The rows to train on and those held out, both in their order; the same in every call.

        A ValueError if one of the two would be empty, or the fraction is not between 0 and 1.
        """
        training, held_out = _split(self)
        return training, held_out

    @property
    @abstractmethod
    def rows(self) -> LabelledTexts | Pairs:
        """All of the user's rows. The name of this kind of source is their key on a card."""

    @property
    def title(self) -> str:
        return self.rows.name

    def keep(self) -> None:
        remember(Corpus(self.rows.name, self.rows.canonical))

    def to_dict(self) -> dict[str, Any]:
        split = {"sha256": self.rows.sha256, "fraction": self.fraction, "seed": self.seed}
        return {"kind": self.kind, self.kind: self.rows.name, **split}

    @abstractmethod
    def new_split(self) -> tuple[Portion, Portion]:
        """The result of `split`, drawn again in every call."""

    def evaluation_tokens(self, config: Config, tokenizer_kind: str) -> int:
        """Those of the rows held out, if each were as long as the longest may be."""
        return len(self.split()[1]) * self.tokens(config)


# Equal sources share one split: a page makes a source from the card whenever it runs.
@lru_cache(maxsize=4)
def _split(source: SplitSource[Any]) -> tuple[Any, Any]:
    return source.new_split()
