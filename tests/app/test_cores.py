"""How the visitors of a server share the cores."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from gptviz.ui.shell.around import cores
from gptviz.ui.shell.around.cores import RECENT, Visitors


def test_those_are_there_who_asked_for_something_of_late() -> None:
    now = [0.0]
    visitors = Visitors(lambda: now[0])
    assert [visitors.count(name) for name in "aba"] == [1, 2, 2]
    now[0] = RECENT
    assert visitors.count("c") == 3
    now[0] = RECENT + 1
    assert visitors.count("c") == 1


def test_each_computes_on_a_share_of_the_cores_and_one_alone_on_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = torch.get_num_threads()
    now = [0.0]
    asked = SimpleNamespace(session="", free=8)
    monkeypatch.setattr(cores, "_thread_count", lambda: 8)
    monkeypatch.setattr(cores, "_visitors", Visitors(lambda: now[0]))
    monkeypatch.setattr(cores, "session", lambda: asked.session)
    monkeypatch.setattr(
        cores, "_cores", SimpleNamespace(threads=lambda most: min(most, asked.free))
    )
    threads = []
    try:
        for asked.session in [*"aaabc", *map(str, range(30))]:
            cores.share()
            threads.append(torch.get_num_threads())
        now[0] = 2 * RECENT
        for asked.free in (8, 7, 1):
            cores.share()
            threads.append(torch.get_num_threads())
    finally:
        torch.set_num_threads(before)
    assert (threads[:5], threads[-4:]) == ([8, 8, 8, 4, 2], [1, 8, 7, 1])
