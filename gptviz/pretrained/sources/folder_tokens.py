"""Reading from the files of a model's folder its tokenizer, its special tokens, and how a chat is written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from gptviz.machine.bounded import parse_json, read_regular
from gptviz.text import Tokenizer, from_json
from gptviz.text.chat import ChatTemplate
from gptviz.text.tokenizers.bpe import BPETokenizer
from gptviz.text.tokenizers.marian import MarianTokenizer
from gptviz.text.tokenizers.sentencepiece import from_sentencepiece
from gptviz.text.tokenizers.wordpiece import from_wordpiece

from .tensors import reading

LONGEST_TOKENIZER, LONGEST_SETTINGS = 64 * 2**20, 4 * 2**20  # bytes
MOST_SETTINGS = 500_000
# The files of Marian's tokenizer: two vocabularies of SentencePiece, and the ids of their pieces.
MARIAN = ("source.spm", "target.spm", "vocab.json")
# The files that a folder with a tokenizer has at least one of.
FILES = ("tokenizer.json", "tokenizer.model", "vocab.txt", "merges.txt", MARIAN[0])
# The names, in its settings, of the language that a translator reads and of the one that it writes.
LANGUAGES = ("source_lang", "target_lang")
# The name of the template for plain chats, if a model has several.
PLAIN = "default"


class FolderTokens:
    """The description of tokens in the files of a folder.

    Attributes:
        folder: the folder.
        file: the name of the file that the tokenizer was read from last; empty for none.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.file = folder, ""

    @contextmanager
    def _reading(self, path: Path) -> Iterator[None]:
        """Note that the tokenizer is in this file."""
        self.file = path.name
        with reading(path):
            yield

    def _fields(self, name: str) -> dict[str, Any]:
        """The fields of a file with settings, none if there is no such file.

        Raises:
            ImportRefusedError: the file is damaged.
        """
        file = self.folder / name
        if not os.path.lexists(file):
            return {}
        with reading(file):
            found = parse_json(read_regular(file, LONGEST_SETTINGS), MOST_SETTINGS)
            if not isinstance(found, dict):
                raise ValueError("it is not a table of fields")
        return found

    @cached_property
    def _settings(self) -> dict[str, Any]:
        return self._fields("tokenizer_config.json")

    @cached_property
    def named(self) -> dict[str, str]:
        """The texts of special tokens by their names, such as `bos_token`."""
        texts = {}
        for name, value in {**self._fields("special_tokens_map.json"), **self._settings}.items():
            text = value.get("content") if isinstance(value, dict) else value
            if name.endswith("_token") and isinstance(text, str):
                texts[name] = text
        return texts

    @property
    def languages(self) -> tuple[str, str] | None:
        """The languages that a translator reads and writes, such as "en" and "de", or None if the folder does not name both."""
        source, target = (self._settings.get(name) for name in LANGUAGES)
        return (source, target) if isinstance(source, str) and isinstance(target, str) and source and target else None

    def tokenizer(self) -> Tokenizer | None:
        """The tokenizer, or None if there is none.

        It is read from `source.spm`, `target.spm` and `vocab.json`, from `tokenizer.json`, from `vocab.json` and `merges.txt`,
        from `tokenizer.model`, or from `vocab.txt`.

        Raises:
            ImportRefusedError: its file is damaged, or of a kind that gptviz does not read.
        """
        if all(os.path.lexists(self.folder / name) for name in MARIAN):
            return self._of_marian()
        names = ("tokenizer.json", "vocab.json", "merges.txt", "tokenizer.model", "vocab.txt")
        whole, vocabulary, merges, pieces, words = (self.folder / name for name in names)
        if os.path.lexists(whole):
            with self._reading(whole):
                return from_json(read_regular(whole, LONGEST_TOKENIZER).decode("utf-8"))
        if os.path.lexists(vocabulary) and os.path.lexists(merges):
            with self._reading(vocabulary):
                return BPETokenizer.from_gpt2(vocabulary, merges)
        if os.path.lexists(pieces):
            start, end = (self._settings.get(name) is True for name in ("add_bos_token", "add_eos_token"))
            with self._reading(pieces):
                return from_sentencepiece(read_regular(pieces, LONGEST_TOKENIZER), start=start, end=end)
        if os.path.lexists(words):
            with self._reading(words):
                return from_wordpiece(
                    read_regular(words, LONGEST_TOKENIZER).decode("utf-8"),
                    small_letters=self._settings.get("do_lower_case") is not False,
                    without_accents=self._settings.get("strip_accents"),
                    splits_chinese=self._settings.get("tokenize_chinese_chars") is not False,
                )
        return None

    def _of_marian(self) -> MarianTokenizer:
        usual = {"unk_token": "<unk>", "eos_token": "</s>", "pad_token": "<pad>"} | self.named
        first, second, table = (self.folder / name for name in MARIAN)
        with self._reading(table):
            ids = parse_json(read_regular(table, LONGEST_TOKENIZER), MOST_SETTINGS, exactly=True)
            if not isinstance(ids, dict):
                raise ValueError("it is not a table of pieces and their ids")
            pieces = sorted(ids, key=lambda piece: ids[piece] if isinstance(ids[piece], int) else -1)
            if [ids[piece] for piece in pieces] != list(range(len(pieces))):
                raise ValueError(f"its ids must run from 0 to {len(pieces) - 1}")
        with reading(first):
            source, target = (read_regular(file, LONGEST_TOKENIZER) for file in (first, second))
            return MarianTokenizer(source, target, pieces, usual["unk_token"], usual["eos_token"], usual["pad_token"])

    def ends(self, configured: object, tokenizer: Tokenizer | None) -> tuple[int, ...]:
        """The tokens that end a text: those at which other programs stop generating, and the tokenizer's end token.

        Args:
            configured: the value in config.json; that in generation_config.json comes first.
            tokenizer: to look up the id of the token that the tokenizer's settings name.
        """
        found = self._fields("generation_config.json").get("eos_token_id", configured)
        ids = [one for one in (found if isinstance(found, list) else [found]) if type(one) is int and one >= 0]
        if tokenizer is not None:
            ids = [one for one in ids if one < tokenizer.vocab_size]
            named = tokenizer.id_of(self.named.get("eos_token", ""))
            ids += [] if named is None else [named]
        return tuple(dict.fromkeys(ids))

    def chat(self) -> ChatTemplate | None:
        """How a chat is written, or None if the folder does not describe it.

        Raises:
            ImportRefusedError: its file is damaged or too long.
        """
        file = self.folder / "chat_template.jinja"
        template = self._settings.get("chat_template")
        if os.path.lexists(file):
            with reading(file):
                template = read_regular(file, LONGEST_SETTINGS).decode("utf-8")
        if isinstance(template, list):
            named = {one.get("name"): one.get("template") for one in template if isinstance(one, dict)}
            template = named.get(PLAIN)
        if not isinstance(template, str) or not template:
            return None
        chat = ChatTemplate(template, self.named)
        with reading(file):
            chat.check_length()
        return chat
