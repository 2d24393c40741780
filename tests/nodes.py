"""The syntax nodes of each room, its budget, and what came since the last tag: `python -m
tests.nodes`.

Size is counted in nodes of the syntax tree. Docstrings, comments, the length of names and line
breaks cost nothing, so nothing is saved by writing densely.

A change that needs more nodes than a room's budget raises the number in a commit of its own,
which says why. Nodes that a change saved are taken off the budget.
"""

from __future__ import annotations

import ast
import subprocess
from collections import Counter
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = "views' scripts and styles"
# The most nodes, in steps of 500, in each room of gptviz/ (of ui/, in each of its own rooms) and in
# tests/; and the most lines of the views' scripts and styles.
BUDGET: dict[str, int] = {
    "gptviz": 2_500,
    "gptviz/commands": 27_000,
    "gptviz/components": 13_500,
    "gptviz/data": 13_500,
    "gptviz/figures": 33_500,
    "gptviz/generate": 11_000,
    "gptviz/interp": 109_600,
    "gptviz/language_model": 26_500,
    "gptviz/languages": 500,
    "gptviz/lessons": 16_000,
    "gptviz/machine": 7_000,
    "gptviz/model": 38_000,
    "gptviz/pretrained": 55_500,
    "gptviz/runs": 30_500,
    "gptviz/settings": 3_500,
    "gptviz/takehome": 11_000,
    "gptviz/text": 39_100,
    "gptviz/train": 9_500,
    "gptviz/twin": 2_000,
    "gptviz/ui": 1_000,
    "gptviz/ui/pages": 128_600,
    "gptviz/ui/records": 2_500,
    "gptviz/ui/shell": 21_500,
    "gptviz/ui/views": 28_200,
    "gptviz/ui/widgets": 8_700,
    "tests": 684_600,
    SCRIPTS: 19_400,
}


def room(path: str) -> str | None:
    """The room that a file counts for, or None where it is not counted."""
    *folders, _ = PurePosixPath(path).parts
    top = folders[0] if folders else ""
    if top == "tests":
        return "tests" if path.endswith(".py") else None
    if top != "gptviz":
        return None
    if path.endswith((".js", ".css")):
        return SCRIPTS
    depth = 3 if folders[1:2] == ["ui"] else 2
    return "/".join(folders[:depth]) if path.endswith(".py") else None


def nodes_of(text: bytes | str) -> int:
    """The syntax nodes of a file of Python, without its docstrings."""
    nodes = list(ast.walk(ast.parse(text)))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = [
        node for node in nodes if isinstance(node, documented) and ast.get_docstring(node, False)
    ]
    # A docstring is two nodes: a constant, and the expression that it stands in.
    return len(nodes) - 2 * len(docstrings)


def counted(texts: dict[str, bytes]) -> Counter[str]:
    """The size of each room, of the texts of files by their paths: nodes of Python, else lines."""
    rooms: Counter[str] = Counter()
    for path, text in texts.items():
        name = room(path)
        if name is not None:
            rooms[name] += nodes_of(text) if path.endswith(".py") else text.count(b"\n")
    return rooms


def here() -> Counter[str]:
    """The size of each room as it is now."""
    files = [
        file
        for folder in ("gptviz", "tests")
        for file in (ROOT / folder).rglob("*.*")
        if file.is_file()
    ]
    paths = {file.relative_to(ROOT).as_posix(): file for file in files}
    return counted({path: file.read_bytes() for path, file in paths.items() if room(path)})


def at_last_tag() -> Counter[str] | None:
    """The size of each room at the last tag, or None where there is no tag or no git."""

    def git(*arguments: str) -> bytes:
        command = ["git", "-C", str(ROOT), *arguments]
        return subprocess.run(command, capture_output=True, check=True).stdout

    try:
        tag = git("describe", "--tags", "--abbrev=0").decode().strip()
        listed = git("ls-tree", "-r", "--name-only", tag, "gptviz", "tests").decode()
        paths = [path for path in listed.split("\n") if room(path)]
        return counted({path: git("show", f"{tag}:{path}") for path in paths})
    except (OSError, subprocess.CalledProcessError):
        return None


if __name__ == "__main__":
    rooms = here()
    before = at_last_tag()
    for name, count in rooms.most_common():
        since = "" if before is None else f", {count - before[name]:+,} since the last tag"
        print(f"{name:<28} {count:>9,} of {BUDGET.get(name, 0):>9,}{since}")
    total = sum(rooms[name] for name in rooms if name.startswith("gptviz"))
    print(f"gptviz/ has {total:,} syntax nodes of Python")
