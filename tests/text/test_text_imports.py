"""What `gptviz.text` may import."""

import ast
import sys
from collections.abc import Iterable
from pathlib import Path

import gptviz.text

FILES = sorted(Path(gptviz.text.__file__).parent.glob("*.py"))


def imported(nodes: Iterable[ast.AST]) -> set[str]:
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add("." * node.level if node.level else (node.module or "").split(".")[0])
    return found


def test_text_stands_on_numpy_and_tokenizers_alone_and_loads_tokenizers_late() -> None:
    assert len(FILES) >= 6
    for file in FILES:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        assert imported(ast.walk(tree)) <= {"numpy", "tokenizers", "."} | sys.stdlib_module_names, file
        assert imported(tree.body) <= {"numpy", "."} | sys.stdlib_module_names, file
