"""A page inside a Jupyter notebook: the same views as in the app, drawn by the same scripts."""

from __future__ import annotations

from html import escape

from gptviz.language_model import LanguageModel

from .page import PageContent, read_page
from .page_file import as_html


class Shown:
    """A page that Jupyter shows below a cell.

    Attributes:
        page: what it shows.
        height: of its frame, in pixels.
    """

    def __init__(self, page: PageContent, height: int) -> None:
        self.page, self.height = page, height

    def __repr__(self) -> str:
        return f"<the page {self.page.name}: {self.page.title}>"

    def _repr_html_(self) -> str:
        # A frame of its own, without the rights of the notebook: scripts run in it, and reach nothing outside.
        frame = escape(as_html(self.page))
        look = f"width: 100%; height: {self.height}px; border: 0"
        rights = "allow-scripts allow-downloads"
        return f'<iframe sandbox="{rights}" title="{escape(self.page.title)}" style="{look}" srcdoc="{frame}"></iframe>'


def show(model: LanguageModel | str, prompt: str, page: str = "attention", *, height: int = 720, **state: object) -> Shown:
    """A page of the app about a model and a prompt, to be shown below a cell of a notebook.

    >>> gptviz.show("shakespeare", "O Romeo, Romeo", block=2)

    Args:
        model: the model, or its name. One that was opened with edits or at a step of its training is shown so.
        prompt: what it reads.
        page: the name of a page, as its address has it: "attention", "next_token", "lens", …
        height: of the frame, in pixels.
        state: more of what the page's address says.

    Raises:
        ValueError: there is no such page, or it cannot be shown.
    """
    query = {"model": model, "prompt": prompt} if isinstance(model, str) else _query(model) | {"prompt": prompt}
    return Shown(read_page(page, query | {key: str(value) for key, value in state.items()}), height)


def _query(lm: LanguageModel) -> dict[str, str]:
    """What an address says of a model."""
    query = {"model": lm.name, "precision": lm.precision}
    if lm.step is not None:
        query["step"] = str(lm.step)
    if lm.edits:
        query["edits"] = ",".join(lm.edits)
    if lm.edit_text is not None:
        query["edit_text"] = lm.edit_text
    return query
