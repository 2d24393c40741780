"""How many threads find a core each."""

from __future__ import annotations

from math import inf
from pathlib import Path
from time import monotonic, process_time
from types import SimpleNamespace

import psutil
import pytest
import torch

from gptviz.machine import cores
from gptviz.machine.cores import SHARED, SPAN, FreeCores, idle_seconds


def test_a_core_is_free_that_no_other_process_uses() -> None:
    now = [0.0]
    idle = [100.0]
    free = FreeCores(lambda: now[0], lambda: idle[0])
    now[0], idle[0] = SPAN / 2, 101.0
    assert free.count() == inf, "too short a time"
    now[0], idle[0] = 2.0, 103.0
    assert free.count() == 1.5
    now[0], idle[0] = 2.0 + SPAN / 2, 103.0
    assert free.count() == 1.5
    now[0] = 4.0
    assert free.count() == 0.0
    now[0], idle[0] = 6.0, inf
    assert free.count() == inf, "a system that does not say it"


@pytest.mark.parametrize(("numbers", "expected"), [([1], 20.0), ([4, 5], 30.0)])
def test_the_cores_are_those_that_the_process_may_use_or_those_of_its_container(
    monkeypatch: pytest.MonkeyPatch, numbers: list[int], expected: float
) -> None:
    own = SimpleNamespace(cpu_affinity=lambda: numbers, cpu_times=lambda: (0.0, 0.0, 99.0))
    monkeypatch.setattr(cores.psutil, "Process", lambda: own)
    monkeypatch.setattr(
        cores.psutil,
        "cpu_times",
        lambda percpu: [SimpleNamespace(idle=10.0), SimpleNamespace(idle=20.0)],
    )
    assert idle_seconds() == expected
    monkeypatch.setattr(cores.psutil, "cpu_times", lambda percpu: [SimpleNamespace(idle=0.0)] * 2)
    assert idle_seconds() == inf
    monkeypatch.setattr(own, "cpu_affinity", lambda: Path("/there is no such file").read_text())
    assert idle_seconds() == inf


def test_what_this_process_does_itself_takes_no_core_from_it() -> None:
    before = idle_seconds()
    begun = monotonic()
    works = process_time()
    while process_time() - works < 0.3:
        pass
    assert 0.25 < idle_seconds() - before < (psutil.cpu_count() or 1) * (monotonic() - begun) + 0.3


@pytest.mark.parametrize(
    ("free", "expected"), [(8.0, 8), (inf, 8), (7 - SHARED, 7), (6.9 - SHARED, 6), (0.2, 1)]
)
def test_there_are_as_many_threads_as_cores_that_are_nearly_free(
    monkeypatch: pytest.MonkeyPatch, free: float, expected: int
) -> None:
    monkeypatch.setattr(FreeCores, "count", lambda self: free)
    assert FreeCores().threads(8) == expected


def test_a_shared_computation_takes_the_cores_that_are_free_and_leaves_the_threads_as_they_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = torch.get_num_threads()
    monkeypatch.setattr(cores.FreeCores, "count", lambda _: 0.2)
    with cores.sharing() as share:
        share()
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before
    monkeypatch.setattr(cores.FreeCores, "count", lambda _: inf)
    with cores.sharing(most=1) as share:
        share()
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before
