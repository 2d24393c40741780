"""The image for a server: its files and settings, and the program that it starts; built and started
where docker is.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
import yaml

from gptviz.machine.hosting import Hosting, hosting, variable
from tests.hosting.starting import HOSTING, ROOT, is_healthy, started
from tests.waiting import wait_until


def docker_works() -> bool:
    return (
        shutil.which("docker") is not None
        and not subprocess.run(["docker", "info"], capture_output=True).returncode
    )


@pytest.mark.skipif(sys.platform == "win32", reason="the image is a Linux one")
def test_it_starts_answers_its_health_check_and_ends_when_it_is_asked_to(home: Path) -> None:
    with started(home, **{variable("read_only"): "1"}) as (process, environment):
        assert is_healthy(environment)
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            assert not is_healthy(environment | {"PORT": str(silent.getsockname()[1])})
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: process.poll() is not None)
    assert process.returncode == 0
    assert not list(home.iterdir())


@pytest.mark.parametrize("below", ["", "/course/gptviz"])
def test_the_health_check_asks_below_the_path_at_which_the_app_runs(below: str) -> None:
    asked: list[str] = []

    class App(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200 if self.path == f"{below}/_stcore/health" else 404)
            self.end_headers()

    with HTTPServer(("127.0.0.1", 0), App) as server:
        answering = Thread(target=server.serve_forever)
        answering.start()
        environment = os.environ | {
            "PORT": str(server.server_port),
            "STREAMLIT_SERVER_BASE_URL_PATH": below.strip("/"),
        }
        is_well = is_healthy(environment)
        server.shutdown()
        answering.join()
    assert (is_well, asked) == (True, [f"{below}/_stcore/health"])


def test_the_image_has_all_that_the_app_needs_and_no_more() -> None:
    """The files sent to the build are those of the wheel."""
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert ignored[0] == "*"
    kept = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    steps = (HOSTING / "Dockerfile").read_text().splitlines()
    copied = {word for step in steps if step.startswith("COPY hosting") for word in step.split()}
    assert {path for path in kept if path.startswith("hosting/")} <= copied
    assert all((ROOT / path).exists() for path in kept)
    project = (ROOT / "pyproject.toml").read_text()
    assert {"app.py", "pages", "checkpoints", ".streamlit/config.toml"} <= kept
    assert all(
        f'"{path}" = "gptviz/installed/' in project for path in ("app.py", "pages", "checkpoints")
    )


def test_a_linter_of_dockerfiles_has_nothing_to_say() -> None:
    linter = shutil.which(
        "hadolint", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    )
    if linter is None:
        pytest.skip("hadolint is not here: requirements-dev.txt has it")
    ended = subprocess.run(
        [linter, "--failure-threshold=style", HOSTING / "Dockerfile"],
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stdout


def test_the_settings_that_compose_gives_are_settings_of_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = yaml.safe_load((HOSTING / "compose.yaml").read_text())["services"]["app"]
    assert app["read_only"] is True
    assert {variable(name) for name in Hosting.__dataclass_fields__} >= set(app["environment"])
    for name, value in app["environment"].items():
        monkeypatch.setenv(name, value)
    assert hosting().read_only


def test_a_space_of_a_hub_starts_the_image_at_its_port_as_its_user_and_read_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    front = yaml.safe_load((HOSTING / "space.md").read_text("utf-8").split("---\n")[1])
    image = (HOSTING / "Dockerfile").read_text()
    assert front["sdk"] == "docker"
    assert f"EXPOSE {front['app_port']}\n" in image
    assert "\nUSER 1000\n" in image  # what the hub's documentation of Docker Spaces asks for
    given = re.findall(r"\b(GPTVIZ_READ_ONLY)=(\S+)$", image, re.MULTILINE)
    assert len(given) == 2  # one in the comment, which allows all
    for (name, value), reads_only in zip(given, (False, True), strict=True):
        monkeypatch.setenv(name, value)
        assert hosting().read_only == reads_only


@pytest.mark.full
@pytest.mark.skipif(not docker_works(), reason="there is no docker here")
def test_the_image_is_built_and_answers_with_a_read_only_root_and_two_places_to_write() -> None:
    subprocess.run(
        ["docker", "build", "-f", "hosting/Dockerfile", "-t", "gptviz-test", "."],
        cwd=ROOT,
        check=True,
    )
    run = [
        "docker",
        "run",
        "--rm",
        "--detach",
        "--read-only",
        "--tmpfs",
        "/tmp",
        "--publish",
        "127.0.0.1::8501",
        "gptviz-test",
    ]
    container = subprocess.run(run, check=True, capture_output=True, text=True).stdout.strip()

    def inside(command: str) -> str:
        words = ["docker", "exec", container, "/bin/sh", "-c", command]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()

    try:
        published = subprocess.run(
            ["docker", "port", container, "8501"], check=True, capture_output=True, text=True
        ).stdout
        wait_until(lambda: is_healthy(os.environ | {"PORT": published.strip().rpartition(":")[2]}))
        assert inside("id -u") == "1000"
        tries = (
            "for place in /opt /opt/gptviz / /etc /data /tmp; do touch $place/written 2>/dev/null "
            "&& echo $place; done; true"
        )
        assert inside(tries).split() == ["/data", "/tmp"]
    finally:
        subprocess.run(["docker", "stop", container], check=True, capture_output=True)
