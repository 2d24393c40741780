"""`make check` checks the scripts of all views where node is there, and fails where that fails;
`make help` lists all targets.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
make = pytest.mark.skipif(shutil.which("make") is None, reason="make is not on this machine")


def check(folder: Path, **programs: str) -> subprocess.CompletedProcess[str]:
    """`make check-js` in a folder without installed packages, where there are no programs but these
    shell scripts.
    """
    for name in ("Makefile", "package.json"):
        shutil.copy(ROOT / name, folder)
    on_path = folder / "programs"
    on_path.mkdir()
    for name, script in {
        "mkdir": 'exec /bin/mkdir "$@"',
        "touch": "mkdir -p node_modules; : > $1",
        **programs,
    }.items():
        (on_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (on_path / name).chmod(0o755)
    command = [str(shutil.which("make")), "check-js"]
    return subprocess.run(
        command, cwd=folder, env={"PATH": str(on_path)}, capture_output=True, text=True
    )


@make
def test_without_node_the_scripts_go_unchecked_and_that_is_said(tmp_path: Path) -> None:
    done = check(tmp_path)
    assert done.returncode == 0
    assert "not checked" in done.stdout


@make
@pytest.mark.parametrize("fails", ["install", "run"])
def test_where_node_is_there_a_failure_of_it_is_a_failure_of_the_check(
    tmp_path: Path, fails: str
) -> None:
    """`fails` is what npm cannot do: bring the packages, or run the check."""
    done = check(tmp_path, node="exit 0", npm=f'[ "$1" != {fails} ]')
    assert done.returncode != 0
    assert "not checked" not in done.stdout


@make
def test_where_all_is_in_order_the_check_passes(tmp_path: Path) -> None:
    assert check(tmp_path, node="exit 0", npm="exit 0").returncode == 0


@make
@pytest.mark.parametrize("width", [40, 1_000])
def test_the_help_has_each_target_with_what_it_says_of_itself(width: int, tmp_path: Path) -> None:
    (tmp_path / "tput").write_text(f"#!/bin/sh\necho {width}\n")
    (tmp_path / "tput").chmod(0o755)
    variables = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    printed = subprocess.run(
        ["make", "-C", ROOT, "-s", "help"],
        env=variables,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert max(map(len, printed.splitlines())) <= width
    targets = re.findall(
        r"^([\w-]+):.*## (.+)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert printed.split() == [word for target in targets for word in " ".join(target).split()]


@pytest.mark.parametrize(("file", "key"), [("tsconfig.json", "include"), ("biome.json", "files")])
def test_the_scripts_of_every_view_are_checked(file: str, key: str) -> None:
    said = json.loads((ROOT / file).read_text(encoding="utf-8"))[key]
    patterns = said["includes"] if key == "files" else said
    checked = {path for pattern in patterns for path in ROOT.glob(pattern)}
    assert set((ROOT / "gptviz").rglob("*.js")) <= checked


def test_no_settings_of_the_repository_name_a_view() -> None:
    """A new view needs no place in them: CONTRIBUTING.md has all steps to one."""
    views = [
        script.stem
        for script in (ROOT / "gptviz" / "components").glob("*/*.js")
        if script.stem == script.parent.name
    ]
    settings = ("tsconfig.json", "biome.json", "package.json", "pyproject.toml", "Makefile")
    files = [ROOT / name for name in (*settings, "tests/test_architecture.py")]
    assert len(views) > 10
    words = {file.name: set(re.findall(r"\w+", file.read_text(encoding="utf-8"))) for file in files}
    assert [
        f"{name}: {view}" for name, said in words.items() for view in views if view in said
    ] == []
