"""A tokenizer as the `tokenizers` library reads it: the content of a Hugging Face
tokenizer.json.
"""

from __future__ import annotations

from gptviz.machine.bounded import SURROGATE

from .base import Tokenizer
from .bpe import BPETokenizer
from .characters import CharTokenizer
from .padded import PaddedTokenizer
from .symbols import SymbolTokenizer

# White space as Python splits at it: four more characters than in the library.
_WHITE_SPACE = r"[\s\x1c-\x1f]+"


def tokenizers_json(tokenizer: Tokenizer) -> str | None:
    """The JSON of a tokenizer of the library that gives the same ids, or None if the library has
    none like it.

    Unused tokens at the end are left out: a model may have more rows than its tokenizer has tokens.
    """
    from tokenizers import Regex, decoders, models, pre_tokenizers
    from tokenizers import Tokenizer as Backend

    if isinstance(tokenizer, PaddedTokenizer):
        return tokenizers_json(tokenizer.inner)
    if isinstance(tokenizer, BPETokenizer):
        return tokenizer.to_json()
    if isinstance(tokenizer, CharTokenizer):
        # Byte-pair encoding that merges nothing. A lone surrogate is no text, so that no text is
        # read as its token.
        tokens = [
            SURROGATE.sub(lambda lone: f"<U+{ord(lone[0]):X}>", character)
            for character in tokenizer.characters
        ]
        vocabulary = {token: place for place, token in enumerate(tokens)}
        backend = Backend(
            models.BPE(
                vocab=vocabulary, merges=[], unk_token=tokens[tokenizer.stand_in], fuse_unk=False
            )
        )
        backend.decoder = decoders.Fuse()  # nothing stands between two characters
        return backend.to_str()
    if isinstance(tokenizer, SymbolTokenizer):
        vocabulary = {symbol: place for place, symbol in enumerate(tokenizer.words)}
        backend = Backend(models.WordLevel(vocab=vocabulary, unk_token=tokenizer.words[0]))
        backend.pre_tokenizer = pre_tokenizers.Split(Regex(_WHITE_SPACE), behavior="removed")
        return backend.to_str()
    return None
