"""The button below the prompt of a model that was trained on chats: the prompt as the turn of a
user, and back.
"""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from gptviz.text.chat import ChatError, ChatTemplate
from gptviz.ui.widgets import capitalise_text, escape_markdown

# A character that no text contains, in place of the message; the key of the session's state for why
# a message was refused.
_MESSAGE = "\ue5f7"
_REFUSED = "chat turn refused"


@dataclass(frozen=True)
class Frame:
    """The text that a template puts around a message."""

    before: str = ""  #: the text before the message
    after: str = ""  #: the text after it, up to where the model's answer begins
    problem: str = ""  #: why there is no such text; empty if there is

    def message(self, prompt: str) -> str | None:
        """The message in a prompt that is a turn; None for any other prompt."""
        is_turn = (
            prompt.startswith(self.before)
            and prompt.endswith(self.after)
            and (self.before or self.after)
        )
        long_enough = len(prompt) >= len(self.before) + len(self.after)
        if is_turn and long_enough:
            return prompt[len(self.before) : len(prompt) - len(self.after)]
        return None


def chat_turn_button(chat: ChatTemplate, prompt: str) -> None:
    """The button that makes the prompt a turn of a chat, or takes the message out of the turn
    again.
    """
    frame = frame_of(chat)
    if problem := st.session_state.pop(_REFUSED, frame.problem):
        st.caption(escape_markdown(f"{capitalise_text(problem)}."))
    if frame.problem:
        return
    message = frame.message(prompt)
    if message is None:
        st.button(
            "As a chat turn",
            icon=":material/chat_bubble:",
            type="tertiary",
            key="as a chat turn",
            on_click=_fill,
            args=(chat, prompt),
            help="Write around the prompt what this model was trained to read around the message "
            "of a user. The tokens that mark "
            "turns, such as <|im_start|>, then stand among the tokens of the prompt.",
        )
    else:
        st.button(
            "As plain text",
            icon=":material/notes:",
            type="tertiary",
            key="as plain text",
            on_click=st.session_state.update,
            args=({"prompt": message},),
            help="Take the message out of the chat turn.",
        )


def frame_of(chat: ChatTemplate) -> Frame:
    """What a template puts around a message."""
    return _frame(chat.template, tuple(sorted(chat.tokens.items())))


@st.cache_data(max_entries=16, show_spinner=False)
def _frame(template: str, tokens: tuple[tuple[str, str], ...]) -> Frame:
    try:
        before, message, after = (
            ChatTemplate(template, dict(tokens)).turn(_MESSAGE).partition(_MESSAGE)
        )
    except ChatError as error:
        return Frame(problem=str(error))
    if message:
        return Frame(before, after)
    return Frame(problem="the chat template leaves the message out")


def _fill(chat: ChatTemplate, message: str) -> None:
    try:
        st.session_state["prompt"] = chat.turn(message)
    except ChatError as error:
        st.session_state[_REFUSED] = str(error)
