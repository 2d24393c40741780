"""A chat as one text: the template that a model was trained with, filled in with a message.

A template is a small program in the language of Jinja, and may come from anywhere. It runs in Jinja's sandbox, in a process of
its own (`chat_process.py`) with little memory and little time, and its result is text and nothing else.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gptviz.machine.bounded import SURROGATE

LONGEST_TEMPLATE = 1_000_000  # characters
LONGEST_TEXT = 100_000
# By the clock of the machine, which may be busy with other work.
MOST_SECONDS = 60.0


class ChatError(ValueError):
    """A template that gives no text; the message says why."""


@dataclass(frozen=True)
class ChatTemplate:
    """How a chat is written as one text for a model that was trained on chats.

    Attributes:
        template: in the language of Jinja.
        tokens: the texts of special tokens by the names that the template gives them, such as `bos_token`.
    """

    template: str
    tokens: Mapping[str, str]

    def check_length(self) -> None:
        """Refuse a template that is too long to be kept.

        Raises:
            ChatError: it is.
        """
        if len(self.template) > LONGEST_TEMPLATE:
            raise ChatError(f"the chat template has {len(self.template):,} characters, and {LONGEST_TEMPLATE:,} are the most")

    def turn(self, message: str) -> str:
        """The text of a chat that begins with this message of the user, up to where the model's answer begins.

        Raises:
            ChatError: the template has an error, is too large, takes too long, or refuses the message.
        """
        self.check_length()
        request = {
            "template": self.template,
            "tokens": {name: text for name, text in self.tokens.items() if name.endswith("_token")},
            "messages": [{"role": "user", "content": message}],
            "longest": LONGEST_TEXT,
        }
        command = [sys.executable, "-I", str(Path(__file__).with_name("chat_process.py"))]
        try:
            answer = subprocess.run(command, input=json.dumps(request).encode(), capture_output=True, timeout=MOST_SECONDS).stdout
            fields = json.loads(answer)
        except subprocess.TimeoutExpired:
            raise ChatError("the chat template took too long") from None
        except OSError as error:
            raise ChatError(f"the chat template could not be filled in ({error})") from None
        except ValueError:  # the process was ended: it had no answer
            raise ChatError("the chat template took too long, or too much memory") from None
        if "text" not in fields:
            raise ChatError(f"the chat template cannot be filled in: {fields['error']}")
        if SURROGATE.search(text := str(fields["text"])):
            raise ChatError("the chat template writes a lone surrogate, which is half of a character and no text")
        return text
