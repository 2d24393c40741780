"""A page as a Jupyter notebook: the page itself, and the code of its figures and views, ready to be
run.
"""

from __future__ import annotations

import json
import struct
from itertools import pairwise
from typing import Any

from gptviz._version import __version__
from gptviz.components import kit

from .page import Code, ControlValue, MarkdownText, PageContent, SavedView

# In a Python without gptviz the first cell fails with an error that says only that there is no such
# module.
NEEDS = (
    f"The cells need gptviz (this file was written by version {__version__}) in the Python that "
    "runs this notebook: "
    "`pip install .` in the folder of its source brings it there."
)
# Keys of an address that say where a page was shown, not what.
ELSEWHERE = ("lesson", "lesson_step", "lesson_done", "present", "device")


def as_notebook(page: PageContent) -> str:
    """The page as an `.ipynb` file (format 4): title, first sentence, requirements, the page, a
    cell for each piece of code.

    The code is found below figures, and in the data of views made by hand.
    """
    sentence = next(
        (piece.body for piece in page.pieces_of(MarkdownText) if piece.look == "caption"), ""
    )
    cells = [_cell("markdown", f"# {page.title}\n\n{sentence}\n\n{NEEDS}", 0)]
    for number, pieces in enumerate([picture(page), *codes(page)], 1):
        cells.append(_cell("code", pieces, number))
    content = {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}
        },
        "cells": cells,
    }
    return json.dumps(content, indent=1, ensure_ascii=False)


def codes(page: PageContent) -> list[str]:
    """The pieces of Python on a page, each once; one that goes on where the one before it ends,
    without what that one has.
    """
    below = [piece.body for piece in page.pieces_of(Code) if piece.language == "python"]
    pieces = [
        *(code for view in page.pieces_of(SavedView) if (code := _of_view(view)) is not None),
        *below,
    ]
    distinct = dict.fromkeys(code.strip() for code in pieces)
    return [
        f"{code}\n".removeprefix(f"{before}\n").strip()
        for before, code in pairwise(["", *distinct])
    ]


def picture(page: PageContent) -> str:
    """The line of Python that shows the page, with the model and the prompt that it opened on."""
    seen = {control.label: control.value for control in reversed(page.pieces_of(ControlValue))}
    # Rejected edits stay: the cell names them, in place of a picture with fewer edits than the
    # reader saw.
    state = {
        key: value
        for key, value in page.query.items()
        if key == "edits" or key not in {*page.rejected, *ELSEWHERE}
    }
    model = state.pop("model", seen.get("Model"))
    prompt = state.pop("prompt", None)
    if prompt is not None:
        # the address may have a key that stands for a long text
        prompt = seen.get("Prompt", prompt)
    given = {"page": page.name} | ({} if prompt is None else {"prompt": prompt}) | state
    return (
        f"import gptviz\n\ngptviz.show({model!r}, "
        f"{', '.join(f'{key}={value!r}' for key, value in given.items())})"
    )


def _of_view(view: SavedView) -> str | None:
    """The code that a view made by hand offers with its button, or None if it offers none."""
    try:
        code = kit.unpack(view.data)[0].get("code")
    # a payload of another form, of a view without code
    except (ValueError, struct.error, KeyError, UnicodeDecodeError):
        return None
    # before and after settings chosen in the browser
    if isinstance(code, list) and all(isinstance(part, str) for part in code):
        return "Sampling()".join(code)
    if isinstance(code, str) and code:
        return code
    return None


def _cell(kind: str, source: str, number: int) -> dict[str, Any]:
    cell: dict[str, Any] = {
        "cell_type": kind,
        "id": f"cell-{number}",
        "metadata": {},
        "source": source,
    }
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})
