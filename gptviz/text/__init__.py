"""Text to tokens and back, and texts and generated tasks to train on. Imports no torch, of gptviz
`settings` and `machine`.
"""

from typing import TYPE_CHECKING

from gptviz.machine.lazily import lazily

if TYPE_CHECKING:
    from .datasets.base import Examples, Task
    from .datasets.corpora import (
        Corpus,
        CorpusUnavailableError,
        NamedCorpus,
        corpora,
        corpus_of,
        python_reference,
        read_corpus,
        recall,
        remember,
        tiny_shakespeare,
    )
    from .datasets.label_order import label_order
    from .datasets.labelled_texts import (
        GENERATED,
        LabelledTexts,
        labelled_of,
        opinions,
        read_labelled,
        starred_opinions,
        texts_of,
    )
    from .datasets.pairs import PAIR_TASKS, Pairs, PairTask, pairs_of, read_pairs
    from .datasets.passages import passages
    from .datasets.tasks import TASKS, task
    from .tokenizers.base import Encoding, Tokenizer, Unknown
    from .tokenizers.bpe import BPETokenizer
    from .tokenizers.characters import CharTokenizer
    from .tokenizers.registry import from_json
    from .tokenizers.special_tokens import SpecialTokensTokenizer
    from .tokenizers.symbols import SymbolTokenizer
    from .tokenizers.words import WordTokenizer, cleaned, words_of
    from .visible_form import TOKEN_KINDS, character_name, kind_of_text, make_visible

__getattr__, __dir__, __all__ = lazily(__name__)
