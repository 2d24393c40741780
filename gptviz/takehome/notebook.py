"""A page as a Jupyter notebook: the code of its figures and views, ready to be run."""

from __future__ import annotations

import json
import struct
from typing import Any

from gptviz._version import __version__
from gptviz.components import kit

from .page import Code, MarkdownText, PageContent, SavedView

# In a Python without gptviz the first cell fails with an error that says only that there is no such module.
NEEDS = (
    f"The cells need gptviz (this file was written by version {__version__}) in the Python that runs this notebook: "
    "`pip install .` in the folder of its source brings it there."
)


def as_notebook(page: PageContent) -> str:
    """The page as an `.ipynb` file (format 4): title, first sentence, requirements, then a cell for each piece of code on it.

    The code is found below figures, and in the data of views made by hand.
    """
    sentence = next((piece.body for piece in page.all(MarkdownText) if piece.look == "caption"), "")
    cells = [_cell("markdown", f"# {page.title}\n\n{sentence}\n\n{NEEDS}", 0)]
    for number, code in enumerate(codes(page), 1):
        cells.append(_cell("code", code, number))
    content = {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        "cells": cells,
    }
    return json.dumps(content, indent=1, ensure_ascii=False)


def codes(page: PageContent) -> list[str]:
    """The pieces of Python on a page."""
    below = [piece.body for piece in page.all(Code) if piece.language == "python"]
    return [*(code for view in page.all(SavedView) if (code := _of_view(view)) is not None), *below]


def _of_view(view: SavedView) -> str | None:
    """The code that a view made by hand offers with its button, or None if it offers none."""
    try:
        code = kit.unpack(view.data)[0].get("code")
    except (ValueError, struct.error, KeyError, UnicodeDecodeError):  # a payload of another form, of a view without code
        return None
    if isinstance(code, list) and all(isinstance(part, str) for part in code):  # before and after settings chosen in the browser
        return "Sampling()".join(code)
    return code if isinstance(code, str) and code else None


def _cell(kind: str, source: str, number: int) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": source.splitlines(keepends=True)}
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})
