"""The commands of the command line: every `Command` of these files and those derived from pages, in
the order of the help.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from .common import Command
from .derived import DERIVED

_values = [
    value
    for file in iter_modules(__path__)
    for value in vars(import_module(f"{__name__}.{file.name}")).values()
]
_own = [value for value in _values if isinstance(value, Command)]
COMMANDS = sorted([*_own, *DERIVED], key=lambda command: command.place)
