"""Byte-level byte-pair encoding written as a loop, by the rules that GPT-2's paper and the makers
of other models published.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import regex

# The patterns as the model makers published them in their tokenizer.json (Llama 3, Qwen 2, Mistral
# Nemo), and GPT-2's.
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| "
    r"?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| "
    r"?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"
    r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
PATTERNS = {"gpt-2": GPT2, "smollm": GPT2, "llama-bpe": LLAMA3, "qwen2": QWEN2, "tekken": TEKKEN}
_PRINTABLE = [byte for byte in range(256) if chr(byte).isprintable() and chr(byte) != " "]
_OTHERS = [byte for byte in range(256) if byte not in _PRINTABLE]
LETTERS = {byte: chr(byte) for byte in _PRINTABLE} | {
    byte: chr(256 + place) for place, byte in enumerate(_OTHERS)
}
"""GPT-2's alphabet of bytes."""


@dataclass
class Rules:
    """A vocabulary of byte pairs.

    Attributes:
        tokens: by their ids.
        merges: two tokens with a space between, the best first.
        special: tokens that are no text.
        name: of the way to cut a text, one of `PATTERNS`.
        normal: what is done with a text before it is cut.
        whole: whether a word that is a token stays whole, though no merges lead to it.
    """

    tokens: Sequence[str]
    merges: Sequence[str]
    special: Sequence[str]
    name: str = "gpt-2"
    normal: Callable[[str], str] = str
    whole: bool = False

    def __post_init__(self) -> None:
        self.ids, self.ranks = (
            {one: place for place, one in enumerate(each)} for each in (self.tokens, self.merges)
        )

    def encode(self, text: str) -> list[int]:
        """The ids: special tokens, digits apart where the rules say so, the pattern, then merges,
        the best first.
        """
        found = []
        for part in regex.split("(" + "|".join(map(regex.escape, self.special)) + ")", text):
            if part in self.special:
                found.append(self.ids[part])
                continue
            runs = regex.split(r"(\p{N})", part) if self.name == "smollm" else [self.normal(part)]
            for word in (word for run in runs for word in regex.findall(PATTERNS[self.name], run)):
                symbols = [LETTERS[byte] for byte in word.encode()]
                if self.whole and "".join(symbols) in self.ids:
                    symbols = ["".join(symbols)]
                while pairs := [
                    (self.ranks[f"{a} {b}"], at)
                    for at, (a, b) in enumerate(pairwise(symbols))
                    if f"{a} {b}" in self.ranks
                ]:
                    _, at = min(pairs)
                    symbols[at : at + 2] = ["".join(symbols[at : at + 2])]
                found += [self.ids[symbol] for symbol in symbols]
        return found
