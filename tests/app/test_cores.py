"""How the visitors of a server share the cores."""

from __future__ import annotations

from pathlib import Path
from time import monotonic, process_time
from types import SimpleNamespace

import psutil
import pytest
import torch

from gptviz.ui.shell.around import cores
from gptviz.ui.shell.around.cores import RECENT, SPAN, FreeCores, Visitors, idle_seconds


def test_those_are_there_who_asked_for_something_of_late() -> None:
    now = [0.0]
    visitors = Visitors(lambda: now[0])
    assert [visitors.count(name) for name in "aba"] == [1, 2, 2]
    now[0] = RECENT
    assert visitors.count("c") == 3
    now[0] = RECENT + 1
    assert visitors.count("c") == 1


def test_each_computes_on_a_share_of_the_cores_and_one_alone_on_all(monkeypatch: pytest.MonkeyPatch) -> None:
    before, now, asked = torch.get_num_threads(), [0.0], SimpleNamespace(session="", free=64.0)
    monkeypatch.setattr(cores, "_all", lambda: 8)
    monkeypatch.setattr(cores, "_visitors", Visitors(lambda: now[0]))
    monkeypatch.setattr(cores, "session", lambda: asked.session)
    monkeypatch.setattr(cores, "_free_cores", SimpleNamespace(count=lambda: asked.free))
    threads = []
    try:
        for asked.session in [*"aaabc", *map(str, range(30))]:
            cores.share()
            threads.append(torch.get_num_threads())
        now[0] = 2 * RECENT
        for asked.free in (64.0, 6.6, 0.2):
            cores.share()
            threads.append(torch.get_num_threads())
    finally:
        torch.set_num_threads(before)
    assert (threads[:5], threads[-4:]) == ([8, 8, 8, 4, 2], [1, 8, 7, 1])


def test_a_core_is_free_that_no_other_process_uses() -> None:
    now, idle = [0.0], [100.0]
    free = FreeCores(lambda: now[0], lambda: idle[0])
    now[0], idle[0] = SPAN / 2, 101.0
    assert free.count() == float("inf"), "too short a time"
    now[0], idle[0] = 2.0, 103.0
    assert free.count() == 1.5
    now[0], idle[0] = 2.0 + SPAN / 2, 103.0
    assert free.count() == 1.5
    now[0] = 4.0
    assert free.count() == 0.0
    now[0], idle[0] = 6.0, float("inf")
    assert free.count() == float("inf"), "a system that does not say it"


@pytest.mark.parametrize(("numbers", "expected"), [([1], 20.0), ([4, 5], 30.0)])
def test_the_cores_are_those_that_the_process_may_use_or_those_of_its_container(
    monkeypatch: pytest.MonkeyPatch, numbers: list[int], expected: float
) -> None:
    own = SimpleNamespace(cpu_affinity=lambda: numbers, cpu_times=lambda: (0.0, 0.0, 99.0))
    monkeypatch.setattr(cores.psutil, "Process", lambda: own)
    monkeypatch.setattr(cores.psutil, "cpu_times", lambda percpu: [SimpleNamespace(idle=10.0), SimpleNamespace(idle=20.0)])
    assert idle_seconds() == expected
    monkeypatch.setattr(cores.psutil, "cpu_times", lambda percpu: [SimpleNamespace(idle=0.0)] * 2)
    assert idle_seconds() == float("inf")
    monkeypatch.setattr(own, "cpu_affinity", lambda: Path("/there is no such file").read_text())
    assert idle_seconds() == float("inf")


def test_what_this_process_does_itself_takes_no_core_from_it() -> None:
    before, begun, works = idle_seconds(), monotonic(), process_time()
    while process_time() - works < 0.3:
        pass
    assert 0.25 < idle_seconds() - before < (psutil.cpu_count() or 1) * (monotonic() - begun) + 0.3
