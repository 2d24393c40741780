"""The vocabulary of a model, for maps and lists of tokens."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from gptviz.text import Tokenizer
from gptviz.text.visible_form import unique_names
from gptviz.ui.shell.subject import ModelKey, language_model


@dataclass(frozen=True)
class Vocabulary:
    """The vocabulary, by id: the label of a token on axes, its unique name in the list of tokens,
    and its kind.
    """

    labels: tuple[str, ...]
    names: tuple[str, ...]
    kinds: tuple[str, ...]


# Kept for all sessions: those of a large vocabulary take a moment to make.
@st.cache_resource(max_entries=3, show_spinner=False)
def labels(key: ModelKey) -> tuple[str, ...]:
    """The visible forms of all tokens, by id."""
    return tuple(language_model(key).tokenizer.labels())


def tokens(key: ModelKey) -> Vocabulary:
    """The vocabulary of the model, the same at every step of its training."""
    return _tokens(key.name, key.tokenizer, language_model(key).tokenizer)


@st.cache_resource(max_entries=4, show_spinner=False)
def _tokens(name: str, written: float, _tokenizer: Tokenizer) -> Vocabulary:
    tokenizer = _tokenizer
    labels = tuple(tokenizer.labels())
    kinds = tuple(map(tokenizer.kind_of, range(len(labels))))
    return Vocabulary(labels, unique_names(labels), kinds)
