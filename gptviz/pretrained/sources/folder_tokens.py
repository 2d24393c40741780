"""Reading from the files of a model's folder its tokenizer, its special tokens, and how a chat is
written.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from gptviz.machine.bounded import parse_json, read_regular
from gptviz.text import Tokenizer, from_json
from gptviz.text.chat import ChatTemplate
from gptviz.text.tokenizers.bpe import BPETokenizer, by_id
from gptviz.text.tokenizers.byte_pairs import GPT2, byte_pairs
from gptviz.text.tokenizers.marian import MarianTokenizer
from gptviz.text.tokenizers.sentencepiece import SpaceBefore, from_sentencepiece
from gptviz.text.tokenizers.wordpiece import from_wordpiece

from ..families import ImportRefusedError
from .tensors import reading
from .tokenizer_settings import (
    CLASSES,
    Token,
    TokenizerClass,
    added_tokens,
    class_name,
    special_tokens,
)

# bytes
LONGEST_TOKENIZER = 64 * 2**20
LONGEST_SETTINGS = 4 * 2**20
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
    """The description of tokens in the files of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        #: the name of the file that the tokenizer was read from last; empty for none
        self.file = ""

    @contextmanager
    def _reading(self, path: Path) -> Iterator[None]:
        """Note that the tokenizer is in this file."""
        self.file = path.name
        with reading(path):
            yield

    def _fields(self, name: str) -> dict[str, Any]:
        """The fields of a file with settings, none if there is no such file."""
        file = self.folder / name
        if not os.path.lexists(file):
            return {}
        with reading(file):
            fields = parse_json(read_regular(file, LONGEST_SETTINGS), MOST_SETTINGS)
            if not isinstance(fields, dict):
                raise ValueError("it is not a table of fields")
        return fields

    @cached_property
    def _settings(self) -> dict[str, Any]:
        """What tokenizer_config.json says; unless it lists added tokens, what
        special_tokens_map.json says comes first.
        """
        settings = self._fields("tokenizer_config.json")
        if "added_tokens_decoder" in settings:
            return settings
        return settings | self._fields("special_tokens_map.json")

    @cached_property
    def _class_name(self) -> str:
        return class_name(self._settings, self._fields("config.json"))

    @property
    def _class(self) -> TokenizerClass:
        return CLASSES.get(self._class_name, TokenizerClass())

    @cached_property
    def _special_tokens(self) -> dict[str, Token]:
        with reading(self.folder / "tokenizer_config.json"):
            return special_tokens(self._settings, self._class.special)

    @property
    def special_texts(self) -> dict[str, str]:
        """The texts of special tokens by their names, such as `bos_token`."""
        return {name: token["content"] for name, token in self._special_tokens.items()}

    @cached_property
    def _settings_tokens(self) -> tuple[list[Token], list[Token]]:
        """The tokens that the settings add, as `added_tokens` gives them."""
        if "added_tokens_decoder" in self._settings:
            ids = {}
        else:
            ids = self._fields("added_tokens.json")
        with reading(self.folder / "tokenizer_config.json"):
            return added_tokens(self._settings, self._special_tokens, ids)

    @property
    def languages(self) -> tuple[str, str] | None:
        """The languages that a translator reads and writes, such as "en" and "de", or None if the
        folder does not name both.
        """
        source, target = (self._settings.get(name) for name in LANGUAGES)
        if isinstance(source, str) and isinstance(target, str) and source and target:
            return (source, target)
        return None

    def tokenizer(self) -> Tokenizer | None:
        """The tokenizer, or None if there is none.

        It is read from `source.spm`, `target.spm` and `vocab.json`, from `tokenizer.json`, from
        `vocab.json` and `merges.txt`, from `tokenizer.model`, or from `vocab.txt`.
        """
        if all(os.path.lexists(self.folder / name) for name in MARIAN):
            return self._of_marian()
        names = ("tokenizer.json", "vocab.json", "merges.txt", "tokenizer.model", "vocab.txt")
        whole, vocabulary, merges, pieces, words = (self.folder / name for name in names)
        if os.path.lexists(whole):
            with self._reading(whole):
                tokenizer = from_json(read_regular(whole, LONGEST_TOKENIZER).decode("utf-8"))
                if isinstance(tokenizer, BPETokenizer):
                    return tokenizer.with_tokens(*self._settings_tokens)
                return tokenizer
        if os.path.lexists(vocabulary) and os.path.lexists(merges):
            return self._of_merges(vocabulary, merges)
        if os.path.lexists(pieces):
            with self._reading(pieces):
                start, end = self._adds_around
                content = read_regular(pieces, LONGEST_TOKENIZER)
                return self._frame_tokenizer(
                    from_sentencepiece(
                        content, start=start, end=end, space_before=self._space_before
                    )
                )
        if os.path.lexists(words):
            return self._of_words(words)
        return None

    @property
    def _adds_around(self) -> tuple[bool, bool]:
        """Whether the settings put a token before a text, and one after it."""
        return self._settings.get("add_bos_token") is True, self._settings.get(
            "add_eos_token"
        ) is True

    def _frame_tokenizer(self, tokenizer: BPETokenizer) -> BPETokenizer:
        """The tokenizer with the tokens that the settings add, and with those that they name put
        around a text.
        """
        whole = tokenizer.with_tokens(*self._settings_tokens)
        start, end = self._adds_around
        names = self._class.around or ("bos_token" if start else "", "eos_token" if end else "")
        places = [whole.id_of(self.special_texts.get(name, "")) for name in names]
        usual = (whole.before, whole.after)
        return whole.with_frame(
            *(
                around if place is None else (place,)
                for place, around in zip(places, usual, strict=True)
            )
        )

    def _of_merges(self, vocabulary: Path, merges: Path) -> BPETokenizer:
        if self._class_name and self._class.cut is None:
            raise ImportRefusedError(
                f"tokenizer_config.json: the class is {self._class_name!r:.60}; gptviz reads "
                "vocab.json and merges.txt of "
                f"{', '.join(name for name, kind in CLASSES.items() if kind.cut)}: save the "
                "tokenizer as tokenizer.json too, as "
                "transformers' save_pretrained does"
            )
        cut = replace(
            self._class.cut or GPT2, space_before=self._settings.get("add_prefix_space") is True
        )
        with self._reading(merges):
            lines = read_regular(merges, LONGEST_TOKENIZER).decode("utf-8").split("\n")
        with self._reading(vocabulary):
            tokens = by_id(_ids(vocabulary))
            rules = [line for line in lines if line and not line.startswith("#version")]
            return self._frame_tokenizer(byte_pairs(tokens, rules, [], [], cut))

    @property
    def _space_before(self) -> SpaceBefore | None:
        """Where a space is put that the text of a `tokenizer.model` does not have; None for as that
        file says.
        """
        if self._settings.get("add_prefix_space") is False or self._class_name == "GemmaTokenizer":
            return SpaceBefore.NOTHING
        if self._class_name != "LlamaTokenizer":
            return None
        if self._settings.get("legacy") is True:
            return SpaceBefore.PARTS
        return SpaceBefore.TEXT

    def _of_words(self, words: Path) -> BPETokenizer:
        with self._reading(words):
            usual = {**CLASSES["BertTokenizer"].special, **self.special_texts}
            made = from_wordpiece(
                read_regular(words, LONGEST_TOKENIZER).decode("utf-8"),
                small_letters=self._settings.get("do_lower_case") is not False,
                without_accents=self._settings.get("strip_accents"),
                splits_chinese=self._settings.get("tokenize_chinese_chars") is not False,
                special=(usual["unk_token"], usual["cls_token"], usual["sep_token"]),
            )
            return made.with_tokens(*self._settings_tokens)

    def _of_marian(self) -> MarianTokenizer:
        usual = {
            "unk_token": "<unk>",
            "eos_token": "</s>",
            "pad_token": "<pad>",
        } | self.special_texts
        first, second, table = (self.folder / name for name in MARIAN)
        with self._reading(table):
            ids = _ids(table)
            pieces = [*filter(None, by_id(ids))]
            if len(pieces) != max(ids.values()) + 1:
                raise ValueError(f"its ids must run from 0 to {len(pieces) - 1}")
        if others := [
            token["content"]
            for tokens in self._settings_tokens
            for token in tokens
            if token["content"] not in ids
        ]:
            raise ImportRefusedError(
                f"the settings add {others[0]!r:.60} to Marian's vocabulary, which gptviz does "
                "not read"
            )
        with reading(first):
            source, target = (read_regular(file, LONGEST_TOKENIZER) for file in (first, second))
            return MarianTokenizer(
                source, target, pieces, usual["unk_token"], usual["eos_token"], usual["pad_token"]
            )

    def end_tokens(self, configured: object, tokenizer: Tokenizer | None) -> tuple[int, ...]:
        """The tokens that end a text: the end token of the `tokenizer`, and those at which other
        programs stop generating, by generation_config.json or else what config.json has
        `configured`.
        """
        ends = self._fields("generation_config.json").get("eos_token_id", configured)
        ids = [
            token
            for token in (ends if isinstance(ends, list) else [ends])
            if type(token) is int and token >= 0
        ]
        if tokenizer is not None:
            ids = [token for token in ids if token < tokenizer.vocab_size]
            named = tokenizer.id_of(self.special_texts.get("eos_token", ""))
            ids += [] if named is None else [named]
        return tuple(dict.fromkeys(ids))

    def chat(self) -> ChatTemplate | None:
        """How a chat is written, or None if the folder does not describe it."""
        file = self.folder / "chat_template.jinja"
        template = self._settings.get("chat_template")
        if os.path.lexists(file):
            with reading(file):
                template = read_regular(file, LONGEST_SETTINGS).decode("utf-8")
        if isinstance(template, list):
            named = {
                entry.get("name"): entry.get("template")
                for entry in template
                if isinstance(entry, dict)
            }
            template = named.get(PLAIN)
        if not isinstance(template, str) or not template:
            return None
        chat = ChatTemplate(template, self.special_texts)
        with reading(file):
            chat.check_length()
        return chat


def _ids(file: Path) -> dict[str, int]:
    """The ids of the tokens in a file that is a table of them."""
    ids = parse_json(read_regular(file, LONGEST_TOKENIZER), MOST_SETTINGS, exactly=True)
    if not isinstance(ids, dict) or not all(type(place) is int for place in ids.values()):
        raise ValueError("it is not a table of tokens and their ids")
    return ids
