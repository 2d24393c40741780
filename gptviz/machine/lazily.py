"""Names of a package that are imported when they are asked for."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def lazily(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package whose file imports its names only below
    `if TYPE_CHECKING:`.

    What takes long to import (torch: a second) is imported for those who need it. And a thread that
    imports the package never waits for one that imports a module of it, which waits for the
    package.
    """
    this = sys.modules[package]
    modules = {
        name.name: f"{'.' * line.level}{line.module}"
        for part in ast.parse(Path(str(this.__file__)).read_text(encoding="utf-8")).body
        if isinstance(part, ast.If) and ast.unparse(part.test) == "TYPE_CHECKING"
        for line in part.body
        if isinstance(line, ast.ImportFrom)
        for name in line.names
    }
    every = sorted(modules)

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules[name], package), name)

    return get, lambda: sorted({*vars(this), *every}), every
