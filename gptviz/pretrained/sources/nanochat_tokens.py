"""nanochat's tokenizer: an encoding of tiktoken in a pickle, of which only the tables are read."""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gptviz.machine.bounded import read_regular
from gptviz.text.chat import ChatTemplate
from gptviz.text.tokenizers.bpe import BPETokenizer, byte_alphabet
from gptviz.text.tokenizers.byte_pairs import Cut, byte_pairs

from ..families import ImportRefusedError
from .characters import Plain
from .tensors import reading

LONGEST_TOKENIZER = 64 * 2**20  # bytes
BEGIN = "<|bos|>"
ASSISTANT_END = "<|assistant_end|>"
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<|{{ message['role'] }}_start|>{{ "
    "message['content'] }}"
    "<|{{ message['role'] }}_end|>{% endfor %}{% if add_generation_prompt %}<|assistant_start|>{% "
    "endif %}"
)


class _Encoding:
    """Stands for tiktoken's class of this name, and does nothing but keep its tables."""

    tables: Any = None

    def __setstate__(self, tables: Any) -> None:
        self.tables = tables


class _OnlyTables(Plain):
    """Reads texts, bytes, numbers and tables, and in them one object: tiktoken's encoding, only by
    its tables.
    """

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("tiktoken.core", "Encoding"):
            return _Encoding
        return super().find_class(module, name)


def tokenizer_near(file: Path) -> BPETokenizer | None:
    """The tokenizer beside the weights, in the folder `tokenizer` there, or in that of nanochat
    itself; None without any.
    """
    above = [
        file.parent,
        file.parent / "tokenizer",
        *(folder / "tokenizer" for folder in list(file.parent.parents)[:2]),
    ]
    pickled = next(
        (folder / "tokenizer.pkl" for folder in above if os.path.lexists(folder / "tokenizer.pkl")),
        None,
    )
    if pickled is None:
        return None
    with reading(pickled):
        try:
            tables = getattr(
                _OnlyTables.content_of(read_regular(pickled, LONGEST_TOKENIZER)), "tables", None
            )
        except pickle.UnpicklingError:
            raise ImportRefusedError(
                f"{pickled.name} holds more than the tables of a tokenizer, and opening it could "
                "run code: it is not opened; put "
                "a tokenizer.json in its place, or move it away to read the numbers of tokens as "
                "text"
            ) from None
        return _of_tables(tables)


def _of_tables(tables: Any) -> BPETokenizer:
    """The tokenizer with tiktoken's tables."""
    tables = tables if isinstance(tables, dict) else {}
    ranks = tables.get("mergeable_ranks")
    special = tables.get("special_tokens")
    pattern = tables.get("pat_str")
    if not (isinstance(ranks, dict) and isinstance(special, dict) and isinstance(pattern, str)):
        raise ValueError("it has no tables mergeable_ranks, special_tokens and pat_str")
    if not all(isinstance(token, bytes) and type(rank) is int for token, rank in ranks.items()):
        raise ValueError("its ranks are not those of bytes")
    if not all(isinstance(token, str) and type(place) is int for token, place in special.items()):
        raise ValueError("its special tokens are no texts with numbers")
    letters = {byte: letter for letter, byte in byte_alphabet().items()}
    written = {rank: "".join(letters[byte] for byte in token) for token, rank in ranks.items()}
    written |= {place: token for token, place in special.items()}
    if sorted(written) != list(range(len(ranks) + len(special))):
        raise ValueError("the numbers of its tokens do not run from 0 on")
    merges = []
    for token, rank in sorted(ranks.items(), key=lambda item: item[1]):
        if len(token) > 1 and (pair := _merged_halves(token, rank, ranks)) is not None:
            merges.append(" ".join("".join(letters[byte] for byte in half) for half in pair))
    tokens = [written[place] for place in range(len(written))]
    made = byte_pairs(tokens, merges, sorted(special.values()), [], Cut(pattern))
    if BEGIN not in special:
        return made
    return made.with_frame([special[BEGIN]])


def _merged_halves(
    token: bytes, rank: int, ranks: Mapping[bytes, int]
) -> tuple[bytes, bytes] | None:
    """The two tokens that are merged into this one: what its bytes become by all merges of a lower
    rank.
    """
    parts = [token[place : place + 1] for place in range(len(token))]
    while len(parts) > 2:
        pairs = [
            ranks.get(parts[place] + parts[place + 1], rank) for place in range(len(parts) - 1)
        ]
        best = min(range(len(pairs)), key=pairs.__getitem__)
        if pairs[best] >= rank:
            return None
        parts[best : best + 2] = [parts[best] + parts[best + 1]]
    return parts[0], parts[1]


def chat(tokenizer: BPETokenizer) -> ChatTemplate | None:
    """How a chat is written, or None if the tokenizer lacks the tokens for it."""
    if tokenizer.id_of("<|user_start|>") is None:
        return None
    return ChatTemplate(TEMPLATE, {"bos_token": BEGIN})
