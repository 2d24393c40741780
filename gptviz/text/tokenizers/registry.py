"""The class with which the JSON of a tokenizer is opened."""

from collections.abc import Callable

from .base import Tokenizer, parse_object
from .bpe import BPETokenizer
from .cased_words import CasedWordTokenizer
from .characters import CharTokenizer
from .marian import MarianTokenizer
from .padded import PaddedTokenizer
from .special_tokens import SpecialTokensTokenizer
from .symbols import SymbolTokenizer
from .words import WordTokenizer

FROM_FIELDS: dict[str, Callable[[dict[str, object]], Tokenizer]] = {
    kind.kind: kind.from_fields
    for kind in (CharTokenizer, SymbolTokenizer, WordTokenizer, CasedWordTokenizer)
}
"""The functions that open the parsed JSON of each kind of tokenizer that has no other tokenizer in it."""


def from_json(text: str) -> Tokenizer:
    """The tokenizer that `to_json` wrote, or a Hugging Face `tokenizer.json` (recognised by its
    `model` key).

    Only data is read, no code is run. A ValueError if the text is anything else; the message says
    what is wrong.
    """
    return _from_fields(parse_object(text), text)


def _from_fields(fields: dict[str, object], text: str | None = None) -> Tokenizer:
    """The tokenizer with this JSON, parsed once: a vocabulary may have 300,000 entries."""
    if "model" in fields:
        return BPETokenizer.from_fields(fields, text)
    kind = fields.get("kind")
    if kind == MarianTokenizer.kind:
        return MarianTokenizer.from_fields(fields)
    if kind == SpecialTokensTokenizer.kind:
        return SpecialTokensTokenizer(_from_fields(SpecialTokensTokenizer.inner_fields(fields)))
    if kind == PaddedTokenizer.kind:
        inner, size = PaddedTokenizer.parts(fields)
        return PaddedTokenizer(_from_fields(inner), size)
    if isinstance(kind, str) and kind in FROM_FIELDS:
        return FROM_FIELDS[kind](fields)
    raise ValueError(
        f"the tokenizer's 'kind' is {kind!r:.80}, which this version cannot open"
        if "kind" in fields
        else "this is not a tokenizer: it has neither a 'kind' nor the 'model' of a Hugging Face "
        "tokenizer.json"
    )
