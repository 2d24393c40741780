"""How a model reads a text: how many of its tokens, and with which special tokens."""

from __future__ import annotations

from gptviz.language_model import LanguageModel
from gptviz.model.kinds import MODEL_KINDS
from gptviz.text.tokenizers.special_tokens import SpecialTokensTokenizer


def capacity(lm: LanguageModel) -> int:
    """The number of tokens of a text that the model reads: its context. An encoder's context also has to hold the end token."""
    context = lm.model.config.context_length
    return context - 1 if _end_tokens(lm) else context


def tokens_read(lm: LanguageModel, ids: list[int]) -> list[int]:
    """The part of the text `ids` that the model reads: a decoder reads the end, other models the beginning, and an encoder also
    the end token.
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
