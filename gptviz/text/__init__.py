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
from .labelled import LabelledTexts, labelled_of, opinions, read_labelled, texts_of
from .marked import MarkedTokenizer
from .pairs import PAIR_TASKS, Pairs, PairTask, pairs_of, read_pairs
from .symbols import SymbolTokenizer
from .tasks import TASKS, Examples, Task, task
from .tokenizer import Encoding, Tokenizer, Unknown, from_json
from .visible import KINDS, character_name, kind_of_text, visible
from .words import WordTokenizer, words_of

__all__ = [
    "KINDS",
    "PAIR_TASKS",
    "TASKS",
    "BPETokenizer",
    "CharTokenizer",
    "Corpus",
    "CorpusUnavailableError",
    "Encoding",
    "Examples",
    "LabelledTexts",
    "MarkedTokenizer",
    "Offer",
    "PairTask",
    "Pairs",
    "SymbolTokenizer",
    "Task",
    "Tokenizer",
    "Unknown",
    "WordTokenizer",
    "character_name",
    "corpora",
    "corpus_of",
    "from_json",
    "kind_of_text",
    "labelled_of",
    "opinions",
    "pairs_of",
    "python_reference",
    "read_corpus",
    "read_labelled",
    "read_pairs",
    "recall",
    "remember",
    "task",
    "texts_of",
    "tiny_shakespeare",
    "visible",
    "words_of",
]
