"""Windows and macOS, as far as they can be judged from here: what the standard library lacks there is not used there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.full  # half a minute for each system, and few changes use what a system lacks
@pytest.mark.parametrize("system", ["win32", "darwin"])
def test_the_types_hold_on_other_systems(system: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mypy", "--platform", system, "--cache-dir", str(tmp_path)]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert checked.returncode == 0, checked.stdout
