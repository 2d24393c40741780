"""Where the scripts of the app and the models that ship lie: beside the package in a checkout, inside it once installed."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_INSTALLED = _PACKAGE / "installed"  # made by the build: see pyproject.toml

FOLDER = _INSTALLED if _INSTALLED.is_dir() else _PACKAGE.parent
APP = FOLDER / "app.py"
BUNDLED = FOLDER / "checkpoints"
