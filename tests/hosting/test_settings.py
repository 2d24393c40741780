"""The settings of a server: each is enforced where it counts, and one that makes no sense is
rejected.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest
import torch

from gptviz import language_model
from gptviz.__main__ import main
from gptviz.commands import app
from gptviz.language_model import LanguageModel
from gptviz.machine import hosting as hosting_module
from gptviz.machine import memory
from gptviz.machine.hosting import Hosting, NotAllowedError, hosting, upload_limit, variable
from gptviz.model.costs.memory_needed import MemoryNeeded
from gptviz.pretrained.places import stores
from gptviz.runs import checkpoints, imports, manage, queue, sharing
from gptviz.runs.experiments import PLANS
from gptviz.runs.names import claim_name
from gptviz.runs.status import read_status
from gptviz.settings.fields import field_info
from gptviz.text import tiny_shakespeare
from gptviz.ui.pages.open_model import here
from gptviz.ui.shell.subject import long_prompts, models
from gptviz.ui.widgets import addresses
from tests.app.opening import ROOT, button, opened, says
from tests.command_line import Capture, error
from tests.small_runs import text_run

SMALLEST_MEMORY = float(field_info(Hosting, "memory").low or 0)
# Opens pages one after the other in one process, and prints what each says and how many figures and
# views it has.
SIX_PAGES = """
from tests.app.opening import charts, opened, says, views
for page in ("app", *(f"pages/{name}" for name in ("next_token", "generate", "attention", "stream", "patching"))):
    at = opened(f"{page}.py")
    print(page, len(charts(at)) + len(views(at)), [one.value for one in (*at.error, *at.exception)], "of memory" in says(at))
"""


def test_without_settings_all_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    for one in fields(Hosting):
        monkeypatch.delenv(variable(one.name), raising=False)
    assert hosting() == Hosting()
    assert upload_limit(10) == 10


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("read_only", "perhaps"),
        ("longest_text", "0"),
        ("longest_text", "many"),
        ("uploads", "-1"),
        ("minutes", "0"),
        ("minutes", "nan"),
        ("training", "1.5"),
        ("memory", "1"),
        ("only", "attention,lense"),
        ("only", " , "),
        ("pseudonyms", "perhaps"),
        ("memory", f"{SMALLEST_MEMORY - 0.1}"),
    ],
)
def test_a_value_that_makes_no_sense_is_an_error_that_names_the_variable(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(variable(name), value)
    with pytest.raises(ValueError, match=variable(name)):
        hosting()


def test_a_read_only_server_keeps_nothing(
    monkeypatch: pytest.MonkeyPatch,
    tiny_model: Callable[..., Path],
    tmp_path: Path,
    capsys: Capture,
) -> None:
    folder = tiny_model("mine")
    sharing.pack(folder, tmp_path / "mine.zip")
    before = sorted(path for path in folder.parent.parent.rglob("*"))
    monkeypatch.setenv(variable("read_only"), "1")
    refused = {
        "trained": lambda: queue.submit("mine"),
        "renamed": lambda: manage.rename("mine", "other"),
        "deleted": lambda: manage.delete("mine"),
        "unpacked": lambda: sharing.unpack(tmp_path / "mine.zip"),
        "claimed": lambda: claim_name("other").__enter__(),
    }
    for act in refused.values():
        with pytest.raises(
            checkpoints.CheckpointError, match="this server shows models and keeps nothing"
        ):
            act()
    with pytest.raises(OSError, match="keeps no texts"):
        addresses.value_of("x" * 10_000)
    with pytest.raises(NotAllowedError, match="Tiny Shakespeare is not fetched"):
        tiny_shakespeare()
    runs = opened("pages/runs.py", model="mine")
    assert button(runs, "Delete").disabled
    train = opened("pages/train.py", plan="generator")
    assert "Fetch it now" not in {one.label for one in train.button}
    assert "is not on this server, which keeps nothing" in says(train)
    assert addresses.value_of("short") == "short"
    assert upload_limit(10) is None
    assert "GPTVIZ_READ_ONLY" in error(capsys, "train", "reversal", "--name", "new", "--steps", "1")
    assert sorted(path for path in folder.parent.parent.rglob("*")) == before


def test_of_a_class_those_on_other_machines_only_read(
    monkeypatch: pytest.MonkeyPatch, tiny_model: Callable[..., Path]
) -> None:
    tiny_model("mine")
    monkeypatch.setattr(hosting_module, "_is_guest", lambda: True)
    assert not hosting().read_only, "this is no server for a class"
    monkeypatch.setenv(variable("lan"), "1")
    assert hosting().read_only
    hosting_module.guests_are(lambda: True)
    with pytest.raises(
        checkpoints.CheckpointError, match="this server shows models and keeps nothing"
    ):
        manage.delete("mine")
    hosting_module.guests_are(lambda: False)
    assert not hosting().read_only
    assert not button(opened("pages/runs.py", model="mine"), "Delete").disabled


def test_a_server_for_a_class_answers_its_network_within_limits_that_can_be_set(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    begun: list[list[str]] = []
    monkeypatch.setattr(app.os, "execv", lambda _, command: begun.append(command))
    monkeypatch.setattr(app, "own_address", lambda: "10.0.0.7")
    monkeypatch.setattr(app.os, "environ", {variable("longest_text"): "500"})
    assert main(["app", "--lan", "--server.port=8600"]) == 0
    assert "--server.address=0.0.0.0" in begun[0]
    assert (app.os.environ[variable("lan")], app.os.environ[variable("longest_text")]) == (
        "1",
        "500",
    )
    assert float(app.os.environ[variable("memory")]) > 0
    assert "http://10.0.0.7:8600" in capsys.readouterr().out
    # a value may stand after its option, as it may for Streamlit
    typed = ["--server.port", "8600", "--server.headless", "true"]
    assert main(["app", "--lan", *typed]) == 0
    assert begun[1][-4:] == typed
    assert "http://10.0.0.7:8600" in capsys.readouterr().out
    monkeypatch.setattr(app, "own_address", lambda: None)
    assert "this machine is in no network" in error(capsys, "app", "--lan")


def test_what_a_room_opens_is_set_by_options_or_by_variables_and_checked_at_the_start(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    begun: list[list[str]] = []
    monkeypatch.setattr(app.os, "execv", lambda _, command: begun.append(command))
    monkeypatch.setattr(app, "own_address", lambda: "10.0.0.7")
    given = {"start": "attention?model=bpe", "only": "lessons,attention", "pseudonyms": "1"}
    for by_option in (True, False):
        names = {} if by_option else {variable(name): value for name, value in given.items()}
        options = ("--start", given["start"], "--only", given["only"], "--pseudonyms")
        monkeypatch.setattr(app.os, "environ", names)
        assert main(["app", "--lan", *(options if by_option else ())]) == 0
        allowed = hosting()
        assert (allowed.start, allowed.only, allowed.pseudonyms) == (
            *map(given.get, ("start", "only")),
            True,
        )
        assert allowed.pages_of_class == {"lessons", "attention"}
    for options, why in (
        (
            ("--only", "lense"),
            "GPTVIZ_ONLY names 'lense', and there is no such page: did you mean 'lens'",
        ),
        (("--start", "lense"), "GPTVIZ_START is 'lense', which is no lesson and no link"),
        (
            ("--start", "lens", "--only", "lessons"),
            "which opens lens, and GPTVIZ_ONLY leaves that out",
        ),
    ):
        monkeypatch.setattr(app.os, "environ", {})
        assert why in error(capsys, "app", *options)
    assert len(begun) == 2


def test_only_the_models_that_are_named_can_be_opened(
    monkeypatch: pytest.MonkeyPatch, tiny_model: Callable[..., Path]
) -> None:
    tiny_model("mine")
    monkeypatch.setenv(variable("models"), "induction, mine")
    assert set(checkpoints.folders()) == {"induction", "mine"}
    with pytest.raises(checkpoints.CheckpointError, match="no model named 'shakespeare'"):
        checkpoints.find("shakespeare")


@pytest.mark.parametrize("system", ["linux", "darwin", "win32"])
@pytest.mark.parametrize(
    ("machine", "container", "limit", "free"),
    [
        (9_000, None, "", 9_000),
        (9_000, 3_000, "", 3_000),
        (9_000, 3_000, "1000", 600),  # models and texts take 400 MB of the 1,000 already
        (500, 3_000, "1000", 500),
        (9_000, None, "100", 0),
    ],
)
def test_as_much_memory_is_free_as_the_machine_its_container_and_the_setting_all_leave(
    monkeypatch: pytest.MonkeyPatch,
    system: str,
    machine: int,
    container: int | None,
    limit: str,
    free: int,
) -> None:
    monkeypatch.setattr("sys.platform", system)
    monkeypatch.setattr(
        psutil, "virtual_memory", lambda: SimpleNamespace(available=machine * 10**6)
    )
    taken = SimpleNamespace(memory_info=lambda: SimpleNamespace(rss=memory.LIBRARIES + 400 * 10**6))
    monkeypatch.setattr(psutil, "Process", lambda: taken)
    monkeypatch.setattr(
        memory, "_of_container", lambda: None if container is None else container * 10**6
    )
    monkeypatch.setenv(variable("memory"), limit)
    assert memory.free_bytes() == free * 10**6


def test_a_limit_of_memory_counts_what_the_process_takes_beyond_its_libraries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(variable("memory"), "1000")
    monkeypatch.setattr(memory, "LIBRARIES", memory._used_bytes())
    before = memory.free_bytes()
    held = np.ones(25_000_000)
    assert before - memory.free_bytes() == pytest.approx(held.nbytes, rel=0.1)


def test_models_that_are_open_give_way_to_one_that_does_not_fit_beside_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    key = models.model_key("ladder-2", "cpu")
    one = models.language_model(key)
    assert models.language_model(key) is one
    load = language_model.load

    def load_in_little_memory(*arguments: Any, **options: Any) -> LanguageModel:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(memory, "free_bytes", lambda device: 0)
            memory.room(1)  # as the library does before it reads weights
        return load(*arguments, **options)

    monkeypatch.setattr(language_model, "load", load_in_little_memory)
    models.language_model(models.model_key("ladder-1", "cpu"))
    assert models.language_model(key) is not one


@pytest.mark.parametrize("device", ["cpu", torch.device("cpu")])
def test_caches_give_way_to_what_fits_then_and_not_to_what_never_does(
    monkeypatch: pytest.MonkeyPatch, device: Any
) -> None:
    free = [1_000]
    taken = 9_000
    monkeypatch.setattr(memory, "free_bytes", lambda device="cpu": free[0])
    monkeypatch.setattr(memory, "_used_bytes", lambda: taken)
    monkeypatch.setattr(memory, "_caches", [lambda: free.append(free.pop() + 5_000)])
    assert memory.room(900, device) == 1_000
    assert memory.room(9_001, device) == 1_000, "not even an empty process leaves so much"
    assert memory.room(901, device) == 6_000


def test_whoever_decides_whether_something_fits_lets_caches_give_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    needs = MemoryNeeded(weights=2_000, working=0, tokens=1, number=4)
    free: list[int] = []
    monkeypatch.setattr(memory, "free_bytes", lambda device="cpu": free[-1])
    monkeypatch.setattr(memory, "_caches", [lambda: free.append(10**15)])
    monkeypatch.setattr(memory, "_used_bytes", lambda: 10**12)
    config = PLANS["copy"].config
    offer = SimpleNamespace(fields={}, weights=[])
    monkeypatch.setattr(imports, "outline_of", lambda fields: SimpleNamespace(config=config))
    monkeypatch.setattr(imports, "number_bytes", lambda *_: 4)
    decided: dict[str, Callable[[], object]] = {
        "a model of this machine": lambda: here.problem(stores.Summary(needs=needs)) == "",
        "a model of the hub": lambda: imports.too_large(offer) is None,
        "a long prompt": lambda: long_prompts.too_little_memory(config, 20, "cpu") is None,
        "a run": text_run,
    }
    for what, fits in decided.items():
        free[:] = [1_000]
        assert fits(), what
        assert free[-1] == 10**15, what
    only = {
        path.name
        for path in ROOT.glob("gptviz/**/*.py")
        if "memory.free_bytes(" in path.read_text(encoding="utf-8")
    }
    assert only == {"here.py"}, "it shows how much is free"


@pytest.mark.full
def test_with_the_least_memory_that_a_server_can_be_given_its_pages_open(home: Path) -> None:
    environment = os.environ | {variable("memory"): f"{SMALLEST_MEMORY}"}
    done = subprocess.run(
        [sys.executable, "-c", SIX_PAGES], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 6, done.stderr
    for line in lines:
        assert re.fullmatch(r"\S+ [1-9]\d* \[\] False", line), line


def test_a_run_is_stopped_after_its_minutes_and_keeps_what_it_has_learned(
    monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    monkeypatch.setenv(variable("minutes"), "0.0001")
    tiny = [
        "--set",
        "n_layer=1",
        "--set",
        "d_model=8",
        "--steps",
        "100000",
        "--precision",
        "float32",
        "--compile",
        "no",
    ]
    assert main(["train", "copy", "--name", "cut", *tiny]) == 0
    assert read_status(home / "checkpoints" / "cut").state == "stopped"
    assert checkpoints.load(home / "checkpoints" / "cut").model.config.d_model == 8


def test_the_page_about_servers_names_every_setting() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "hosting.md").read_text(encoding="utf-8")
    assert all(f"`{variable(one.name)}`" in page for one in fields(Hosting))


@pytest.mark.parametrize(
    ("settings", "megabytes"),
    [
        ({}, 1_000),
        ({"uploads": "5"}, 5),
        ({"uploads": "0"}, 0),
        ({"read_only": "1", "uploads": "5"}, 0),
    ],
)
def test_the_server_itself_takes_no_larger_file_than_is_allowed(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], megabytes: int
) -> None:
    begun: list[list[str]] = []
    monkeypatch.setattr("os.execv", lambda program, command: begun.append(command))
    for name, value in settings.items():
        monkeypatch.setenv(variable(name), value)
    assert main(["app"]) == 0
    assert f"--server.maxUploadSize={megabytes}" in begun[0]


def test_the_app_does_not_start_with_a_setting_that_makes_no_sense(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path
) -> None:
    monkeypatch.setattr("os.execv", lambda *arguments: pytest.fail("it started"))
    monkeypatch.setenv(variable("minutes"), "ten")
    assert "GPTVIZ_MINUTES is 'ten'" in error(capsys, "app")
    monkeypatch.delenv(variable("minutes"))
    assert "is no folder" in error(capsys, "app", "--lessons", tmp_path / "missing")


def test_the_help_of_the_app_says_what_a_read_only_server_does_not_look_at(capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        main(["app", "--help"])
    assert "looks at no path and at no name of the hub" in " ".join(capsys.readouterr().out.split())
