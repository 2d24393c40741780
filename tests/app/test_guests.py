"""A guest of a class: whatever is pressed on any page, the folder of who sits at the server stays
as it was.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import streamlit as st
import torch
from streamlit.testing.v1 import AppTest

from gptviz import streamlit_internals
from gptviz.data.text import TaskSource
from gptviz.interp.changing import directions
from gptviz.interp.changing.directions import Direction
from gptviz.machine import job
from gptviz.runs import checkpoints, fitted, manage
from gptviz.runs.queue import own_queue
from gptviz.runs.status import mark_waiting
from gptviz.settings.address_values import NOTED
from gptviz.text import task
from gptviz.ui.menu import PAGES
from gptviz.ui.page import Page
from gptviz.ui.shell.around import take_home
from gptviz.ui.shell.frame import OPEN_PAGE
from tests.app.conftest import OF_KIND, with_snapshots
from tests.app.opening import opened
from tests.tiny import TinyModel, scrambled, tiny
from tests.waiting import PATIENCE

# The controls that decide what a page computes: each of their values is opened.
VIEWS = ("view", "kind")
# Addresses at which more is kept: a model with data of its own, what was typed, a lesson.
MORE = {
    "features": {"model": "learner"},
    "home": {"lesson": "01-tokens"},
    "stream": {"view": "Steering", "toward": "What?\nWho?", "away": "what?\nwho?"},
}
# The pages that could change something in the folder, with what they fit; the others are walked by
# `make test-all`.
KEEPS: dict[str, tuple[str, ...]] = {
    "stream": ("direction-", "case-upper-"),
    **dict.fromkeys(("features", "train", "lens", "runs", "home", "open_model", "neurons"), ()),
}
# The most that is pressed on a page at one address.
MOST_PRESSED = 60


def content(folder: Path) -> dict[str, bytes]:
    """All files of a folder by their paths, and its folders."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in folder.rglob("*")
    }


@pytest.fixture
def downloads(monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[], Any]]:
    """What the buttons for downloads of a page would write, by their keys."""
    found: dict[str, Callable[[], Any]] = {}
    draw = st.download_button

    def drawn(label: str, data: Any, *args: Any, **look: Any) -> bool:
        if callable(data):
            found[look.get("key", label)] = data
        return draw(label, data, *args, **look)

    monkeypatch.setattr(st, "download_button", drawn)
    return found


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The environments of the processes that pages have begun, none of which ran."""
    environments: list[Any] = []

    def run(*args: Any, **options: Any) -> subprocess.CompletedProcess[str]:
        environments.append(options.get("env"))
        return subprocess.CompletedProcess(args, 1, "", "not written here")

    monkeypatch.setattr(take_home.subprocess, "run", run)
    return environments


@pytest.fixture
def owners(
    home: Path, one_of_each: None, tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """The folder of who sits at the server, with something of all that can be kept in it; the pages
    are those of guests.
    """
    for kind in OF_KIND.values():
        with_snapshots(checkpoints.find(kind))
    reversal = task("reversal", vocab=11, length=4)
    learner = scrambled(tiny(vocab_size=reversal.tokenizer.vocab_size))
    card = {"source": TaskSource(reversal).to_dict()}
    checkpoints.save("learner", learner, reversal.tokenizer, card)
    tiny_model("gone")
    manage.delete("gone")
    mark_waiting(tiny_model("waits"))
    directions.keep(Direction("mine-00000000", {0: torch.ones(16)}, np.full(3, np.nan)))
    (home / "corpora").mkdir()
    monkeypatch.setattr(fitted, "_in_memory", {})
    # a queue that trains nothing, so that what waits goes on waiting
    monkeypatch.setenv("GPTVIZ_TRAINING", "0")
    monkeypatch.setenv("GPTVIZ_LAN", "1")
    # the threads of computations and of downloads are those of a server, as the pages are
    monkeypatch.setattr(streamlit_internals, "runtime", SimpleNamespace(exists=lambda: True))
    yield home
    own_queue().close()


def controls(at: AppTest) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What can be pressed on a page, by a name, with what presses it."""
    for button in at.button:
        if not button.disabled:
            yield f"button {button.key or button.label}", button.click
    for switch in (*at.toggle, *at.checkbox):
        if not switch.disabled:
            yield f"switch {switch.key}", lambda it=switch: it.set_value(not it.value)


def settle() -> None:
    """Wait for the end of all computations that a page has begun."""
    for thread in [*job._going.values()]:
        thread.join(PATIENCE)


def press_everything(page: Page, address: dict[str, str], pressed: set[str]) -> AppTest:
    """Press all on the page at this address, one after the other, but for what is `pressed`
    already: it grows. What computes is pressed in any case. Returns the page.
    """
    pressed -= {one for one in pressed if one.startswith("button compute")}
    at = first = opened(page.path, **address)
    for _ in range(MOST_PRESSED):
        settle()
        left = [each for each in controls(at) if each[0] not in pressed]
        if not left:
            break
        name, press = left[0]
        pressed.add(name)
        press()
        try:
            at.run()
        except ValueError:  # Streamlit's test tool cannot send a choice that is no longer offered
            at = opened(page.path, **address)
        if at.session_state[OPEN_PAGE] != page.name:
            at = opened(page.path, **address)
    settle()
    return first


def addresses(at: AppTest, page: Page, usual: dict[str, str]) -> list[dict[str, str]]:
    """The addresses of a page with each of its views, and that at which more can be kept."""
    views = [
        usual | {key: name}
        for key in VIEWS
        if key in at.session_state[NOTED]
        for name in at.session_state[NOTED][key].names
    ]
    return [*views, usual | MORE[page.name]] if page.name in MORE else views


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=() if page.name in KEEPS else pytest.mark.full, id=page.name)
        for page in PAGES.values()
    ],
)
def test_whatever_a_guest_presses_the_owners_folder_stays_as_it_was(
    page: Page,
    owners: Path,
    downloads: dict[str, Callable[[], Any]],
    begun: list[Any],
) -> None:
    before = content(owners)
    pressed = set[str]()
    usual = {"model": OF_KIND[page.kinds[0]]} if page.kinds else {}
    for address in addresses(press_everything(page, usual, pressed), page, usual):
        press_everything(page, address, pressed)
        assert content(owners).keys() == before.keys(), address
    for write in downloads.values():
        with suppress(RuntimeError):  # of the processes that did not run
            write()
    assert pressed
    assert content(owners) == before
    assert all(environment["GPTVIZ_READ_ONLY"] == "1" for environment in begun)
    fitted_for_guests = " ".join(fitted._in_memory)
    assert all(one in fitted_for_guests for one in KEEPS.get(page.name, ()))
