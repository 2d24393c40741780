"""Memory that a process keeps, and memory that it gives back."""

from __future__ import annotations

import sys

import pytest

from tests.command_line import printed_elsewhere

# Large arrays, written and freed again; how many pages the system handed out for them, before
# memory is kept and then.
PAGES = """
import resource, torch
from gptviz.machine.memory import keep_memory
def pages():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        for megabytes in (40, 48, 56):
            torch.ones(megabytes * 2**18)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(pages())
keep_memory()
pages()
print(pages())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="of glibc")
def test_memory_that_is_kept_is_not_asked_of_the_system_again() -> None:
    before, kept = map(int, printed_elsewhere(PAGES).split())
    assert kept < before / 4
