"""The common base of all sources of models, and how a tokenizer is fitted to the model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from gptviz.model import Config
from gptviz.model.precision import type_in_memory
from gptviz.text import BPETokenizer, Tokenizer
from gptviz.text.chat import ChatTemplate
from gptviz.text.tokenizers.marian import MarianTokenizer
from gptviz.text.tokenizers.padded import PaddedTokenizer
from gptviz.text.tokenizers.symbols import SymbolTokenizer

from ..families import ImportRefusedError
from ..families.base import MISMATCHED


@dataclass(frozen=True)
class Outline:
    """The description of a model before its tokenizer and its weights are read."""

    family: str  #: the usual name of such models
    config: Config  #: our config of it
    licence: str | None = None  #: its licence, if the source names it


@dataclass(frozen=True)
class Opened:
    """A model as a source describes it; its weights are not read yet."""

    family: str  #: the usual name of such models
    config: Config  #: our config of it
    tokenizer: Tokenizer  #: its tokenizer, with as many tokens as the embedding has rows
    notes: tuple[str, ...] = ()  #: facts that a reader should know, in sentences
    licence: str | None = None  #: its licence, if the source names it
    chat: ChatTemplate | None = None  #: how a chat is written for it, if the source describes it
    ends: tuple[int, ...] = ()  #: the tokens that end a text
    labels: tuple[str, ...] = ()  #: the names of the labels that a classifier tells apart
    #: the languages that a translator reads and writes, as its files name them, or None if they do
    #: not
    languages: tuple[str, str] | None = None


class ModelSource(ABC):
    """A model in the files of another program, a folder or a file. Its `additions` are facts that
    the files do not tell, as JSON values; they are saved in the file that refers to it, as "said".
    """

    kind: ClassVar[str]  #: its name in the file that refers to it
    takes: ClassVar[tuple[str, ...]] = ()  #: the names of the additions that such a source accepts

    def __init__(self, path: Path, additions: Mapping[str, Any] | None = None) -> None:
        self.path = path
        self.additions = dict(additions or {})
        if useless := sorted(self.additions.keys() - set(self.takes)):
            option = {"mapping": "--map", "set": "--set"}.get(useless[0], useless[0])
            raise ImportRefusedError(
                f"{path.name} says itself what model it holds: leave {option} out"
            )

    @classmethod
    @abstractmethod
    def recognises_path(cls, path: Path) -> bool:
        """Whether the folder or file at this path looks like such a source."""

    @abstractmethod
    def outline(self) -> Outline:
        """The description of the model in the header of the source."""

    @abstractmethod
    def describe_model(self) -> Opened:
        """The description of the model in the source.

        Raises:
            ImportRefusedError: it cannot be opened; the message names the file and what to do.
        """

    @abstractmethod
    def parameters(self, config: Config) -> Iterator[tuple[str, Tensor]]:
        """The parameters of our model with this config, by name, one at a time.

        Raises:
            ImportRefusedError: a tensor is missing or damaged, or is not part of the model.
        """

    def origin(self, config: Config, parameter: str) -> str:
        """The origin of a parameter of our model, for messages: the file, and the name of the
        tensor there, if known, or ours.
        """
        return f"{self.path.name}: {parameter}"

    @abstractmethod
    def files(self) -> list[Path]:
        """The files that the weights are read from."""

    def size(self) -> int:
        """The bytes of these files."""
        return sum(file.stat().st_size for file in self.files())

    def number_bytes(
        self, numbers: int, precision: str | None, device: torch.device | str = "cpu"
    ) -> float:
        """As the function of this name, of a model with this many numbers in its parameters."""
        return number_bytes(self.size(), numbers, precision)


def number_bytes(size: int, numbers: int, precision: str | None) -> int:
    """The bytes that a weight takes in memory, for a model with this many `numbers` in all its
    parameters, in files of `size` bytes; `precision` as in `gptviz.model.precision.place`.
    """
    stored = torch.bfloat16 if size < 3 * numbers else torch.float32  # of 2 or of 4 bytes a number
    return type_in_memory(stored, precision).itemsize


def fit_tokenizer(
    tokenizer: Tokenizer | None, size: int, file: str = ""
) -> tuple[Tokenizer, tuple[str, ...]]:
    """A tokenizer with exactly `size` tokens, and notes about it; without one, the ids themselves
    are the text. `file` is that of the tokenizer, if it is not that of the weights. More tokens
    than the model has are refused.
    """
    if tokenizer is None:
        if size > SymbolTokenizer.most:
            raise ImportRefusedError(
                f"there is no tokenizer.json, and {size:,} tokens are too many to go without"
            )
        note = (
            "It came without a tokenizer: a text is a row of token numbers, with a space between "
            "them."
        )
        return SymbolTokenizer.numbers(size), (note,)
    if isinstance(tokenizer, BPETokenizer) and tokenizer.vocab_size > size:
        with suppress(ValueError):  # one of its added tokens stands around every text
            if (fewer := tokenizer.without_added(size)).vocab_size == size:
                left_out = ", ".join(
                    tokenizer.label(place) for place in range(size, tokenizer.vocab_size)
                )
                return fewer, (
                    "These tokens are read as text, since the model has no rows for them: "
                    f"{left_out:.200}.",
                )
    if tokenizer.vocab_size > size:
        raise ImportRefusedError(
            f"{f'{file}: ' if file else ''}the tokenizer has {tokenizer.vocab_size:,} tokens, the "
            f"model {size:,} rows for them: "
            f"{MISMATCHED}"
        )
    if tokenizer.vocab_size == size:
        return tokenizer, ()
    unused = size - tokenizer.vocab_size
    note = (
        f"The last {unused:,} of its {size:,} tokens are unused: the embedding has more rows than "
        "the tokenizer has tokens."
    )
    # Marian's tokenizer handles unused tokens itself, since it also knows which tokens begin and
    # end an answer.
    whole = (
        tokenizer.filled_up(size)
        if isinstance(tokenizer, MarianTokenizer)
        else PaddedTokenizer(tokenizer, size)
    )
    return whole, (note,)
