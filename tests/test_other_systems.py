"""Other systems and Pythons, as far as they can be judged from here, and the workflow that tries
them.
"""

from __future__ import annotations

import functools
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
Complaints = Callable[..., set[str]]
# Of other packages nothing is read, which takes a tenth of the time: mypy complains of that on each
# system alike.
ALONE = ("--no-site-packages", "--ignore-missing-imports", "--no-error-summary")

JOBS = yaml.safe_load((ROOT / ".github" / "workflows" / "check.yml").read_text(encoding="utf-8"))[
    "jobs"
]
# The tests that run on other systems and other Pythons.
RUN_ELSEWHERE = [
    word
    for step in JOBS["elsewhere"]["steps"]
    for word in step.get("run", "").split()
    if word.startswith("tests/")
]


def test_the_workflow_tries_every_python_that_the_package_names_with_tests_that_are_there() -> None:
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "classifiers"
    ]
    named = {said for one in classifiers if re.fullmatch(r"3\.\d+", said := one.rpartition(" ")[2])}
    assert {one["python"] for one in JOBS["elsewhere"]["strategy"]["matrix"]["include"]} == named
    assert RUN_ELSEWHERE
    assert all((ROOT / path).exists() for path in RUN_ELSEWHERE)


def test_what_the_workflow_makes_the_makefile_has() -> None:
    made = JOBS["make"]["strategy"]["matrix"]["target"]
    targets = re.findall(
        r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert set(made) <= set(targets)
    assert {
        step["with"]["name"] for step in JOBS["publish"]["steps"] if "download" in step["uses"]
    } <= set(made)


@pytest.fixture(scope="module")
def complaints(tmp_path_factory: pytest.TempPathFactory) -> Complaints:
    """What mypy says of packages and files if the system is this one."""

    @functools.cache
    def of(system: str, *what: str) -> set[str]:
        cache = tmp_path_factory.mktemp("cache")
        command = [
            sys.executable,
            "-m",
            "mypy",
            "--platform",
            system,
            "--cache-dir",
            str(cache),
            *ALONE,
            *what,
        ]
        checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)
        assert checked.returncode in (0, 1), checked.stdout + checked.stderr
        return set(checked.stdout.splitlines())

    return of


@pytest.mark.full
@pytest.mark.parametrize("system", ["win32", "darwin"])
def test_what_runs_on_another_system_uses_nothing_that_its_standard_library_lacks(
    complaints: Complaints, system: str
) -> None:
    what = "gptviz", *RUN_ELSEWHERE
    assert sorted(complaints(system, *what) - complaints("linux", *what)) == []


@pytest.mark.full
def test_what_a_system_lacks_is_noticed(complaints: Complaints, tmp_path: Path) -> None:
    file = tmp_path / "used.py"
    file.write_text(
        "import os\nimport sys\n\nos.fork()\nif sys.platform == 'linux':\n    "
        "os.sched_getaffinity(0)\n"
    )
    assert not complaints("linux", str(file))
    (lacking,) = complaints("win32", str(file))
    assert 'has no attribute "fork"' in lacking
