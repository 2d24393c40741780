"""Errors in words: no number of the system is shown."""

from __future__ import annotations

import ast
import errno
import os
from pathlib import Path
from urllib.error import URLError

import pytest
from safetensors import safe_open

from gptviz.machine.errors import reason_of

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("number", sorted(errno.errorcode))
def test_the_words_of_the_system_stay_and_its_number_goes(number: int) -> None:
    for error in (OSError(number, os.strerror(number)), URLError(OSError(number, "no answer"))):
        assert not any(sign in reason_of(error) for sign in ("Errno", "["))
    assert reason_of(OSError(number, os.strerror(number), "a.txt")) == (
        f"{os.strerror(number)}: 'a.txt'"
    )
    assert reason_of(ValueError("a [list] is no (set)")) == "a [list] is no (set)"


def test_neither_is_that_of_a_program_in_rust(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file") as caught:
        safe_open(tmp_path / "missing.safetensors", "pt")
    assert "os error" not in reason_of(caught.value)


def test_every_message_about_an_error_of_the_system_says_it_in_words() -> None:
    bare = []
    for file in [*(ROOT / "gptviz").rglob("*.py"), *(ROOT / "pages").rglob("*.py")]:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ExceptHandler) or node.type is None:
                continue
            if "OSError" in ast.unparse(node.type) and node.name in said_bare(node):
                bare.append(f"{file.relative_to(ROOT)}:{node.lineno}")
    assert bare == [], "use gptviz.machine.errors.reason_of"


def said_bare(node: ast.AST) -> set[str]:
    """The names of all that is put into a text as it is."""
    parts = list(ast.walk(node))
    said = [part.value for part in parts if isinstance(part, ast.FormattedValue)]
    said += [
        part.args[0]
        for part in parts
        if isinstance(part, ast.Call) and ast.unparse(part.func) == "str" and part.args
    ]
    return {one.id for one in said if isinstance(one, ast.Name)}
