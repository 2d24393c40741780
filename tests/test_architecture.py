"""Which part may import which: every import of every file is walked, those inside functions too."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted([*(ROOT / "gptviz").rglob("*.py"), *(ROOT / "pages").rglob("*.py"), ROOT / "app.py"])

# For each part (the longest that fits a file counts), what its files may import beside the standard library and themselves.
# A module stands for all below it.
MAY_IMPORT: dict[str, set[str]] = {
    "gptviz.model": {"torch"},
    "gptviz.text": {"numpy", "tokenizers"},
    "gptviz.generate": {"torch", "gptviz.model"},
    "gptviz.data": {"torch", "numpy", "sklearn", "gptviz.model", "gptviz.text", "gptviz.generate"},
    "gptviz.train": {"torch", "numpy", "gptviz.model", "gptviz.data"},
    "gptviz.runs": {
        *("torch", "safetensors", "filelock", "gptviz._version"),
        *("gptviz.model", "gptviz.text", "gptviz.data", "gptviz.train"),
    },
    "gptviz.labelled_array": {"numpy"},
    "gptviz.interp": {
        *("torch", "numpy", "sklearn", "umap", "threadpoolctl"),
        *("gptviz.model", "gptviz.text", "gptviz.labelled_array", "gptviz.generate.sampling"),
    },
    "gptviz.figures": {"numpy", "plotly", "PIL", "gptviz.labelled_array"},
    "gptviz.components": {"streamlit", "numpy", "gptviz.figures.theme", "gptviz.interp", "gptviz.generate.tree"},
    # The library and the command line.
    "gptviz": {
        *(
            "torch",
            "tqdm",
            "gptviz._version",
            "gptviz.language_model",
            "gptviz.model",
            "gptviz.text",
            "gptviz.generate",
            "gptviz.data",
        ),
        *("gptviz.train", "gptviz.runs", "gptviz.interp"),
    },
}
# These may import what they like.
FREE = ("app", "pages", "gptviz.ui")


def module_name(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def below(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def imports(file: Path) -> set[str]:
    """The full name of every module a file imports; of `from package import name`, `package.name` where that is a module."""
    package = module_name(file).split(".")
    if file.name != "__init__.py":
        package = package[:-1]
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            for alias in node.names:
                path = ROOT.joinpath(*base.split("."), alias.name)
                is_module = path.is_dir() or path.with_suffix(".py").is_file()
                found.add(f"{base}.{alias.name}" if is_module else base)
    return found


def test_the_walk_sees_relative_late_and_aliased_imports() -> None:
    assert {"gptviz.model.tap", "gptviz.model.attention", "torch"} <= imports(ROOT / "gptviz/model/transformer.py")
    assert {"gptviz.runs.checkpoints", "gptviz.train.trainer", "tqdm", "json"} <= imports(ROOT / "gptviz/__main__.py")
    assert "gptviz.language_model" in imports(ROOT / "gptviz/__init__.py")
    assert len(FILES) > 30


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_part_imports_only_what_its_layer_may(file: Path) -> None:
    module = module_name(file)
    if not any(below(module, free) for free in FREE):
        part = max((part for part in MAY_IMPORT if below(module, part)), key=len)
        allowed = MAY_IMPORT[part] | sys.stdlib_module_names | ({part} - {"gptviz"})
        strangers = {name for name in imports(file) - {"gptviz"} if not any(below(name, package) for package in allowed)}
        assert not strangers, f"{module} may not import {', '.join(sorted(strangers))}"


@pytest.mark.parametrize("file", [file for file in FILES if file.parent == ROOT / "pages"], ids=lambda file: file.name)
def test_a_page_touches_no_tensors(file: Path) -> None:
    assert not {name for name in imports(file) if below(name, "torch") or below(name, "numpy")}


def test_the_library_and_the_help_wait_for_neither_torch_nor_streamlit() -> None:
    code = (
        "import contextlib, sys, gptviz\n"
        "from gptviz.__main__ import main\n"
        "with contextlib.suppress(SystemExit): main(['--help'])\n"
        "heavy = {'torch', 'streamlit', 'numpy', 'plotly', 'pandas', 'tokenizers'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("usage:")
