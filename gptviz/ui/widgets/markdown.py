"""Text of a user or a model inside Streamlit's messages and labels, which read Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from zlib import crc32

import streamlit as st

from gptviz.figures.kit.format import format_ordinal

from .words import explain_word, words_in


def escape_markdown(text: str) -> str:
    """Markdown that shows `text` unchanged, on one line: no punctuation mark has a special
    meaning.
    """
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", " ".join(text.split()))


def capitalise_text(text: str) -> str:
    """The text as the beginning of a sentence: its first letter is a capital."""
    return text[:1].upper() + text[1:]


def in_quotes(text: str) -> str:
    """A token, or another piece of text, for use in a sentence: in quotation marks, as Markdown
    that shows it unchanged.
    """
    return f"“{escape_markdown(text)}”"


def name_place(words: Sequence[str], place: int) -> str:
    """The word at a place of a text, as Markdown; where the text has it more than once, which of
    them: "the 2nd “to”".
    """
    word = words[place]
    places = [at for at, other in enumerate(words) if other == word]
    if len(places) == 1:
        return in_quotes(word)
    return f"the {format_ordinal(places.index(place) + 1)} {in_quotes(word)}"


def say_answer(sentence: str, then: str = "", *, help: str | None = None) -> None:
    """The sentence, as Markdown, that answers the title of a page: in bold, above the picture, with
    what there is to say `then`. The words of the field in both are explained beside it, after
    `help`.
    """
    explained = [explain_word(word) for word in words_in(f"{sentence} {then}")]
    about = "\n\n".join([*([help] if help else []), *explained])
    # by its key a phone shows it above the controls of the page
    with st.container(key=f"answer {crc32(sentence.encode())}"):
        st.markdown(f"**{sentence}** {then}".rstrip(), help=about or None)
