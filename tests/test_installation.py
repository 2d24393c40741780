"""`pip install .`: the wheel, put into an environment of its own, brings the command, the library,
the app and its models.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from email.parser import Parser
from functools import partial
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

import gptviz
from gptviz.model import raw_blocks
from gptviz.model.raw_blocks import PACKAGE
from tests.waiting import app_answers, on_a_free_port

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    folder = tmp_path_factory.mktemp("dist")
    command = [
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "--target",
        "wheel",
        "--directory",
        str(folder),
    ]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of a fresh environment with the wheel in it.

    What gptviz depends on is borrowed from the environment of the tests: installing torch again
    would prove nothing more.
    """
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    programs = folder / ("Scripts" if sys.platform == "win32" else "bin")
    python = programs / "python"
    install = [
        sys.executable,
        "-m",
        "pip",
        f"--python={python}",
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        str(wheel),
    ]
    subprocess.run(install, check=True, capture_output=True)
    asked = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
    )
    Path(asked.stdout.strip(), "borrowed.pth").write_text(
        sysconfig.get_path("purelib"), encoding="utf-8"
    )
    return programs


def run(environment: Path, folder: Path, *command: str) -> str:
    """The output of a command of the environment, called from `folder`."""
    program, *arguments = command
    ended = subprocess.run(
        [environment / program, *arguments],
        cwd=folder,
        env=variables(folder),
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def variables(folder: Path) -> dict[str, str]:
    """The variables of this process, with a home in `folder` and nothing that would lead to the
    checkout.
    """
    return {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {
        "GPTVIZ_HOME": str(folder / "home")
    }


def test_the_wheel_names_its_version_licence_and_what_it_runs_on(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as file:
        name = next(name for name in file.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(file.read(name).decode())
    assert metadata["Version"] == gptviz.__version__
    assert metadata["License-Expression"] == "MIT"
    assert metadata.get_all("License-File") == ["LICENSE", "NOTICE.md"]
    # What is pinned for `make` and the container is what the wheel asks for, in a version that it
    # allows.
    required = [Requirement(one) for one in metadata.get_all("Requires-Dist")]
    allowed = {one.name: one.specifier for one in required if "fast" not in str(one.marker)}
    pinned = {one.name: one.specifier for one in map(Requirement, lines_of("constraints.txt"))}
    assert sorted(lines_of("requirements.txt")) == sorted(allowed)
    for name, versions in allowed.items():
        (pin,) = pinned[name]
        assert pin.operator == "=="
        assert pin.version in versions
        assert all(one.operator == ">=" for one in versions), (
            "no bound above that nothing is known to break"
        )
    # Except for what is called by the addresses of its functions.
    (fast,) = (one for one in required if one.name not in allowed)
    only = f"=={raw_blocks.VERSION}"
    assert (fast.name, str(fast.specifier), str(pinned[fast.name])) == (PACKAGE, only, only)
    tested = next(line for line in lines_of("requirements-dev.txt") if line.startswith(PACKAGE))
    for system, machine, version, has_wheel in (
        ("linux", "x86_64", "3.13", True),
        ("darwin", "arm64", "3.11", True),
        ("win32", "AMD64", "3.12", True),
        ("linux", "x86_64", "3.14", False),
        ("darwin", "x86_64", "3.12", False),
        ("win32", "ARM64", "3.12", False),
    ):
        place = {"sys_platform": system, "platform_machine": machine, "python_version": version}
        for one in (fast, Requirement(tested)):
            assert one.marker.evaluate({**place, "extra": "fast"}) is has_wheel


def test_the_wheel_has_what_explains_each_page(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as file:
        packed = {name for name in file.namelist() if name.endswith("/about.md")}
    written = {file.relative_to(ROOT).as_posix() for file in (ROOT / "gptviz").rglob("about.md")}
    assert len(written) > 20
    assert packed == written


def checked(*command: str | Path) -> None:
    """Run a checker of this environment on the checkout; what it finds fails the test."""
    ended = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_strict_checkers_accept_what_is_published(wheel: Path) -> None:
    checked("twine", "check", "--strict", wheel)
    checked("check_wheel_contents", wheel)
    checked("validate_pyproject", "pyproject.toml")


@pytest.mark.parametrize(
    ("schema", "pattern"),
    [
        ("github-workflows", ".github/workflows/*.yml"),
        ("dependabot", ".github/dependabot.yml"),
        ("github-issue-forms", ".github/ISSUE_TEMPLATE/[!c]*.yml"),
        ("github-issue-config", ".github/ISSUE_TEMPLATE/config.yml"),
        ("citation-file-format", "CITATION.cff"),
        ("compose-spec", "hosting/compose.yaml"),
    ],
)
def test_files_for_other_programs_are_as_their_schemas_say(schema: str, pattern: str) -> None:
    files = sorted(ROOT.glob(pattern))
    assert files
    checked("check_jsonschema", "--builtin-schema", f"vendor.{schema}", *files)


def test_the_version_is_the_same_wherever_it_stands() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert str(citation["version"]) == gptviz.__version__
    (newest, *_) = re.findall(
        r"^## \[(.+)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert newest in (gptviz.__version__, "Unreleased")


def lines_of(name: str) -> list[str]:
    """What a file of requirements names, without its options."""
    return [
        line
        for line in (ROOT / name).read_text(encoding="utf-8").splitlines()
        if line and line[0] not in "#-"
    ]


def test_the_command_helps_and_lists_the_models_that_ship(
    environment: Path, tmp_path: Path
) -> None:
    assert run(environment, tmp_path, "gptviz").startswith("usage: gptviz ")
    listed = run(environment, tmp_path, "gptviz", "models")
    assert all(
        folder.name in listed for folder in (ROOT / "checkpoints").iterdir() if folder.is_dir()
    )


def test_the_library_writes_the_same_text_as_in_a_checkout(
    environment: Path, tmp_path: Path
) -> None:
    options = {"max_new_tokens": 20, "temperature": 0.0}
    code = (
        "import gptviz; print(gptviz.__file__); "
        f"print(gptviz.load('shakespeare').generate('ROMEO:', **{options}), end='')"
    )
    file, _, text = run(environment, tmp_path, "python", "-c", code).partition("\n")
    assert Path(file).is_relative_to(environment.parent)
    assert text == gptviz.load("shakespeare").generate("ROMEO:", **options)


def test_a_page_is_written_without_a_warning(environment: Path, tmp_path: Path) -> None:
    command = [
        environment / "gptviz",
        "export",
        "next_token",
        "--model",
        "ladder-0",
        "--prompt",
        "O Romeo",
        "--out",
        "page.html",
    ]
    ended = subprocess.run(
        command, cwd=tmp_path, env=variables(tmp_path), capture_output=True, text=True
    )
    assert ended.stderr == ""
    assert ended.stdout.startswith("The page next_token is in page.html")


def test_home_runs_from_the_installed_files(environment: Path, tmp_path: Path) -> None:
    code = (
        "from gptviz.machine.location import APP\n"
        "from streamlit.testing.v1 import AppTest\n"
        "at = AppTest.from_file(str(APP), default_timeout=300).run()\n"
        "assert not at.exception, at.exception\n"
        "print(APP, at.title[0].value)"
    )
    printed = run(environment, tmp_path, "python", "-c", code)
    assert printed.startswith(str(environment.parent.resolve()))
    assert "installed" in printed


def test_the_command_app_serves_it_on_this_machine_alone(environment: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"

    def start(port: int) -> subprocess.Popen[bytes]:
        command = [environment / "gptviz", "app", f"--server.port={port}", "--server.headless=true"]
        with log.open("w") as output:
            return subprocess.Popen(
                command,
                cwd=tmp_path,
                env=variables(tmp_path),
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    # The address comes from the app's own settings, which lie beside its script.
    process, _ = on_a_free_port(start, partial(app_answers, log))
    process.terminate()
    process.wait()
