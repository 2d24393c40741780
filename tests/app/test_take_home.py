"""Files to take home: how many are written at a time, and what the process that writes one is
told.
"""

from __future__ import annotations

import json
from pathlib import Path
from threading import Event, Semaphore, Thread
from types import SimpleNamespace
from typing import Any

import pytest

from gptviz.ui.shell.around import take_home
from tests.waiting import PATIENCE, wait_until


class Process:
    """Stands for the processes: each ends when it is let."""

    def __init__(self) -> None:
        self.going = 0
        self.most = 0
        self.let = Semaphore(0)
        self.told: list[tuple[list[str], Any]] = []

    def __call__(self, command: list[str], *, input: str, **how: Any) -> SimpleNamespace:
        self.told.append((command, json.loads(input)))
        self.going += 1
        self.most = max(self.most, self.going)
        assert self.let.acquire(timeout=PATIENCE)
        self.going -= 1
        Path(command[-1]).write_bytes(b"the file")
        return SimpleNamespace(returncode=0)


def test_a_hundred_who_ask_at_once_start_no_more_than_there_is_room_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    process = Process()
    refused = []
    files = []
    monkeypatch.setattr(take_home.subprocess, "run", process)
    begin = Event()

    def ask() -> None:
        begin.wait()
        try:
            files.append(take_home.written_file("lens", {}, "html"))
        except RuntimeError as error:
            refused.append(str(error))

    visitors = [Thread(target=ask) for _ in range(100)]
    for visitor in visitors:
        visitor.start()
    begin.set()
    taken = take_home.AT_ONCE + take_home.MOST_WAITING
    wait_until(lambda: len(refused) == 100 - taken and process.going == take_home.AT_ONCE)
    process.let.release(taken)
    for visitor in visitors:
        visitor.join()
    assert files == [b"the file"] * taken
    assert process.most == take_home.AT_ONCE
    assert set(refused) == {"2 files are being written and 2 wait: try again a little later"}
    process.let.release()
    assert take_home.written_file("lens", {}, "html") == b"the file", "there is room again"


def test_nothing_of_an_address_is_a_word_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    process = Process()
    process.let.release()
    monkeypatch.setattr(take_home.subprocess, "run", process)
    query = {"prompt": "a\0b\n$(id)" + "x" * 1_000_000, "--out": "/etc/passwd", "a=b": "--device=x"}
    take_home.written_file("lens", query, "html")
    ((command, told),) = process.told
    assert told == query
    assert command[1:6] == ["-m", "gptviz", "export", "lens", "--state"]
    assert len(command) == 9


def test_one_that_takes_too_long_or_fails_gives_its_place_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def late(command: list[str], **how: Any) -> None:
        raise take_home.subprocess.TimeoutExpired(command, how["timeout"])

    monkeypatch.setattr(take_home.subprocess, "run", late)
    for _ in range(take_home.AT_ONCE + take_home.MOST_WAITING + 1):
        with pytest.raises(RuntimeError, match="was not written within 300 seconds"):
            take_home.written_file("lens", {}, "html")
    failing = SimpleNamespace(returncode=2, stderr="a warning\nthere is no page 'x'\n")
    monkeypatch.setattr(take_home.subprocess, "run", lambda *_, **how: failing)
    with pytest.raises(RuntimeError, match="^there is no page 'x'$"):
        take_home.written_file("x", {}, "html")
