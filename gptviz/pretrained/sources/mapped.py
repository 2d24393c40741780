"""A file with the tensors of any GPT, opened by a mapping."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor

from gptviz.machine.bounded import parse_json, read_regular
from gptviz.model import Config
from gptviz.model.builder import parameter_shapes
from gptviz.text import Tokenizer, from_json

from ..families import ImportRefusedError
from .characters import characters_near, of_characters
from .drafting import Draft, draft_mapping, grouped_shapes
from .folder import MOST_VALUES
from .folder_tokens import LONGEST_TOKENIZER, FolderTokens
from .mapping import MatchRow, Shape, TensorMap, complaint, mapping_of, match_rows
from .source import ModelSource, Opened, Outline, fit_tokenizer
from .tensors import SafetensorsFile, TorchFile, reading

SUFFIXES = (".pt", ".pth", ".ckpt", ".bin", ".safetensors")


@dataclass(frozen=True)
class Examined:
    """The tensors of a file, compared with a mapping."""

    rows: tuple[MatchRow, ...]  #: the comparison; empty without a mapping that can be read
    draft: Draft | None  #: a mapping guessed from names and shapes; None if a mapping is given
    #: all tensors and their shapes; names that differ only in their first number are listed once,
    #: with {} for it
    shapes: tuple[tuple[str, Shape], ...]

    def as_json(self) -> dict[str, Any]:
        """All of it as JSON values."""
        if self.draft is None:
            draft = {}
        else:
            draft = {"mapping": self.draft.as_json(), "assumed": self.draft.assumed}
        if self.draft is None:
            unknown = {}
        else:
            unknown = {"unknown": self.draft.unknown_fields}
        tensors = [{"name": name, "shape": list(shape)} for name, shape in self.shapes]
        return {
            "tensors": tensors,
            "rows": [row.as_json() for row in self.rows],
            **draft,
            **unknown,
        }

    def lines(self) -> list[str]:
        """The text for a terminal: the comparison, or the tensors and the draft."""
        if self.draft is None:
            return [f"{row.state:<16} {row.count:>4} ×  {_describe_row(row)}" for row in self.rows]
        told = [f"  {name}  {list(shape)}" for name, shape in self.shapes]
        mapping = self.draft.text.rstrip("\n").split("\n")
        return [
            "Its tensors, {} for a number:",
            *told,
            "A draft of the mapping, for you to check:",
            *mapping,
            *self.draft.remarks(),
        ]


def _describe_row(row: MatchRow) -> str:
    """A row of the comparison, without its state and number."""
    if len(row.theirs) < 4:
        theirs = " + ".join(row.theirs)
    else:
        theirs = f"{row.theirs[0]} + {len(row.theirs) - 1:,} more"
    if not row.ours:
        return f"{theirs} {list(row.found or ())}"
    if row.found == row.expected or row.found is None:
        shapes = ""
    else:
        shapes = f": {list(row.found)}, must be {list(row.expected or ())}"
    return f"{row.ours} ← {theirs or 'no line in the mapping'}{shapes}"


class Mapped(ModelSource):
    """A `.pt`, `.pth`, `.ckpt`, `.bin` or `.safetensors` file with a mapping."""

    kind = "mapped"
    takes = ("mapping", "set")

    @classmethod
    def recognises_path(cls, path: Path) -> bool:
        return path.suffix in SUFFIXES and path.is_file()

    def files(self) -> list[Path]:
        return [self.path]

    @cached_property
    def _file(self) -> SafetensorsFile | TorchFile:
        with reading(self.path):
            if self.path.suffix == ".safetensors":
                return SafetensorsFile(self.path)
            return TorchFile(self.path)

    @cached_property
    def shapes(self) -> dict[str, Shape]:
        """The shapes of the file's tensors, by name."""
        with reading(self.path):
            return self._file.shapes()

    def draft(self) -> Draft:
        """A mapping guessed from the names and shapes of the tensors, with the fields that were
        given.
        """
        draft = draft_mapping(self.shapes, self._file.is_same)
        draft.config |= self.additions.get("set", {})
        return draft

    @cached_property
    def mapping(self) -> TensorMap:
        """The mapping."""
        if "mapping" not in self.additions:
            raise ImportRefusedError(
                f"{self.path.name} holds {len(self.shapes):,} tensors and does not say what model "
                "they are of: it needs a "
                "mapping (--map), a small JSON file that says which tensor is which"
            )
        return mapping_of(self.additions["mapping"])

    def rows(self) -> list[MatchRow]:
        """Which tensors match the mapping, and which do not."""
        return match_rows(self.mapping, self.shapes)

    def examine_tensors(self) -> Examined:
        """The tensors of the file, compared with the mapping, or with a draft of one."""
        has_mapping = "mapping" in self.additions
        rows = tuple(self.rows()) if has_mapping else ()
        return Examined(
            rows, None if has_mapping else self.draft(), tuple(grouped_shapes(self.shapes))
        )

    def outline(self) -> Outline:
        return Outline("a model with a mapping", self.mapping.config)

    def describe_model(self) -> Opened:
        outline = self.outline()
        if problem := complaint(self.rows()):
            raise ImportRefusedError(f"{self.path.name} does not match its mapping: {problem}")
        tokenizer, notes = fit_tokenizer(self._tokenizer(), outline.config.vocab_size)
        return Opened(outline.family, outline.config, tokenizer, notes)

    def parameters(self, config: Config) -> Iterator[tuple[str, Tensor]]:
        if problem := complaint(self.rows()):
            raise ImportRefusedError(f"{self.path.name} does not match its mapping: {problem}")
        for name in parameter_shapes(self.mapping.config):
            with reading(self.path):
                made = self.mapping.make_parameter(name, self._file.tensor)
            yield name, made

    def _tokenizer(self) -> Tokenizer | None:
        name = self.mapping.tokenizer
        characters = self.mapping.characters
        if characters is not None:
            return of_characters(list(characters), "the mapping: characters")
        if name is None:
            return FolderTokens(self.path.parent).tokenizer() or characters_near(self.path)
        if Path(name).name != name or name in ("", ".", ".."):
            raise ImportRefusedError(
                f"the mapping: tokenizer is {name!r:.80}; it must be the name of a file beside "
                "the weights"
            )
        # The tokenizer in a file: a tokenizer.json, a list of characters, or a table from
        # characters to their numbers.
        file = self.path.parent / name
        with reading(file):
            content = read_regular(file, LONGEST_TOKENIZER).decode("utf-8")
            fields: Any = parse_json(content, MOST_VALUES)
            if isinstance(fields, dict) and {"model", "kind"} & fields.keys():
                return from_json(content)
        if isinstance(fields, dict) and all(type(number) is int for number in fields.values()):
            if sorted(fields.values()) != list(range(len(fields))):
                raise ImportRefusedError(
                    f"{file.name}: the characters must have the numbers 0 to {len(fields) - 1}, "
                    "each once"
                )
            fields = sorted(fields, key=lambda one: int(fields[one]))
        if not isinstance(fields, list) or not all(isinstance(name, str) for name in fields):
            raise ImportRefusedError(
                f"{file.name} is no tokenizer.json, no list of characters and no table of their "
                "numbers"
            )
        return of_characters(fields, file.name)
