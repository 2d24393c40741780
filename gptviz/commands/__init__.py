"""The commands of the command line: each file but `common` has the record of one, `COMMAND`."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from .common import Command

_files = [file.name for file in iter_modules(__path__) if file.name != "common"]
_records: list[Command] = [import_module(f"{__name__}.{file}").COMMAND for file in _files]
COMMANDS = sorted(_records, key=lambda command: command.place)
