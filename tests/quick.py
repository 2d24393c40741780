"""The tests that a change may break first: `make quick` runs them.

They are those that import a changed file, or a file that imports it, and those of a changed page.
Of a change in many rooms that is most of the suite; `make test` runs all.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.test_architecture import ROOT, import_graph, imports, module_name


def changed_files() -> list[Path]:
    """The Python files that differ from the last commit; where none does, those of this commit."""

    def listed(*arguments: str) -> list[str]:
        asked = ["git", *arguments, "--", "*.py"]
        return subprocess.run(
            asked, cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.split()

    names = listed("diff", "--name-only", "HEAD")
    names += listed("ls-files", "--others", "--exclude-standard")
    names = names or listed("diff", "--name-only", "HEAD~1")
    return [ROOT / name for name in names if (ROOT / name).is_file()]


def tests_of(changed: list[Path]) -> list[Path]:
    """The files of tests that a change in these files may break first."""
    modules = {module_name(file) for file in changed}
    near = modules | {module for module, read in import_graph().items() if read & modules}
    pages = {name.split(".")[3] for name in near if name.startswith("gptviz.ui.pages.")}
    pages |= {file.stem for file in changed if file.parent.name == "pages"}
    found = []
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        is_of_page = file.name in {f"test_{page}_page.py" for page in pages}
        if file in changed or is_of_page or imports(file) & near:
            found.append(file)
    return [file for file in found if "browser" not in file.parts]


if __name__ == "__main__":
    # the rules of the house hold for any change
    rules = ROOT / "tests" / "test_architecture.py"
    print(*dict.fromkeys([rules, *tests_of(changed_files())]))
