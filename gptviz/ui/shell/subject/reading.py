"""How a model reads a text: how many of its tokens, and with which special tokens."""

from __future__ import annotations

import streamlit as st

from gptviz.language_model import LanguageModel
from gptviz.text import Encoding
from gptviz.text.tokenizers.special_tokens import SpecialTokensTokenizer
from gptviz.ui.widgets import escape_markdown, in_quotes

LONGEST_QUOTE = 40  # characters of a text in a message


def capacity(lm: LanguageModel) -> int:
    """The number of tokens of a text that the model reads: its context. An encoder's context also
    has to hold the end token.
    """
    context = lm.model.config.context_length
    if _end_tokens(lm):
        return context - 1
    return context


def tokens_read(lm: LanguageModel, ids: list[int]) -> list[int]:
    """The part of the text `ids` that the model reads: a decoder reads the end, other models the
    beginning, and an encoder also the end token.
    """
    if lm.kind.continues:
        return ids[-capacity(lm) :]
    return [*lm.tokenizer.beginning(ids, capacity(lm)), *_end_tokens(lm)]


def encode_text(lm: LanguageModel, text: str, then: str) -> Encoding | None:
    """The tokens of a text, or None, with a message, if this tokenizer cannot read it.

    A pattern in a tokenizer from elsewhere may take so many steps for a text that the library gives
    up.

    Args:
        then: the end of the message: what is shown instead, or what to do.
    """
    try:
        return lm.tokenizer.encode(text)
    except ValueError as error:
        quoted = in_quotes(text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]}…")
        st.error(
            f"The tokenizer of {escape_markdown(lm.name)} fails on {quoted} "
            f"({escape_markdown(str(error))}): "
            f"{then}."
        )
        return None


def _end_tokens(lm: LanguageModel) -> list[int]:
    """The end token that an encoder–decoder reads after a text; nothing for other models."""
    if lm.kind.has_source and isinstance(lm.tokenizer, SpecialTokensTokenizer):
        return [lm.tokenizer.end]
    return []
