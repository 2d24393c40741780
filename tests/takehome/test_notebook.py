"""Pages as notebooks, run from start to end by a kernel of Jupyter that starts in another
folder.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Iterator
from html import unescape
from itertools import permutations
from pathlib import Path
from urllib.parse import urlencode

import nbformat
import numpy as np
import pytest
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell, new_notebook

import gptviz
from gptviz.components import kit
from gptviz.takehome.notebook import as_notebook, codes, picture
from gptviz.takehome.page import ControlValue, Figure, PageContent, SavedView, read_page
from gptviz.ui.menu import PAGES

PROMPT = "O Romeo, Romeo"
PATIENCE = 300  # seconds a cell may take
ROOT = Path(gptviz.__file__).resolve().parents[1]
Run = Callable[..., nbformat.NotebookNode]
# Pages with code about any model of text; the others have theirs for classifiers and for models
# that translate, or none.
WITH_CODE = [
    page.name for page in PAGES.values() if "decoder" in page.kinds and page.name != "lessons"
]


def started(folder: Path, path: str) -> KernelManager:
    """A kernel that keeps its own files in `folder`, works there, and finds modules in `path`
    beside what is installed.
    """
    places = {
        name: str(folder / name)
        for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR")
    }
    manager = KernelManager()
    manager.start_kernel(cwd=str(folder), env=os.environ | places | {"PYTHONPATH": path})
    return manager


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Runs a notebook: `run(notebook)` gives it with its outputs. What an earlier notebook defined
    is forgotten.
    """
    manager = started(tmp_path_factory.mktemp("elsewhere"), str(ROOT))

    def one(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
        nbformat.validate(notebook)
        notebook.cells.insert(0, new_code_cell("%reset -f"))
        return NotebookClient(notebook, km=manager, timeout=PATIENCE).execute()

    yield one
    manager.shutdown_kernel(now=True)


def numbers(run: Run, notebook: nbformat.NotebookNode, expression: str) -> np.ndarray:
    """The value of `expression` after the last cell."""
    notebook.cells.append(
        new_code_cell(
            f"import json, numpy\nprint(json.dumps(numpy.asarray({expression}).tolist()))"
        )
    )
    return np.array(json.loads(run(notebook).cells[-1].outputs[0].text))


def of_view(name: str) -> Callable[[PageContent], np.ndarray]:
    """An array that the last view of a page was sent."""
    return lambda page: kit.unpack(page.pieces_of(SavedView)[-1].data)[1][name]


def of_map(page: PageContent) -> np.ndarray:
    """The cells of the first figure."""
    z = json.loads(page.pieces_of(Figure)[0].spec)["data"][0]["z"]
    return np.frombuffer(base64.b64decode(z["bdata"]), z["dtype"]).reshape(
        [int(size) for size in z["shape"].split(",")]
    )


@pytest.mark.parametrize(
    ("name", "expression", "shown"),
    [
        ("lens", "result.probability[..., :5]", of_view("probability")),
        pytest.param("next_token", "logits[0]", of_view("logits"), marks=pytest.mark.full),
        pytest.param("positions", "result.values", of_map, marks=pytest.mark.full),
    ],
    ids=["lens", "next_token", "positions"],
)
def test_a_notebook_gives_the_numbers_of_its_page(
    run: Run, name: str, expression: str, shown: Callable[[PageContent], np.ndarray]
) -> None:
    page = read_page(name, {"model": "ladder-8", "prompt": PROMPT})
    notebook = nbformat.reads(as_notebook(page), as_version=4)
    assert [cell.source for cell in notebook.cells if cell.cell_type == "code"] == [
        picture(page),
        *codes(page),
    ]
    np.testing.assert_allclose(numbers(run, notebook, expression), shown(page), atol=1e-5)
    (drawn,) = notebook.cells[2].outputs
    assert f'data-address="{urlencode(page.query)}' in unescape(unescape(drawn.data["text/html"]))


@pytest.mark.parametrize(("name", "cells"), [("lens", 2), ("attribution", 1)])
def test_no_cell_of_a_notebook_has_another_one_in_it(name: str, cells: int) -> None:
    below = codes(read_page(name, {"model": "ladder-8", "prompt": PROMPT}))
    assert len(below) == cells
    assert not [(one, other) for one, other in permutations(below, 2) if one in other]


@pytest.mark.parametrize(
    ("name", "query"),
    [
        (
            "lens",
            {
                "model": "ladder-8",
                "prompt": 'a  "b"\n\'c\\',
                "lesson": "01-tokens",
                "nonsense": "1",
            },
        ),
        ("lens", {}),
        pytest.param(
            "attention",
            {"model": "ladder-8", "block": "1", "edits": "blocks.0.mlp"},
            marks=pytest.mark.full,
        ),
        pytest.param("gradients", {}, marks=pytest.mark.full),
    ],
)
def test_the_picture_of_a_notebook_is_the_page_that_was_taken_home(
    name: str, query: dict[str, str]
) -> None:
    page = read_page(name, query)
    shown = eval(picture(page).removeprefix("import gptviz\n\n"), {"gptviz": gptviz}).page
    assert shown.pieces_of(SavedView) == page.pieces_of(SavedView)
    assert shown.pieces_of(ControlValue) == page.pieces_of(ControlValue)
    assert not shown.rejected


OTHERS = {
    "classify": "classifier",
    "features": "sentences",
    "over_training": "induction",
    "translate": "seq2seq",
}


@pytest.mark.full
@pytest.mark.parametrize("name", sorted({*WITH_CODE, *OTHERS}))
def test_the_notebook_of_every_page_runs_from_start_to_end(run: Run, name: str) -> None:
    page = read_page(
        name, {"model": OTHERS[name]} if name in OTHERS else {"model": "ladder-8", "prompt": PROMPT}
    )
    assert codes(page)
    run(nbformat.reads(as_notebook(page), as_version=4))  # raises where a cell fails


def test_a_trace_is_shown_below_its_cell_with_the_numbers_of_the_trace(run: Run) -> None:
    lines = (
        "import gptviz\n\ntrace = "
        f"gptviz.load('ladder-8').edited('blocks.0.attention.head.0').trace({PROMPT!r})"
    )
    notebook = new_notebook(
        cells=[
            new_code_cell(lines),
            new_code_cell("shown = gptviz.show(trace, page='lens')\nshown"),
        ]
    )
    both = (
        "[trace['logits'][0].softmax(-1).sort(descending=True).values[:, :5].tolist(), "
        "gptviz.components.kit.unpack(shown.page.pieces_of(gptviz.takehome.page.SavedView)[0].data)[1]['probability'][-1].tolist()]"
    )
    expected, seen = numbers(run, notebook, both)
    np.testing.assert_allclose(seen, expected, atol=1e-3)
    (output,) = [one for one in notebook.cells[2].outputs if one.output_type == "execute_result"]
    assert output.data["text/html"].startswith("<iframe sandbox=")
    assert output.data["text/plain"].startswith("<the page lens")
    assert notebook.cells[2].outputs == [output], "warnings stand beside the page"


@pytest.mark.full
def test_where_gptviz_is_missing_the_notebook_has_said_how_to_install_it(tmp_path: Path) -> None:
    notebook = nbformat.reads(as_notebook(read_page("lens", {"model": "ladder-0"})), as_version=4)
    # What an installation says of where gptviz lies is taken back.
    (tmp_path / "sitecustomize.py").write_text(
        f"import sys\nsys.path = [path for path in sys.path if path != {str(ROOT)!r}]\n"
    )
    manager = started(tmp_path, str(tmp_path))
    with pytest.raises(CellExecutionError, match="No module named 'gptviz'"):
        NotebookClient(notebook, km=manager, timeout=PATIENCE).execute()
    manager.shutdown_kernel(now=True)
    assert "pip install" in notebook.cells[0].source


def test_the_notebook_of_the_documentation_runs_and_shows_three_views(run: Run) -> None:
    notebook = run(nbformat.read(ROOT / "docs" / "notebook.ipynb", as_version=4))
    shown = [
        out.data
        for cell in notebook.cells
        if cell.cell_type == "code"
        for out in cell.outputs
        if "data" in out
    ]
    frames = [data["text/html"] for data in shown if "<iframe" in data.get("text/html", "")]
    assert len(frames) == 3
    assert all("Nothing to see above?" in frame for frame in frames), (
        "where nothing is shown, the reader is told why"
    )
    written = next(data["text/plain"] for data in shown if "text/html" not in data)
    assert written == repr(
        gptviz.load("sentences").generate(
            "When Mary and John went to the shop , John gave a book to", 1, temperature=0.0
        )
    )
