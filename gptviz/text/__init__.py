"""Text to tokens and back, and the texts to train on. Imports nothing else of gptviz, and no torch."""

from .bpe import BPETokenizer
from .characters import CharTokenizer
from .corpora import Corpus, CorpusUnavailableError, Offer, corpora, python_reference, read_corpus, tiny_shakespeare
from .tokenizer import Encoding, Tokenizer, Unknown, from_json
from .visible import KINDS, character_name, kind_of_text, visible

__all__ = [
    "KINDS",
    "BPETokenizer",
    "CharTokenizer",
    "Corpus",
    "CorpusUnavailableError",
    "Encoding",
    "Offer",
    "Tokenizer",
    "Unknown",
    "character_name",
    "corpora",
    "from_json",
    "kind_of_text",
    "python_reference",
    "read_corpus",
    "tiny_shakespeare",
    "visible",
]
