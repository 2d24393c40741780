"""Files that not every system can have: a test that asks for one is skipped where there is none."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest


def named_pipe(path: Path) -> None:
    """Make a pipe, from which nothing ever comes."""
    if sys.platform != "win32":
        os.mkfifo(path)
    else:
        pytest.skip("Windows has no pipes among its files")


def odd_name(folder: Path, name: bytes) -> Path:
    r"""A path in the folder whose name is no UTF-8 text, such as b"caf\xe9"."""
    if sys.platform != "linux":
        pytest.skip("only Linux takes such a name")
    return folder / os.fsdecode(name)
