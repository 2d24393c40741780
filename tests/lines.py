"""How many lines of Python each room has, so that growth is seen: `python -m tests.lines`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def lines(folder: Path) -> Counter[str]:
    """The lines of each room of a folder, its own files being one room, called "."."""
    rooms: Counter[str] = Counter()
    for file in folder.rglob("*.py"):
        room = file.relative_to(folder).parts[0] if file.parent != folder else "."
        rooms[room] += len(file.read_text(encoding="utf-8").splitlines())
    return rooms


if __name__ == "__main__":
    for name in ("gptviz", "tests"):
        rooms = lines(ROOT / name)
        each = ", ".join(f"{room} {count:,}" for room, count in rooms.most_common())
        print(f"{name}/ has {rooms.total():,} lines of Python: {each}")
