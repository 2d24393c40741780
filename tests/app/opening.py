"""Opening a page by its address, without a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Block, Button, Node

from gptviz.components.kit import unpack
from tests.app.wording import check_wording
from tests.waiting import PATIENCE

ROOT = Path(__file__).resolve().parents[2]


def opened(path: str, **query: str | list[str]) -> AppTest:
    """The page at `path`, or Home at `app.py`, run once with `query` in its address; what it says is checked (`wording`)."""
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=PATIENCE)
    if path != "app.py":
        at.switch_page(path)
    for key, value in query.items():
        at.query_params[key] = value
    check_wording(at.run(), *(word for value in query.values() for word in ([value] if isinstance(value, str) else value)))
    return at


def headings(at: AppTest) -> list[dict[str, Any]]:
    """What the pictures of the figures of a page say above the drawing."""
    packed = [unpack(one.proto.bytes)[0] for one in views(at) if one.proto.bytes and "figure_tools" in one.proto.component_name]
    return [one["heading"] for one in packed]


def views(at: AppTest) -> list[Any]:
    """The components of the page itself, the scripts that draw them included."""
    return [node for node in in_sight(at) if type(getattr(node, "proto", None)).__name__ == "BidiComponent"]


def buttons_in_sight(at: AppTest) -> list[Button]:
    """The buttons of the page itself."""
    return [node for node in in_sight(at) if isinstance(node, Button)]


def in_sight(at: AppTest) -> Iterator[Node]:
    """All on the page but what a popover unfolds, which is how all pages offer what they share."""

    def within(node: Node) -> Iterator[Node]:
        yield node
        if isinstance(node, Block) and node.type != "popover":
            for child in node.children.values():
                yield from within(child)

    return within(at.main)
