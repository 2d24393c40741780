"""The app as the image starts it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.waiting import app_answers, on_a_free_port

ROOT = Path(__file__).resolve().parents[2]
HOSTING = ROOT / "hosting"


def is_healthy(environment: dict[str, str]) -> bool:
    return not subprocess.run(
        [sys.executable, str(HOSTING / "health.py")], env=environment
    ).returncode


@contextmanager
def started(
    home: Path, **settings: str
) -> Iterator[tuple[subprocess.Popen[bytes], dict[str, str]]]:
    """The app as the image starts it, once it answers, and the environment of its process.

    Its output is in the file "log" next to its home.
    """
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = os.environ | {"PATH": path, "GPTVIZ_HOME": str(home), "ADDRESS": "127.0.0.1"}
    environment |= {"PYTHONPATH": str(ROOT), **settings}
    # in the image the package is installed
    if not (Path(sys.executable).parent / "gptviz").exists():
        command = home.parent / "bin" / "gptviz"
        command.parent.mkdir()
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -m gptviz "$@"\n')
        command.chmod(0o755)
        environment["PATH"] = os.pathsep.join([str(command.parent), path])
    log = home.parent / "log"

    def start(port: int) -> subprocess.Popen[bytes]:
        environment["PORT"] = str(port)
        with log.open("w") as output:
            return subprocess.Popen(
                [str(HOSTING / "start.sh")],
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    process, _ = on_a_free_port(start, partial(app_answers, log))
    try:
        yield process, environment
    finally:
        process.kill()
        process.wait()
