"""The folders of the app's scripts and of the shipped models: next to the package in a checkout,
inside it once installed.
"""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_INSTALLED = _PACKAGE / "installed"  # made by the build: see pyproject.toml

FOLDER = _INSTALLED if _INSTALLED.is_dir() else _PACKAGE.parent
APP = FOLDER / "app.py"
BUNDLED = FOLDER / "checkpoints"


def page_names() -> list[str]:
    """The names of all pages; the first page is "home"."""
    return ["home", *sorted(path.stem for path in (FOLDER / "pages").glob("*.py"))]
