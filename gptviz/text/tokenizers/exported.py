"""A tokenizer as the `tokenizers` library reads it: the content of a Hugging Face tokenizer.json."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gptviz.machine.bounded import SURROGATE

from .base import Tokenizer
from .bpe import BPETokenizer
from .characters import CharTokenizer
from .padded import PaddedTokenizer
from .symbols import SymbolTokenizer

if TYPE_CHECKING:
    import tokenizers

# White space as Python splits at it: four more characters than in the library.
_WHITE_SPACE = r"[\s\x1c-\x1f]+"


def tokenizers_json(tokenizer: Tokenizer) -> str | None:
    """The JSON of a tokenizer of the library that gives the same ids, or None if the library has none like it.

    Unused tokens at the end are left out: a model may have more rows than its tokenizer has tokens.
    """
    if isinstance(tokenizer, PaddedTokenizer):
        return tokenizers_json(tokenizer.inner)
    if isinstance(tokenizer, BPETokenizer):
        return tokenizer.to_json()
    if isinstance(tokenizer, CharTokenizer):
        return _of_characters(tokenizer).to_str()
    if isinstance(tokenizer, SymbolTokenizer):
        return _of_symbols(tokenizer).to_str()
    return None


def _of_characters(tokenizer: CharTokenizer) -> tokenizers.Tokenizer:
    """Byte-pair encoding that merges nothing: each character stays a token."""
    from tokenizers import Tokenizer as Backend
    from tokenizers import decoders, models

    # A lone surrogate is no text, so that no text is read as its token.
    tokens = [SURROGATE.sub(lambda lone: f"<U+{ord(lone[0]):X}>", character) for character in tokenizer.characters]
    vocabulary = {token: place for place, token in enumerate(tokens)}
    backend = Backend(models.BPE(vocab=vocabulary, merges=[], unk_token=tokens[tokenizer.stand_in], fuse_unk=False))
    backend.decoder = decoders.Fuse()  # nothing stands between two characters
    return backend


def _of_symbols(tokenizer: SymbolTokenizer) -> tokenizers.Tokenizer:
    from tokenizers import Regex, models, pre_tokenizers
    from tokenizers import Tokenizer as Backend

    vocabulary = {symbol: place for place, symbol in enumerate(tokenizer.words)}
    backend = Backend(models.WordLevel(vocab=vocabulary, unk_token=tokenizer.words[0]))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(_WHITE_SPACE), behavior="removed")
    return backend
