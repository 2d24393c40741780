"""Vocabularies of characters, as small projects keep them; no file with one can run code here."""

from __future__ import annotations

import os
import pickle
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from gptviz.machine.bounded import read_regular
from gptviz.text import CharTokenizer, Tokenizer

from ..families import ImportRefusedError
from .tensors import reading

LONGEST_META = 4 * 2**20  # bytes
WAY_OUT = "move it away to open the model with the numbers of its tokens as text"


def of_characters(characters: Sequence[str], where: str) -> Tokenizer:
    """The tokenizer with these characters, in the order of their numbers; what is wrong with them
    begins with `where`.
    """
    try:
        tokenizer = CharTokenizer(characters)
    except ValueError as error:
        raise ImportRefusedError(f"{where}: {error}") from None
    if list(tokenizer.characters) != list(characters):  # its ids would stand for other characters
        raise ImportRefusedError(
            f"{where}: the characters are not in their usual order, or one stands twice"
        )
    return tokenizer


def characters_near(path: Path) -> Tokenizer | None:
    """The tokenizer of the characters in nanoGPT's `meta.pkl` next to the file, or None if there is
    no such file.
    """
    file = path.parent / "meta.pkl"
    if not os.path.lexists(file):
        return None
    with reading(file):
        try:
            meta = Plain.content_of(read_regular(file, LONGEST_META))
        except pickle.UnpicklingError:
            raise ImportRefusedError(
                f"{file.name} holds more than characters and numbers, and opening it could run "
                f"code: it is not opened: {WAY_OUT}"
            ) from None
    table = meta.get("itos") if isinstance(meta, dict) else None
    if (
        not isinstance(table, dict)
        or set(table) != set(range(len(table)))
        or not all(isinstance(character, str) for character in table.values())
    ):
        raise ImportRefusedError(
            f"{file.name} has no table itos from numbers to characters: {WAY_OUT}"
        )
    try:
        return of_characters([table[place] for place in range(len(table))], file.name)
    except ImportRefusedError as error:
        raise ImportRefusedError(f"{error}: {WAY_OUT}") from None


class Plain(pickle._Unpickler):
    """Reads texts, numbers, lists and tables; everything that would call a function is refused.

    It is based on the unpickler written in Python: in the one written in C, a few bytes of a file
    can allocate any amount.
    """

    @classmethod
    def content_of(cls, data: bytes) -> Any:
        """The content of a file; an UnpicklingError if it holds what could run code, a ValueError
        if it is damaged.
        """
        try:
            return cls(BytesIO(data)).load()
        except (pickle.UnpicklingError, MemoryError):
            raise
        except Exception as error:  # damaged bytes can raise any error
            raise ValueError(str(error) or type(error).__name__) from None

    def find_class(self, module: str, name: str) -> Any:
        """Refuse it: a class or a function could run code."""
        raise pickle.UnpicklingError(f"{module}.{name}")
