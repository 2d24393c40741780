r"""The server's log: if an error quotes a text of a visitor or a model, that can neither begin a
line nor control a terminal.

Such characters are written as escapes (`\n`, `\x1b`, `\u202e`). The lines of a traceback that name
the place in the code are left unchanged.
"""

from __future__ import annotations

import logging
import re
import threading
import traceback
from collections.abc import Iterator
from typing import Any

from gptviz.machine.terminal import escape_text

# The line of a traceback that names a place in the code; in a group of errors it begins with `|`.
_PLACE = re.compile(r"[ |+-]*File \"")


class EscapedRecord(logging.LogRecord):
    """The logged message, escaped before any handler writes it."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        if self.exc_info and self.exc_info[1] is not None:
            self.exc_text = _traceback(self.exc_info[1])  # a formatter uses this text if it is set

    def getMessage(self) -> str:  # noqa: N802
        """The message in one line."""
        return _in_one_line(super().getMessage())


def protect() -> None:
    """From now on, escape everything that this process logs, and log each error that ends a
    thread.
    """
    logging.setLogRecordFactory(EscapedRecord)
    threading.excepthook = _log_end


def _log_end(ended: threading.ExceptHookArgs) -> None:
    if ended.exc_value is not None and not isinstance(ended.exc_value, SystemExit):
        name = ended.thread.name if ended.thread else "?"
        logging.getLogger("gptviz").error(
            "The thread %s ended by an error", name, exc_info=ended.exc_value
        )


def _traceback(error: BaseException) -> str:
    """The traceback of an error and of those that caused it; each error says its text in one
    line.
    """
    known = traceback.TracebackException.from_exception(error)
    for one in _all_errors(known):
        if isinstance(one.__notes__, list):  # else each line of a note would become a separate note
            one.__notes__ = [
                _in_one_line(note) if isinstance(note, str) else note for note in one.__notes__
            ]
    parts = (part.rstrip("\n") for part in known.format())
    return "\n".join(
        escape_text(part) if _PLACE.match(part) else _in_one_line(part.strip("\n"))
        for part in parts
    )


def _all_errors(
    known: traceback.TracebackException | None,
) -> Iterator[traceback.TracebackException]:
    """An error, those that caused it, and those of its group."""
    if known is not None:
        yield known
        for other in (known.__cause__, known.__context__, *(known.exceptions or ())):
            yield from _all_errors(other)


def _in_one_line(text: str) -> str:
    return escape_text(text).replace("\n", r"\n")
