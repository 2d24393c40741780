"""A page inside a Jupyter notebook: the same views as in the app, drawn by the same scripts."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, overload

from gptviz.figures.kit.labelled import picture
from gptviz.figures.kit.theme import LIGHT
from gptviz.interp.trace import Trace
from gptviz.labelled_array import LabelledArray
from gptviz.language_model import LanguageModel, TextTrace
from gptviz.language_model.core import LoadedModel

from .page import PageContent, PageError, read_page
from .page_file import as_html

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

# Jupyter removes the frame from a notebook of somebody else until the reader trusts it; this line
# stays.
UNTRUSTED = (
    "<details><summary>Nothing to see above?</summary>Jupyter shows no views in a notebook that "
    "it does not trust. Choose “Trust "
    "Notebook” in the menu File (or run <code>jupyter trust NAME.ipynb</code>), and run the cell "
    "again.</details>"
)


class NotebookPage:
    """A page that Jupyter shows below a cell."""

    def __init__(self, page: PageContent, height: int) -> None:
        self.page = page  #: its content
        self.height = height  #: of its frame, in pixels

    def __repr__(self) -> str:
        return f"<the page {self.page.name}: {self.page.title}>"

    def _repr_html_(self) -> str:
        # Scripts in this frame do not have the rights of the notebook, and cannot reach anything
        # outside.
        frame = escape(as_html(self.page))
        look = f"width: 100%; height: {self.height}px; border: 0"
        rights = "allow-scripts allow-downloads"
        title = escape(self.page.title)
        return (
            f'<iframe sandbox="{rights}" title="{title}" style="{look}" '
            f'srcdoc="{frame}"></iframe>{UNTRUSTED}'
        )


@overload
def show(what: LabelledArray, /, *, height: int | None = None) -> Figure: ...
@overload
def show(
    what: Trace | LanguageModel | str | None,
    /,
    prompt: str | None = None,
    page: str = "attention",
    *,
    height: int | None = None,
    **state: object,
) -> NotebookPage: ...
def show(
    what: Trace | LanguageModel | LabelledArray | str | None,
    /,
    prompt: str | None = None,
    page: str = "attention",
    *,
    height: int | None = None,
    **state: object,
) -> NotebookPage | Figure:
    """A page of the app about a trace, or about a model and a prompt, to be shown below a cell of a
    notebook; or the picture of an array, which most methods of a `LanguageModel` return.

    >>> gptviz.show("shakespeare", "O Romeo, Romeo", block=2)
    >>> gptviz.show(gptviz.load("shakespeare").trace("O Romeo, Romeo"), page="lens")
    >>> gptviz.show(gptviz.load("shakespeare").composition())

    Args:
        what: an array with one or two axes; a trace that `LanguageModel.trace` recorded; or a
            model, or its name. A model that was opened with edits or at a step of its training is
            shown so. None: the model that the page opens on, if any.
        prompt: the text that the model reads; by default the one that the page opens on. A trace
            has its own.
        page: the name of a page, as its address has it: "attention", "next_token", "lens", …
        height: in pixels; by default 720 of a page, 360 of a picture.
        state: more values of the page's address.

    Raises:
        TypeError: `what` is none of these.
        ValueError: there is no such page, or it cannot be shown; it does not accept a value of
            `state`; or no page can compute the values that the trace recorded.
    """
    if isinstance(what, LabelledArray):
        return picture(what, LIGHT, height=height or 360)
    if isinstance(what, Trace):
        if prompt is not None:
            raise ValueError(
                f"a trace has its text already, and {prompt!r:.40} is another: name a page as "
                f"page={prompt!r:.40}"
            )
        if not isinstance(what, TextTrace):
            raise ValueError(
                "this trace knows no model and no text: take one from LanguageModel.trace"
            )
        if not what.is_own:
            raise ValueError(
                "this trace was computed with values replaced, or for another answer than the "
                "model's own, which no page can "
                "show: switch parts off with LanguageModel.edited"
            )
        return _page(page, _query(what.lm) | {"prompt": what.prompt}, state, height)
    if not isinstance(what, str | LanguageModel | None):
        raise TypeError(
            f"{what!r:.80} cannot be shown: give an array, a trace, a model or the name of a model"
        )
    if what is None:
        query = {}
    elif isinstance(what, str):
        query = {"model": what}
    else:
        query = _query(what)
    if prompt is not None:
        query["prompt"] = prompt
    return _page(page, query, state, height)


def _page(
    page: str, query: dict[str, str], state: Mapping[str, object], height: int | None
) -> NotebookPage:
    """The page at this address, and with more values in it."""
    content = read_page(page, query | {key: str(value) for key, value in state.items()})
    if content.rejected:
        raise PageError("; ".join(content.rejected.values()))
    return NotebookPage(content, height or 720)


def _query(lm: LoadedModel) -> dict[str, str]:
    """The query of an address for this model."""
    query = {"model": lm.name, "precision": lm.precision}
    if lm.step is not None:
        query["step"] = str(lm.step)
    if lm.edits:
        query["edits"] = ",".join(lm.edits)
    if lm.edit_text is not None:
        query["edit_text"] = lm.edit_text
    return query
