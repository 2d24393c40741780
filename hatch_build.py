"""The README as a package index shows it, where links to the files beside it lead nowhere;
hatchling runs this as a hook.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)]+)\)")


def for_index(text: str, repository: str | None) -> str:
    """The README whose links lead to the repository. While the project names none, they are text,
    and pictures are left out.
    """
    if repository is None:
        paragraphs = [
            one for one in text.split("\n\n") if not re.search(r"!\[[^\]]*\]\((?!https?:)", one)
        ]
        return _LINK.sub(r"\2", "\n\n".join(paragraphs))
    return _LINK.sub(
        lambda link: (
            f"{link[1]}[{link[2]}]({repository}/{'raw' if link[1] else 'blob'}/HEAD/{link[3]})"
        ),
        text,
    )


class ReadmeHook(MetadataHookInterface):
    """Gives the package its README."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Fill in the field `readme`."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        repository = metadata.get("urls", {}).get("Repository")
        metadata["readme"] = {"content-type": "text/markdown", "text": for_index(text, repository)}
