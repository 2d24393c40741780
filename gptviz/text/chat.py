"""A chat as one text: the template that a model was trained with, filled in with a message.

A template is a small program in the language of Jinja, and may come from anywhere. It runs in
Jinja's sandbox, in a process of its own (`confined.py`), and its result is text and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gptviz.machine.bounded import SURROGATE
from gptviz.machine.errors import reason_of

from .confined import Confined, EndedError

LONGEST_TEMPLATE = 1_000_000  # characters
LONGEST_TEXT = 100_000


class ChatError(ValueError):
    """A template that gives no text; the message says why."""


@dataclass(frozen=True)
class ChatTemplate:
    """How a chat is written as one text for a model that was trained on chats."""

    template: str  #: in the language of Jinja
    #: the texts of special tokens by the names that the template gives them, such as `bos_token`
    tokens: Mapping[str, str]

    def check_length(self) -> None:
        """Refuse a template that is too long to be kept with a ChatError."""
        if len(self.template) > LONGEST_TEMPLATE:
            raise ChatError(
                f"the chat template has {len(self.template):,} characters, and "
                f"{LONGEST_TEMPLATE:,} are the most"
            )

    def turn(self, message: str) -> str:
        """The text of a chat that begins with this message of the user, up to where the model's
        answer begins. A ChatError if the template has an error, is too large, takes too long, or
        refuses the message.
        """
        self.check_length()
        values = {
            "messages": [{"role": "user", "content": message}],
            "tools": None,
            "documents": None,
            "add_generation_prompt": True,
            **{name: text for name, text in self.tokens.items() if name.endswith("_token")},
        }
        try:
            text: str = Confined().ask(
                "fill", template=self.template, values=values, longest=LONGEST_TEXT
            )
        except EndedError as error:
            raise ChatError(f"the chat template is not filled in: {error}") from None
        except (OSError, ValueError) as error:
            raise ChatError(f"the chat template cannot be filled in: {reason_of(error)}") from None
        if SURROGATE.search(text):
            raise ChatError(
                "the chat template writes a lone surrogate, which is half of a character and no "
                "text"
            )
        return text
