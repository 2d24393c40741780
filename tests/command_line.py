"""Commands of the command line, and lines of Python in a process of their own, with what they
print.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gptviz.__main__ import main

ROOT = Path(__file__).resolve().parents[1]
Capture = pytest.CaptureFixture[str]


def printed(capture: Capture, *arguments: str | Path) -> tuple[str, str]:
    """What a command that succeeds prints, and what it prints on stderr."""
    capture.readouterr()  # what was printed before
    assert main([str(argument) for argument in arguments]) == 0
    out, err = capture.readouterr()
    return out, err


def output(capture: Capture, *arguments: str | Path) -> str:
    """The output of a command that succeeds, with nothing on stderr."""
    out, err = printed(capture, *arguments)
    assert err == ""
    return out


def answered(capture: Capture, *arguments: str | Path) -> Any:
    """The values that such a command prints with --json."""
    return json.loads(output(capture, *arguments, "--json"))


def error(capture: Capture, *arguments: str | Path) -> str:
    """The one line that a command that fails prints on stderr; it has printed nothing else."""
    capture.readouterr()  # what was printed before
    try:
        status = main([str(argument) for argument in arguments])
    except SystemExit as ended:
        status = ended.code
    printed = capture.readouterr()
    assert status == 2
    assert re.fullmatch(r"gptviz: [^\n]+\n", printed.err), printed.err
    assert not printed.out
    return printed.err


def printed_elsewhere(code: str) -> str:
    """The output of lines of Python that are run in another process, in the folder of the
    project.
    """
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
