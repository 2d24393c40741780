"""A command of the command line, as a test runs it: in its own process, with what it prints."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from gptviz.__main__ import main

Capture = pytest.CaptureFixture[str]


def output(capture: Capture, *arguments: str | Path) -> str:
    """The output of a command that succeeds, with nothing on stderr."""
    assert main([str(argument) for argument in arguments]) == 0
    printed = capture.readouterr()
    assert printed.err == ""
    return printed.out


def answered(capture: Capture, *arguments: str | Path) -> Any:
    """The values that such a command prints with --json."""
    return json.loads(output(capture, *arguments, "--json"))


def error(capture: Capture, *arguments: str | Path) -> str:
    """The one line that a command that fails prints on stderr; it has printed nothing else, unless a training had begun."""
    try:
        status = main([str(argument) for argument in arguments])
    except SystemExit as ended:
        status = ended.code
    printed = capture.readouterr()
    assert status == 2
    assert re.fullmatch(r"gptviz: [^\n]+\n", printed.err), printed.err
    assert not printed.out or "no longer a number" in printed.err
    return printed.err
