"""A part of the build that pyproject.toml cannot state: the dependencies stand in requirements.txt alone."""

from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Requirements(MetadataHookInterface):
    """Reads the dependencies of the package from requirements.txt; its options (lines with "-") are for pip alone."""

    def update(self, metadata: dict[str, Any]) -> None:
        lines = Path(self.root, "requirements.txt").read_text(encoding="utf-8").splitlines()
        metadata["dependencies"] = [line for line in map(str.strip, lines) if line and line[0] not in "#-"]
