"""What a server imports before anybody comes, and what it leaves for after the first heading."""

from __future__ import annotations

from threading import Event, Thread
from types import SimpleNamespace

import pytest

from gptviz import serve
from gptviz.ui.shell import frame
from tests.app.opening import opened
from tests.waiting import PATIENCE, wait_until

FRAME = "gptviz.ui.shell.frame"


@pytest.fixture
def imported(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []
    monkeypatch.setattr(
        serve,
        "import_module",
        lambda name: names.append(name) or SimpleNamespace(begun=frame.begun),
    )
    monkeypatch.setattr(frame, "begun", Event())
    return names


def test_torch_waits_until_the_first_page_has_its_heading(
    imported: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "WAITS", PATIENCE)
    thread = Thread(target=serve.get_ready, daemon=True)
    thread.start()
    wait_until(lambda: imported == [FRAME])
    thread.join(0.05)
    assert imported == [FRAME]
    opened("pages/lessons.py")
    thread.join(PATIENCE)
    assert imported == [FRAME, "torch"]


def test_torch_is_ready_for_who_comes_later(
    imported: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "WAITS", 0.0)
    serve.get_ready()
    assert imported == [FRAME, "torch"]
