"""Text of a user or a model inside Streamlit's messages and labels, which read Markdown."""

from __future__ import annotations

import re


def escaped(text: str) -> str:
    """Markdown that shows `text` as it is, on one line: every punctuation mark stands for itself."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", " ".join(text.split()))


def in_quotes(text: str) -> str:
    """A token, or another piece of text, as a sentence names it: in quotation marks, as Markdown that shows it as it is."""
    return f"“{escaped(text)}”"
