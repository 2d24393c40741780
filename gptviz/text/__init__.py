"""Text to tokens and back, and the texts and generated tasks to train on. Imports nothing else of gptviz, and no torch."""

from .bpe import BPETokenizer
from .characters import CharTokenizer
from .corpora import (
    Corpus,
    CorpusUnavailableError,
    Offer,
    corpora,
    corpus_of,
    python_reference,
    read_corpus,
    recall,
    remember,
    tiny_shakespeare,
)
from .symbols import SymbolTokenizer
from .tasks import TASKS, Examples, Task, task
from .tokenizer import Encoding, Tokenizer, Unknown, from_json
from .visible import KINDS, character_name, kind_of_text, visible

__all__ = [
    "KINDS",
    "TASKS",
    "BPETokenizer",
    "CharTokenizer",
    "Corpus",
    "CorpusUnavailableError",
    "Encoding",
    "Examples",
    "Offer",
    "SymbolTokenizer",
    "Task",
    "Tokenizer",
    "Unknown",
    "character_name",
    "corpora",
    "corpus_of",
    "from_json",
    "kind_of_text",
    "python_reference",
    "read_corpus",
    "recall",
    "remember",
    "task",
    "tiny_shakespeare",
    "visible",
]
