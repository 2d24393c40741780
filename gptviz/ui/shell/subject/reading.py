"""How a model reads a text: how many of its tokens, and which special tokens beside them."""

from __future__ import annotations

from gptviz.language_model import LanguageModel
from gptviz.model.kinds import MODEL_KINDS
from gptviz.text.tokenizers.special_tokens import SpecialTokensTokenizer


def capacity(lm: LanguageModel) -> int:
    """How many tokens of a text the model reads: its context. An encoder's context has to hold the end token too."""
    context = lm.model.config.context_length
    return context - 1 if _end_tokens(lm) else context


def tokens_read(lm: LanguageModel, ids: list[int]) -> list[int]:
    """The part of the text `ids` that the model reads: a decoder reads its end, other models its beginning. An encoder reads the
    end token too.
    """
    if MODEL_KINDS[lm.model.config.kind].reads_end:
        return ids[-capacity(lm) :]
    return [*lm.tokenizer.beginning(ids, capacity(lm)), *_end_tokens(lm)]


def _end_tokens(lm: LanguageModel) -> list[int]:
    """The end token that an encoder–decoder reads after a text; nothing for other models."""
    if lm.model.config.kind == "encoder-decoder" and isinstance(lm.tokenizer, SpecialTokensTokenizer):
        return [lm.tokenizer.end]
    return []


def is_spaced(lm: LanguageModel) -> bool:
    """Whether a text shows with a gap between its tokens."""
    return lm.tokenizer.is_spaced
