"""`python -m tests.versions`: the wheel in fresh environments with the lowest and the highest
versions that it allows.

In each the tests of the library run, which need no browser. Before that `uvx` opens the app from
the wheel. On Linux two versions of torch are gigabytes to fetch, unless UV_TORCH_BACKEND=cpu asks
for its builds for processors.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from functools import partial
from pathlib import Path

from tests.waiting import app_answers, on_a_free_port

ROOT = Path(__file__).resolve().parents[1]
TESTED = ("model", "interp", "generate", "text", "figures", "test_language_model.py", "test_cli.py")
# These read files of the checkout, which is not there.
LEFT_OUT = (
    "tests/interp/reading/test_anatomy.py::test_the_lines_of_a_box_are_those_of_the_file",
    "tests/figures/kit/test_theme.py::test_figures_and_streamlit_have_one_theme",
    "tests/figures/kit/test_theme.py::test_the_heads_of_the_explorer_have_the_colours_of_runs",
)
# What the tests themselves import, in the versions of requirements-dev.txt.
TOOLS = ("pytest", "pytest-xdist", "hypothesis", "transformers")
# uv does not read what pip is told about where packages come from.
SAME = {"PIP_FIND_LINKS": "UV_FIND_LINKS", "PIP_CONSTRAINT": "UV_CONSTRAINT"}
VARIABLES = os.environ | {new: os.environ[old] for old, new in SAME.items() if old in os.environ}
UV = [sys.executable, "-m", "uv"]


def tools() -> list[str]:
    """The lines of requirements-dev.txt for `TOOLS`."""
    return re.findall(
        rf"^(?:{'|'.join(TOOLS)})==.*$",
        (ROOT / "requirements-dev.txt").read_text(encoding="utf-8"),
        re.MULTILINE,
    )


def seconds_to_open(wheel: Path, folder: Path) -> float:
    """How long `uvx --from WHEEL gptviz app` takes in an empty folder until the app answers, once
    all packages are fetched.
    """
    empty = folder / "empty"
    empty.mkdir()
    variables = VARIABLES | {"GPTVIZ_HOME": str(folder / "home")}
    command = [
        *UV,
        "tool",
        "run",
        "--isolated",
        "--python",
        sys.executable,
        "--constraints",
        str(ROOT / "constraints.txt"),
    ]
    command += ["--from", str(wheel), "gptviz"]
    subprocess.run(
        [*command, "--help"], cwd=empty, env=variables, check=True, stdout=subprocess.DEVNULL
    )
    log = folder / "log"

    def start(port: int) -> subprocess.Popen[bytes]:
        options = ["app", f"--server.port={port}", "--server.headless=true"]
        with log.open("w") as output:
            return subprocess.Popen(
                [*command, *options],
                cwd=empty,
                env=variables,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    begun = time.monotonic()
    process, _ = on_a_free_port(start, partial(app_answers, log))
    seconds = time.monotonic() - begun
    process.terminate()
    process.wait()
    return seconds


def tested(resolution: str, wheel: Path, folder: Path) -> bool:
    """Whether the tests pass in a new environment in `folder`, with the `resolution` that uv is
    asked for.
    """
    python = str(folder / ("Scripts" if sys.platform == "win32" else "bin") / "python")
    subprocess.run(
        [*UV, "venv", "--quiet", "--python", sys.executable, folder], check=True, env=VARIABLES
    )
    # Only what is asked for directly is installed in its lowest version: so the wheel's own
    # requirements are.
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    required = [*project["dependencies"], *project["optional-dependencies"]["umap"]]
    asked = [str(wheel), *required, *tools()]
    # Without --python it would be the environment that uv itself is in.
    install = [*UV, "pip", "install", "--quiet", "--python", python, "--resolution", resolution]
    subprocess.run([*install, *asked], check=True, env=VARIABLES)
    subprocess.run([*UV, "pip", "freeze", "--python", python], check=True, env=VARIABLES)
    copy = folder / "checked"  # the tests alone: gptviz is the installed one
    shutil.copytree(ROOT / "tests", copy / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "checkpoints", copy / "checkpoints")
    shutil.copy(ROOT / "pyproject.toml", copy)
    command = [
        python,
        "-m",
        "pytest",
        "-n",
        "2",
        "-m",
        "not full and not browser",
        *(f"tests/{name}" for name in TESTED),
    ]
    command += [f"--deselect={one}" for one in LEFT_OUT]
    return subprocess.run(command, cwd=copy, env=VARIABLES).returncode == 0


def main() -> int:
    """The exit status: 0 if the tests pass in both."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        build = [
            sys.executable,
            "-m",
            "hatchling",
            "build",
            "--target",
            "wheel",
            "--directory",
            folder / "dist",
        ]
        subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
        (wheel,) = (folder / "dist").glob("*.whl")
        print(f"uvx opens the app in {seconds_to_open(wheel, folder):.0f} seconds")
        passed = {
            resolution: tested(resolution, wheel, folder / resolution)
            for resolution in ("lowest-direct", "highest")
        }
    print(
        *(f"{name}: {'passed' if is_good else 'FAILED'}" for name, is_good in passed.items()),
        sep="\n",
    )
    return 0 if all(passed.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
