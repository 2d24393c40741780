"""The commands by which a button of the page asks a view to show something. Only the browser knows
what was chosen before.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ViewCommand:
    """A command to a view to show something."""

    asked: Mapping[str, Any]  #: the name of a choice → its value
    number: int  #: of the command, each of which is obeyed once; 0 is no command

    @classmethod
    def new_command(cls, asked: Mapping[str, Any]) -> ViewCommand:
        """A new command. The clock gives its number, which must differ from earlier ones even after
        the page was reloaded.
        """
        return cls(asked, time.time_ns() // 1_000_000)

    def undo_command(self) -> ViewCommand:
        """The command that takes this one back: the view shows again what it showed before, which
        only the view knows.
        """
        return ViewCommand.new_command({"back": self.number})


NO_COMMAND = ViewCommand({}, 0)
