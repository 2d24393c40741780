"""The image for a server: built and started where docker is; its steps, run by hand, where it is not."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from gptviz.hosting import Hosting, variable
from tests.hosting.starting import HOSTING, ROOT, is_healthy, started
from tests.waiting import free_port, wait_until


def docker_works() -> bool:
    return shutil.which("docker") is not None and not subprocess.run(["docker", "info"], capture_output=True).returncode


@pytest.mark.skipif(sys.platform == "win32", reason="the image is a Linux one")
def test_it_starts_answers_its_health_check_and_ends_when_it_is_asked_to(home: Path) -> None:
    with started(home, **{variable("read_only"): "1"}) as (process, environment):
        assert not is_healthy(environment | {"PORT": str(free_port())})
        wait_until(lambda: is_healthy(environment))
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: process.poll() is not None)
    assert not list(home.iterdir())


def test_the_image_has_all_that_the_app_needs_and_no_more() -> None:
    """What is sent to the build is what the wheel is made of."""
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert ignored[0] == "*"
    kept = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    steps = (HOSTING / "Dockerfile").read_text().splitlines()
    copied = {word for step in steps if step.startswith("COPY hosting") for word in step.split()}
    assert {path for path in kept if path.startswith("hosting/")} <= copied
    assert all((ROOT / path).exists() for path in kept)
    project = (ROOT / "pyproject.toml").read_text()
    assert {"app.py", "pages", "checkpoints", ".streamlit/config.toml"} <= kept
    assert all(f'"{path}" = "gptviz/installed/' in project for path in ("app.py", "pages", "checkpoints"))


def test_the_settings_that_compose_gives_are_settings_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    app = yaml.safe_load((HOSTING / "compose.yaml").read_text())["services"]["app"]
    assert app["read_only"] is True
    assert {variable(name) for name in Hosting.__dataclass_fields__} >= set(app["environment"])
    for name, value in app["environment"].items():
        monkeypatch.setenv(name, value)
    from gptviz.hosting import hosting

    assert hosting().read_only


def has_namespaces() -> bool:
    """Whether this process may mount what only its children see, as the steps of the image need it."""
    if sys.platform != "linux" or os.geteuid() or shutil.which("unshare") is None:
        return False
    return not subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode


@pytest.mark.full
@pytest.mark.skipif(not has_namespaces(), reason="only root may run the steps of the image by hand, on Linux")
def test_the_steps_of_the_image_run_by_hand_give_an_app_that_answers_with_a_read_only_root(tmp_path: Path) -> None:
    alone = ["unshare", "--mount", "--propagation", "private", sys.executable, "-m", "tests.hosting.by_hand"]
    ended = subprocess.run([*alone, str(tmp_path / "image")], cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout.splitlines()[-1])
    assert all(path.startswith("/opt/gptviz/lib/") for path in found.pop("installed"))
    assert found == {
        "healthy before": False,
        "healthy": True,
        "user": 10001,
        "page": 200,
        "writable": ["/data", "/tmp"],
        "ended": 0,
    }


@pytest.mark.full
@pytest.mark.skipif(not docker_works(), reason="there is no docker here")
def test_the_image_is_built_and_answers_with_a_read_only_root() -> None:
    subprocess.run(["docker", "build", "-f", "hosting/Dockerfile", "-t", "gptviz-test", "."], cwd=ROOT, check=True)
    port = free_port()
    run = [
        "docker",
        "run",
        "--rm",
        "--detach",
        "--read-only",
        "--tmpfs",
        "/tmp",
        "--publish",
        f"127.0.0.1:{port}:8501",
        "gptviz-test",
    ]
    container = subprocess.run(run, check=True, capture_output=True, text=True).stdout.strip()
    try:
        wait_until(lambda: is_healthy(os.environ | {"PORT": str(port)}))
        who = subprocess.run(["docker", "exec", container, "id", "-u"], capture_output=True, text=True, check=True).stdout
        assert who.strip() != "0"
    finally:
        subprocess.run(["docker", "stop", container], check=True, capture_output=True)
