"""Folders in the format of `transformers` and of model hubs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from gptviz.machine.bounded import parse_json, read_regular
from gptviz.model import Config

from ..families import Family, Given, ImportRefusedError, family_of
from ..families.base import WITHOUT_EFFECT
from ..given import without_place
from .folder_tokens import FolderTokens
from .source import ModelSource, Opened, Outline, fit_tokenizer
from .tensors import files_in, in_folder, reading

LONGEST_CONFIG = 2**20  # bytes
LONGEST_README = 2**18
MOST_VALUES = 2_000_000
# The ends of the names of tensors that may be the embedding once more.
COPIES = ("lm_head.weight", "embed_out.weight", "embed_tokens.weight")
UNTIED = (
    "Its config says that the embedding is the unembedding too, but the files have another "
    "unembedding, which is used."
)


class Folder(ModelSource):
    """A folder in the format of `transformers` and of model hubs."""

    kind = "folder"

    @classmethod
    def recognises_path(cls, path: Path) -> bool:
        return path.is_dir() and os.path.lexists(path / "config.json")

    def _fields(self) -> dict[str, Any]:
        file = self.path / "config.json"
        with reading(file):
            fields = parse_json(read_regular(file, LONGEST_CONFIG), MOST_VALUES)
        if not isinstance(fields, dict):
            raise ImportRefusedError(
                "config.json is not a table of fields: copy or download it again"
            )
        if fields.keys() == {"format", "config"}:
            raise ImportRefusedError(
                f"{self.path} is a model of gptviz: copy the folder to your models instead of "
                "importing it"
            )
        return fields

    def outline(self) -> Outline:
        return replace(outline_of(self._fields()), licence=licence_in(self.path))

    def describe_model(self) -> Opened:
        outline = self.outline()
        family, given = describe_config(self._fields())
        # first, to refuse weights that could run code or lack a part
        config = outline.config
        tensors = in_folder(self.path)
        words = FolderTokens(self.path)
        read = words.tokenizer()
        tokenizer, notes = fit_tokenizer(read, config.vocab_size, words.file)
        embed, unembed = (
            family.their_names(name) for name in ("embed.weight", "head.unembed.weight")
        )
        if (
            config.tied
            and tensors.has_tensors(*unembed)
            and tensors.has_tensors(*embed)
            and not tensors.is_same(*unembed, *embed)
        ):
            config = replace(config, tied=False)
            notes = (*notes, UNTIED)
        ends = words.end_tokens(given.optional("eos_token_id"), read)
        labels = family.labels(given)
        return Opened(
            outline.family,
            config,
            tokenizer,
            notes,
            outline.licence,
            words.chat(),
            ends,
            labels,
            words.languages,
        )

    def parameters(self, config: Config) -> Iterator[tuple[str, Tensor]]:
        family, given = describe_config(self._fields())
        tensors = in_folder(self.path)
        yield from family.tensors(config, given, tensors.take)
        embedding = family.their_names("embed.weight")
        for name in tensors.unused_names():
            if config.tied and name.endswith(COPIES) and not tensors.is_same(name, *embedding):
                raise ImportRefusedError(
                    f"{tensors.find_tensor(name)} differs from {embedding[0]}, which is the same "
                    "matrix "
                    "in this model: "
                    "import it again, or ask for other files"
                )
        left = [name for name in tensors.unused_names() if not name.endswith(family.unused)]
        left = [name for name in left if not (config.tied and name.endswith(COPIES))]
        if left:
            files = ", ".join(path.name for path in tensors.files[:3])
            raise without_place(files, left, f"a {family.title} model as gptviz has it")

    def origin(self, config: Config, parameter: str) -> str:
        return in_folder(self.path).find_tensor(
            describe_config(self._fields())[0].their_names(parameter)[0]
        )

    def files(self) -> list[Path]:
        return files_in(self.path)


def describe_config(fields: Mapping[str, Any]) -> tuple[Family, Given]:
    """The family of a config.json, and its fields for that family."""
    family = family_of(fields)
    return family, family.given_fields(fields)


def outline_of(fields: Mapping[str, Any]) -> Outline:
    """The description of a model in its config.json."""
    if quantised := fields.get("quantization_config"):
        if isinstance(quantised, dict):
            method = quantised.get("quant_method", "bitsandbytes")
        else:
            method = quantised
        raise ImportRefusedError(
            f"config.json: its weights are quantised by {method!s:.40} (quantization_config), "
            "which gptviz does not read: open "
            "the model that they were made from, or a GGUF file of it"
        )
    family, given = describe_config(fields)
    config = family.our_config(given)
    given.refuse_unread(WITHOUT_EFFECT, family.without_effect)
    return Outline(family.title, config)


def licence_in(folder: Path) -> str | None:
    """The licence that README.md names between its first two lines of `---`, as on hubs; None if
    there is none.
    """
    try:
        text = read_regular(folder / "README.md", LONGEST_README, cut=True).decode(
            "utf-8", "replace"
        )
    except OSError:
        return None
    head = re.match(r"---\s*\n(.*?)\n---", text, re.DOTALL)
    if head:
        line = re.search(r"^license:[ \t]*([^\s#][^\n#]*)", head[1], re.MULTILINE)
    else:
        line = None
    if line:
        return line[1].strip(" \t\r'\"")[:80]
    return None
