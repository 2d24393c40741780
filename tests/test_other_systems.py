"""Windows and macOS, as far as they can be judged from here: what the standard library lacks there is not used there."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
Complaints = Callable[[str, str], set[str]]
# Of other packages nothing is read, which takes a tenth of the time: mypy complains of that on each system alike.
ALONE = ("--no-site-packages", "--ignore-missing-imports", "--no-error-summary")


@pytest.fixture(scope="module")
def complaints(tmp_path_factory: pytest.TempPathFactory) -> Complaints:
    """What mypy says of a package or a file if the system is this one."""

    @functools.cache
    def of(system: str, what: str) -> set[str]:
        cache = tmp_path_factory.mktemp("cache")
        command = [sys.executable, "-m", "mypy", "--platform", system, "--cache-dir", str(cache), *ALONE, what]
        checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)
        assert checked.returncode in (0, 1), checked.stdout + checked.stderr
        return set(checked.stdout.splitlines())

    return of


@pytest.mark.full
@pytest.mark.parametrize("system", ["win32", "darwin"])
def test_on_another_system_the_types_hold_as_on_this_one(complaints: Complaints, system: str) -> None:
    assert sorted(complaints(system, "gptviz") - complaints("linux", "gptviz")) == []


@pytest.mark.full
def test_what_a_system_lacks_is_noticed(complaints: Complaints, tmp_path: Path) -> None:
    file = tmp_path / "used.py"
    file.write_text("import os\nimport sys\n\nos.fork()\nif sys.platform == 'linux':\n    os.sched_getaffinity(0)\n")
    assert not complaints("linux", str(file))
    (lacking,) = complaints("win32", str(file))
    assert 'has no attribute "fork"' in lacking
