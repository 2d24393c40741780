"""A folder as `transformers` saves it and model hubs keep it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from torch import Tensor

from gptviz.bounded import parse_json, read_regular
from gptviz.model import Config

from .families import Family, Given, ImportRefusedError, family_of
from .folder_tokens import FolderTokens
from .source import Opened, Source, fitted
from .tensors import in_folder, reading

LONGEST_CONFIG = 2**20  # bytes
MOST_VALUES = 2_000_000


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
        words = FolderTokens(self.path)
        found = words.tokenizer()
        tokenizer, notes = fitted(found, config.vocab_size)
        ends = words.ends(given.optional("eos_token_id"), found)
        return Opened(family.title, config, tokenizer, notes, chat=words.chat(), ends=ends)

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
