"""A click on a guessed token appends it to the prompt, where that is possible."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from gptviz.language_model import LanguageModel
from gptviz.ui.records.generate import PAGE as GENERATE
from gptviz.ui.shell import frame
from gptviz.ui.shell.subject import Subject
from gptviz.ui.shell.subject.bar import longest_prompt
from gptviz.ui.widgets import addresses, in_quotes

# The key of the session's state that keeps the label of a refused token until the page has said so.
REFUSED = "token not appended"


def prompt_with(lm: LanguageModel, ids: Sequence[int], token: int, prompt: str = "") -> str | None:
    """The prompt that reads as exactly `ids` and then `token`, or None if no prompt does.

    The text of a token may be read as other tokens where it follows another one: a byte-pair
    encoding merges neighbouring letters. A `prompt` that reads as `ids` stays as it was written,
    with the characters that the vocabulary lacks.
    """
    wanted = [*ids, token]
    tokenizer = lm.tokenizer
    for text in (prompt + tokenizer.piece(token), tokenizer.decode(wanted)):
        if len(text) <= longest_prompt() and tokenizer.encode(text).ids == wanted:
            return text
    return None


def append_token(subject: Subject, ids: Sequence[int], token: int) -> None:
    """Set the prompt to `ids`, its beginning, followed by `token`; the page then shows the guess
    after its end.

    If no prompt reads as these tokens, `explain_refusal` says so.
    """
    text = prompt_with(subject.lm, ids, token, subject.prompt)
    if text is None:
        st.session_state[REFUSED] = subject.lm.tokenizer.label(token)
        return
    st.session_state["prompt"] = subject.left_off + text
    addresses.write("position", None)


def explain_refusal() -> None:
    """Say why the token that was clicked last is not in the prompt, and where it can be chosen;
    nothing if it is.
    """
    label = st.session_state.pop(REFUSED, None)
    if label is None:
        return
    st.info(
        f"{in_quotes(label)} was not taken: added to this prompt, its text would be read as other "
        "tokens. The page Generate "
        "keeps each token as it was taken.",
        icon=":material/info:",
    )
    frame.link(GENERATE, "Take it on Generate")
