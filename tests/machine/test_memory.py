"""Memory that a process keeps, and memory that it gives back."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Large arrays, written and freed again; how many pages the system handed out for them.
PAGES = """
import resource, torch
from gptviz.machine.memory import keep_memory
if {keeps}:
    keep_memory()
def step():
    for megabytes in (40, 48, 56):
        torch.ones(megabytes * 2**18)
step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="of glibc")
def test_memory_that_is_kept_is_not_asked_of_the_system_again() -> None:
    pages = [
        int(subprocess.run([sys.executable, "-c", PAGES.format(keeps=keeps)], capture_output=True, text=True, check=True).stdout)
        for keeps in (False, True)
    ]
    assert pages[1] < pages[0] / 4, pages
