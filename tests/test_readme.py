"""The examples of the README, run as they stand there, and its pictures."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[1] / "README.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_its_pictures_are_there_and_no_others() -> None:
    shown = re.findall(r"\(docs/([^)]+)\)", README.read_text(encoding="utf-8"))
    assert len(shown) > 10
    assert sorted(shown) == sorted(file.name for file in (README.parent / "docs").iterdir())


def test_the_map_of_the_house_has_every_room_and_no_other() -> None:
    root = README.parent
    block = (root / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("\nImports go upwards")[0]
    outer = re.findall(r"^ {4}(?:app\.py, )?(\w+)/ ", block, re.MULTILINE)
    inner = re.findall(r"^ {6}([\w/.]+) ", block, re.MULTILINE)
    assert all((root / "gptviz" / room.removesuffix("/x")).exists() for room in inner)
    package = {path.name for path in (root / "gptviz").iterdir()} - {"__init__.py", "__pycache__", "_version.py"}
    assert {room.partition("/")[0] for room in inner} == package
    made = {"node_modules", "dist", "build", "__pycache__"}
    known = {path.name for path in root.iterdir() if path.is_dir() and not path.name.startswith(".")} - made
    assert {"gptviz", *outer} >= known - {"gptviz", "film-reviews"}
    assert all((root / room).is_dir() for room in outer)


def test_the_readme_has_examples_in_python() -> None:
    assert EXAMPLES


# A few seconds, and not marked `full`: nothing else runs these lines, and any change of a name may break them.
@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_runs_and_gives_the_answers_that_its_comments_say(example: str, home: Path) -> None:
    lines, known = example.splitlines(), dict[str, object]()
    for statement in ast.parse(example).body:
        if not isinstance(statement, ast.Expr):
            exec(compile(ast.Module([statement], []), "README.md", "exec"), known)
            continue
        answer = eval(compile(ast.Expression(statement.value), "README.md", "eval"), known)
        comment = lines[(statement.end_lineno or 0) - 1][statement.end_col_offset :].strip(" #")
        if comment.startswith(('"', "{")):
            assert _rounded(answer) == ast.literal_eval(comment)


def _rounded(answer: object) -> object:
    """Probabilities to three digits, as a comment has them."""
    return {name: round(share, 3) for name, share in answer.items()} if isinstance(answer, dict) else answer
