"""How many lines each room has, its budget, and what came since the last tag: `python -m tests.lines`.

A change that needs more lines than a room's budget raises the number in a commit of its own, which says why. Lines that a change
saved are taken off the budget.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
# The most lines of Python, in steps of 50, in each room of gptviz/ (of ui/, in each of its own rooms) and in tests/; and the most
# lines of the views' scripts and styles.
BUDGET: dict[str, int] = {
    "gptviz": 500,
    "gptviz/commands": 2_850,
    "gptviz/components": 1_950,
    "gptviz/data": 1_750,
    "gptviz/figures": 3_900,
    "gptviz/generate": 1_400,
    "gptviz/interp": 11_050,
    "gptviz/language_model": 2_500,
    "gptviz/lessons": 1_650,
    "gptviz/machine": 1_100,
    "gptviz/model": 5_100,
    "gptviz/pretrained": 6_750,
    "gptviz/runs": 4_050,
    "gptviz/settings": 350,
    "gptviz/takehome": 1_250,
    "gptviz/text": 5_100,
    "gptviz/train": 1_350,
    "gptviz/twin": 200,
    "gptviz/ui": 150,
    "gptviz/ui/pages": 14_250,
    "gptviz/ui/records": 900,
    "gptviz/ui/shell": 2_800,
    "gptviz/ui/views": 3_150,
    "gptviz/ui/widgets": 1_400,
    "tests": 62_800,
    "views' scripts and styles": 17_100,
}


def room(path: str) -> str | None:
    """The room that a file counts for, or None where its lines are not counted."""
    top, *folders, _ = PurePosixPath(path).parts if "/" in path else ("", path)
    if top == "tests":
        return "tests" if path.endswith(".py") else None
    if top != "gptviz":
        return None
    if path.endswith((".js", ".css")):
        return "views' scripts and styles"
    depth = 2 if folders[:1] == ["ui"] else 1
    return "/".join(["gptviz", *folders[:depth]]) if path.endswith(".py") else None


def counted(texts: dict[str, bytes]) -> Counter[str]:
    """The lines of each room, of the texts of files by their paths."""
    rooms: Counter[str] = Counter()
    for path, text in texts.items():
        if (name := room(path)) is not None:
            rooms[name] += text.count(b"\n")
    return rooms


def here() -> Counter[str]:
    """The lines of each room as they are now."""
    files = [file for folder in ("gptviz", "tests") for file in (ROOT / folder).rglob("*.*") if file.is_file()]
    paths = {file.relative_to(ROOT).as_posix(): file for file in files}
    return counted({path: file.read_bytes() for path, file in paths.items() if room(path) is not None})


def at_last_tag() -> Counter[str] | None:
    """The lines of each room at the last tag, or None where there is no tag or no git."""

    def git(*arguments: str) -> bytes:
        return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, check=True).stdout

    try:
        tag = git("describe", "--tags", "--abbrev=0").decode().strip()
        paths = git("ls-tree", "-r", "--name-only", tag, "gptviz", "tests").decode().splitlines()
        return counted({path: git("show", f"{tag}:{path}") for path in paths if room(path) is not None})
    except (OSError, subprocess.CalledProcessError):
        return None


if __name__ == "__main__":
    rooms, before = here(), at_last_tag()
    for name, count in rooms.most_common():
        since = "" if before is None else f", {count - before[name]:+,} since the last tag"
        print(f"{name:<28} {count:>7,} of {BUDGET.get(name, 0):>7,}{since}")
    print(f"gptviz/ has {sum(count for name, count in rooms.items() if name.startswith('gptviz')):,} lines of Python")
