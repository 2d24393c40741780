"""Who began something decides what it may keep, wherever it runs."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gptviz.machine import files, hosting
from gptviz.machine.hosting import NotAllowedError, carry_rights, variable
from gptviz.machine.job import SLOTS, Job
from gptviz.runs import checkpoints
from gptviz.runs.exports import FORMATS
from gptviz.runs.queue import own_queue
from gptviz.runs.status import mark_waiting
from gptviz.ui.shell.around import take_home
from gptviz.ui.widgets import addresses
from tests.waiting import PATIENCE


@pytest.fixture
def visits(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Lets this thread work for "a guest" of a class, or "the owner"; no other thread is asked."""
    monkeypatch.setenv(variable("lan"), "1")

    def visits(who: str) -> None:
        monkeypatch.setattr(hosting, "_is_guest", lambda: who == "a guest")

    visits("the owner")
    return visits


def reads_only() -> bool:
    return hosting.hosting().read_only


@pytest.mark.parametrize("slots", [SLOTS, None])
def test_a_computation_may_keep_what_who_began_it_may_keep(
    visits: Callable[[str], None], slots: object
) -> None:
    def nested() -> tuple[bool, bool | None]:
        inner = Job("inside", reads_only)
        inner.wait(PATIENCE)
        return reads_only(), inner.value

    begun = {}
    for who in ("a guest", "the owner"):
        visits(who)
        begun[who] = Job(who, nested, slots=slots)
    visits("the owner")
    assert begun["a guest"].result() == (True, True)
    visits("a guest")
    assert begun["the owner"].result() == (False, False)


def test_what_is_carried_into_another_thread_has_the_rights_of_who_carried_it(
    visits: Callable[[str], None],
) -> None:
    visits("a guest")
    of_a_guest = carry_rights(reads_only)
    of_the_server = carry_rights(reads_only, reads_only=False)
    visits("the owner")
    of_the_owner = carry_rights(reads_only)
    visits("a guest")
    with ThreadPoolExecutor(1) as thread:
        found = [thread.submit(act).result() for act in (of_a_guest, of_the_owner, of_the_server)]
        assert found == [True, False, False]
        assert thread.submit(reads_only).result(), "what was carried is over"


def test_a_process_keeps_nothing_for_a_guest_and_all_for_the_owner(
    visits: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    for who, only in (("a guest", True), ("the owner", False)):
        visits(who)
        with monkeypatch.context() as elsewhere:
            elsewhere.setattr(os, "environ", hosting.environment())
            visits("a guest")  # of whom that process knows nothing
            assert hosting.hosting().read_only is only


def test_a_file_for_who_takes_a_page_home_is_written_with_the_rights_of_who_asks(
    visits: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[dict[str, str]] = []
    monkeypatch.setattr(
        take_home.subprocess, "run", lambda *_, env, **__: begun.append(env) or done()
    )

    def done() -> None:
        raise take_home.subprocess.TimeoutExpired("export", 1)

    for who in ("a guest", "the owner"):
        visits(who)
        with pytest.raises(RuntimeError, match="not written within"):
            take_home.written_file("lens", {}, "html")
    assert [bool(env[variable("read_only")]) for env in begun] == [True, False]


def test_in_the_users_folder_nothing_is_written_for_a_guest_and_elsewhere_it_is(
    visits: Callable[[str], None], home: Path, tmp_path: Path
) -> None:
    visits("a guest")
    for path in (home / "a file", home / "exports" / "a file"):
        with (
            pytest.raises(NotAllowedError, match=re.escape(f"({variable('lan')} is set)")),
            files.in_place_of(path) as fresh,
        ):
            fresh.write_text("x")
    assert not list(home.iterdir())
    with files.in_place_of(tmp_path / "a file") as fresh:
        fresh.write_text("x")
    assert (tmp_path / "a file").read_text() == "x"
    visits("the owner")
    with files.in_place_of(home / "a file") as fresh:
        fresh.write_text("x")


def test_a_guest_downloads_a_model_for_which_the_users_folder_is_not_written_to(
    visits: Callable[[str], None], tiny_model: Callable[..., Path]
) -> None:
    folder = tiny_model("mine")
    visits("a guest")
    written = []
    for name, chosen in FORMATS.items():
        if chosen.is_for(folder) and chosen.why_not(folder) is None:
            chosen.write_zip(folder, file := io.BytesIO())
            written += [name] if zipfile.ZipFile(file).namelist() else []
    assert {"zip", "transformers", "python"} <= {*written}


def test_a_guest_ends_no_run_of_who_sits_at_the_server(
    visits: Callable[[str], None],
    tiny_model: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(variable("training"), "0")
    mark_waiting(folder := tiny_model("waits"))
    before = {path: path.read_bytes() for path in folder.iterdir()}
    visits("a guest")
    for end in (own_queue().pause, own_queue().stop):
        with pytest.raises(checkpoints.CheckpointError, match="waits goes on as it is: this"):
            end("waits")
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    visits("the owner")
    own_queue().stop("waits")
    assert own_queue().place("waits") is None
    own_queue().close()


def test_reading_for_a_guest_does_not_say_that_a_text_was_used(
    visits: Callable[[str], None], home: Path
) -> None:
    value = addresses.value_of("x" * 10_000)
    (file,) = (home / "texts").glob("kept-*.txt")
    for who, is_renewed in (("a guest", False), ("the owner", True)):
        os.utime(file, (1e9, 1e9))
        visits(who)
        assert addresses.text_of(value) == "x" * 10_000
        assert (file.stat().st_mtime > 1e9) == is_renewed


def test_a_command_is_that_of_who_gives_it(home: Path) -> None:
    code = "from gptviz.machine.hosting import hosting; print(hosting().read_only)"
    for settings, read_only in (({"lan": "1"}, "False"), ({"read_only": "1"}, "True")):
        environment = {**os.environ, **{variable(name): to for name, to in settings.items()}}
        command = [sys.executable, "-c", code]
        said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert said.stdout.strip() == read_only
