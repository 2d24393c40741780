"""Opening a page by its address, without a browser."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import numpy as np
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Block, Button, Node

from gptviz.components.kit import unpack
from gptviz.streamlit_internals import READ_AS_A_WHOLE
from tests.app.wording import check_wording
from tests.waiting import PATIENCE

ROOT = Path(__file__).resolve().parents[2]


def opened(path: str, **query: str | list[str]) -> AppTest:
    """The page at `path`, or Home at `app.py`, run once with `query` in its address; what it says
    is checked (`wording`).
    """
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=PATIENCE)
    if path != "app.py":
        at.switch_page(path)
    for key, value in query.items():
        at.query_params[key] = value
    at.session_state[READ_AS_A_WHOLE] = True
    check_wording(
        at.run(),
        *(
            word
            for value in query.values()
            for word in ([value] if isinstance(value, str) else value)
        ),
    )
    return at


def page_at(path: str, **usual: str) -> Callable[..., AppTest]:
    """A function that opens the page at `path`, with the `usual` address unless a test gives
    another.
    """
    return partial(opened, path, **usual)


def says(at: AppTest) -> str:
    """All that the page says, as it is read: Markdown, captions, messages and plain text."""
    kinds = (at.markdown, at.caption, at.info, at.warning, at.error, at.success, at.text)
    return "\n".join(str(one.value) for kind in kinds for one in kind).replace("\\", "")


def charts(at: AppTest) -> list[dict[str, Any]]:
    """The figures of the page, as plotly gets them."""
    return [json.loads(one.proto.spec) for one in at.get("plotly_chart")]


def chart(at: AppTest, key: str) -> dict[str, Any]:
    """The figure with this key."""
    (found,) = (
        json.loads(one.proto.spec)
        for one in at.get("plotly_chart")
        if one.proto.id.endswith(f"-{key}")
    )
    return dict(found)


def headings(at: AppTest) -> list[dict[str, Any]]:
    """The headings above the drawings in the pictures of a page's figures."""
    packed = [
        unpack(one.proto.bytes)[0]
        for one in views(at)
        if one.proto.bytes and "figure_tools" in one.proto.component_name
    ]
    return [one["heading"] for one in packed]


def views(at: AppTest) -> list[Any]:
    """The components of the page itself, the scripts that draw them included."""
    return [
        node
        for node in in_sight(at)
        if type(getattr(node, "proto", None)).__name__ == "BidiComponent"
    ]


def payload(at: AppTest, key: str) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    """Header and arrays of the view with this key, as the browser gets them."""
    (view,) = (view for view in views(at) if view.proto.id.endswith(f"-{key}"))
    return unpack(view.proto.bytes)


def grid(at: AppTest, key: str) -> tuple[np.ndarray[Any, Any], dict[str, Any]]:
    """The values in a grid of cells [row, column], NaN where it has none, and all else that the
    browser gets of it.
    """
    header, _ = payload(at, key)
    missing = {"value": None}
    values = [[(cell or missing)["value"] for cell in row["cells"]] for row in header["rows"]]
    return np.array(values, float), header


def strip(at: AppTest) -> dict[str, Any]:
    """The strip of tokens, as the browser gets it: the first view of its page."""
    settings, arrays = unpack(views(at)[0].proto.bytes)
    return {"tokens": json.loads(arrays["tokens"].tobytes()), "settings": settings}


def drawn(at: AppTest, *left_out: str) -> tuple[list[dict[str, Any]], list[Any]]:
    """All that is drawn on the page: its figures, and what its views are sent, but for the parts of
    it that are left out.
    """
    shown: list[Any] = []
    for sent in filter(None, (bytes(view.proto.bytes) for view in views(at))):
        if sent[4:5] == b"{":  # after its length
            header, arrays = unpack(sent)
            shown.append(
                [
                    {key: value for key, value in header.items() if key not in left_out},
                    arrays.keys(),
                ]
            )
            shown.extend(array.tobytes() for array in arrays.values())
        else:
            shown.append(sent)
    return charts(at), shown


def last_link(at: AppTest) -> tuple[str, dict[str, list[str]]]:
    """The page that the last link of the page leads to, and its query."""
    link = at.main.get("page_link")[-1].proto
    return link.page, parse_qs(link.query_string)


def button(at: AppTest, label: str) -> Button:
    """The first button with this label."""
    return next(one for one in at.button if one.label == label)


def press(at: AppTest, label: str) -> AppTest:
    """The page after a click on the button with this label."""
    return button(at, label).click().run()


def in_sight(at: AppTest) -> Iterator[Node]:
    """All on the page but what a popover unfolds, which is how all pages offer what they share."""

    def within(node: Node) -> Iterator[Node]:
        yield node
        if isinstance(node, Block) and node.type != "popover":
            for child in node.children.values():
                yield from within(child)

    return within(at.main)


def ran(code: str) -> dict[str, Any]:
    """What the lines of code that a page shows have made, by name."""
    made: dict[str, Any] = {}
    exec(code, made)
    return made


def last_value(code: str) -> Any:
    """The value of the last line of a program, which is an expression."""
    *lines, last = ast.parse(code).body
    assert isinstance(last, ast.Expr), code
    names: dict[str, Any] = {}
    exec(compile(ast.Module(lines, []), "code of a page", "exec"), names)
    return eval(compile(ast.Expression(last.value), "code of a page", "eval"), names)
