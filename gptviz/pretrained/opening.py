"""Opening a model that lies somewhere on this machine: its config, its tokenizer, and its weights where they are."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from gptviz.bounded import parse_json, read_regular
from gptviz.model import Config, Transformer
from gptviz.model.build import lay_out
from gptviz.text import Tokenizer, from_json
from gptviz.text.tokenizers.bpe import BPETokenizer
from gptviz.text.tokenizers.padded import PaddedTokenizer
from gptviz.text.tokenizers.symbols import MOST_SYMBOLS, SymbolTokenizer

from .families import Family, Given, ImportRefusedError, family_of
from .tensors import in_folder, reading

LONGEST_CONFIG = 2**20  # bytes
LONGEST_TOKENIZER = 64 * 2**20
MOST_VALUES = 2_000_000


@dataclass(frozen=True)
class Opened:
    """A model as a source describes it; its weights are not read yet.

    Attributes:
        family: what people call such models.
        config: our config of it.
        tokenizer: its tokenizer, with as many tokens as the embedding has rows.
        notes: what a reader should know, in sentences.
    """

    family: str
    config: Config
    tokenizer: Tokenizer
    notes: tuple[str, ...] = ()


class Source(ABC):
    """A place where a model lies.

    Attributes:
        kind: its name in the file that refers to it.
        path: the folder or file.
    """

    kind: ClassVar[str]

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    @abstractmethod
    def fits(cls, path: Path) -> bool:
        """Whether what lies at this path looks like such a source."""

    @abstractmethod
    def opened(self) -> Opened:
        """What the source describes.

        Raises:
            ImportRefusedError: it cannot be opened; the message names the file and the way out.
        """

    @abstractmethod
    def parameters(self, config: Config) -> Iterator[tuple[str, Tensor]]:
        """The parameters of our model with this config, by name, one at a time.

        Raises:
            ImportRefusedError: a tensor is missing or damaged, or holds what the model has no place for.
        """

    @abstractmethod
    def files(self) -> list[Path]:
        """The files that the weights are read from."""


class Folder(Source):
    """A folder as `transformers` saves it and model hubs keep it."""

    kind = "folder"

    @classmethod
    def fits(cls, path: Path) -> bool:
        return path.is_dir() and os.path.lexists(path / "config.json")

    def _described(self) -> tuple[Family, Given]:
        file = self.path / "config.json"
        with reading(file):
            fields = parse_json(read_regular(file, LONGEST_CONFIG), MOST_VALUES)
        if not isinstance(fields, dict):
            raise ImportRefusedError("config.json is not a table of fields: copy or download it again")
        if fields.keys() == {"format", "config"}:
            raise ImportRefusedError(f"{self.path} is a model of gptviz: copy the folder to your models instead of importing it")
        family = family_of(fields)
        return family, Given(fields, family.title)

    def opened(self) -> Opened:
        family, given = self._described()
        try:
            config = family.config(given)
        except ImportRefusedError:
            raise
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise ImportRefusedError(f"config.json: {error}") from None
        tokenizer, notes = fitted(tokenizer_in(self.path), config.vocab_size)
        return Opened(family.title, config, tokenizer, notes)

    def parameters(self, config: Config) -> Iterator[tuple[str, Tensor]]:
        family, given = self._described()
        tensors = in_folder(self.path)
        yield from family.tensors(config, given, tensors.take)
        left = [name for name in tensors.left() if not name.endswith(family.unused)]
        if config.tied:  # the same matrix once more
            left = [name for name in left if name not in ("lm_head.weight", "embed_out.weight")]
        if left:
            raise ImportRefusedError(
                f"{', '.join(path.name for path in tensors.files[:3])}: {len(left)} tensors have no place in a {family.title} "
                f"model as gptviz has it, among them {left[0]!r:.80}"
            )

    def files(self) -> list[Path]:
        return in_folder(self.path).files


def tokenizer_in(folder: Path) -> Tokenizer | None:
    """The tokenizer in a folder: `tokenizer.json`, or `vocab.json` with `merges.txt`; None where there is none.

    Raises:
        ImportRefusedError: its file is damaged, or of a kind that gptviz does not read.
    """
    whole, vocabulary, merges = folder / "tokenizer.json", folder / "vocab.json", folder / "merges.txt"
    if os.path.lexists(whole):
        with reading(whole):
            return from_json(read_regular(whole, LONGEST_TOKENIZER).decode("utf-8"))
    if os.path.lexists(vocabulary) and os.path.lexists(merges):
        with reading(vocabulary):
            return BPETokenizer.from_gpt2(vocabulary, merges)
    if os.path.lexists(folder / "tokenizer.model"):
        raise ImportRefusedError(
            f"{folder} has its tokenizer in tokenizer.model alone, a format of SentencePiece that gptviz does not read: "
            "save it as tokenizer.json too, as transformers' save_pretrained does"
        )
    return None


def fitted(tokenizer: Tokenizer | None, size: int) -> tuple[Tokenizer, tuple[str, ...]]:
    """A tokenizer with exactly `size` tokens, and what there is to say about it.

    Without a tokenizer, the ids themselves are the text.

    Raises:
        ImportRefusedError: the tokenizer has more tokens than the model.
    """
    if tokenizer is None:
        if size > MOST_SYMBOLS:
            raise ImportRefusedError(f"there is no tokenizer.json, and {size:,} tokens are too many to go without")
        note = "It came without a tokenizer: a text is a row of token numbers, with a space between them."
        return SymbolTokenizer.numbers(size), (note,)
    if tokenizer.vocab_size > size:
        raise ImportRefusedError(
            f"the tokenizer has {tokenizer.vocab_size:,} tokens, the model {size:,} rows for them: they are not from one model"
        )
    if tokenizer.vocab_size == size:
        return tokenizer, ()
    unused = size - tokenizer.vocab_size
    note = f"The last {unused:,} of its {size:,} tokens are unused: the embedding has more rows than the tokenizer has tokens."
    return PaddedTokenizer(tokenizer, size), (note,)


SOURCES: dict[str, type[Source]] = {kind.kind: kind for kind in (Folder,)}


def source_at(path: Path) -> Source:
    """The source at this path.

    Raises:
        ImportRefusedError: there is nothing, or nothing that gptviz can open.
    """
    for kind in SOURCES.values():
        if kind.fits(path):
            return kind(path.resolve())
    if not os.path.lexists(path):
        raise ImportRefusedError(f"there is nothing at {path}")
    raise ImportRefusedError(f"{path} holds no model that gptviz can open: it looks for a folder with config.json and weights")


def reference(source: Source) -> dict[str, Any]:
    """What is written down to find the source again: its kind and place, and the sizes of its files."""
    sizes = {str(file): file.stat().st_size for file in source.files()}
    return {"kind": source.kind, "path": str(source.path), "files": sizes}


def referred(content: dict[str, Any]) -> Source:
    """The source that a reference leads to.

    Raises:
        ImportRefusedError: the reference is damaged, or its files are gone or have changed.
    """
    kind, path, sizes = content.get("kind"), content.get("path"), content.get("files")
    if not isinstance(kind, str) or kind not in SOURCES or not isinstance(path, str) or not isinstance(sizes, dict):
        raise ImportRefusedError("source.json is damaged: import the model again")
    for file, size in sizes.items():
        try:
            found = os.stat(file).st_size
        except OSError:
            raise ImportRefusedError(f"the weights at {file} are gone: put them back, or import the model again") from None
        if found != size:
            raise ImportRefusedError(f"the weights at {file} have changed: import the model again")
    return SOURCES[kind](Path(path))


def filled(source: Source, config: Config) -> Transformer:
    """The model with this config and the weights of the source, in float32.

    Names and shapes are compared before memory is taken, one tensor after the other is copied, so that the weights are in
    memory once.

    Raises:
        ImportRefusedError: a tensor is missing, of another shape, left over, or holds what is no number.
    """
    with torch.device("meta"):
        expected = {name: tuple(parameter.shape) for name, parameter in lay_out(config).named_parameters()}
    model = lay_out(config)
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        for name, tensor in source.parameters(config):
            if expected.get(name) != tuple(tensor.shape):
                raise ImportRefusedError(
                    f"{source.path.name}: {name} has the shape {tuple(tensor.shape)}, "
                    f"the config asks for {expected.get(name, 'no such tensor')}: they are not from one model"
                )
            if not torch.isfinite(tensor).all():
                raise ImportRefusedError(f"{source.path.name}: {name} holds values that are not numbers: download it again")
            parameters.pop(name).copy_(tensor)
    if parameters:
        raise ImportRefusedError(f"{source.path.name}: the tensor {min(parameters)} is missing")
    return model
