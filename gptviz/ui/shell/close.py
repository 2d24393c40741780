"""The end of a page: what to try, the details of what it shows, and the next page to read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from gptviz.labelled_array import LabelledArray
from gptviz.ui.page import Page
from gptviz.ui.widgets import Try, try_this
from gptviz.ui.widgets.details import details

from .around.next_step import next_step


class PageResult(NamedTuple):
    """What is folded below a view."""

    numbers: Callable[[], LabelledArray] | None = None  #: as in `details`
    code: str | None = None  #: as in `details`
    #: which view is on screen, by its name in the page's `about.md`: the first one unless given;
    #: None where the page shows nothing that needs explaining
    view: str | None = ""


NOTHING = PageResult(view=None)


def close(
    page: Page,
    offers: Sequence[Try] | None = None,
    numbers: Callable[[], LabelledArray] | None = None,
    code: str | None = None,
    view: str | None = "",
    *,
    more: str = "",
) -> None:
    """End a page: a line that leads to the next one, after what is left to say of this one.

    Args:
        offers: what to try; None where the page has no suggestions, or has shown them further up.
        numbers: as in `PageResult`, and so are `code` and `view`.
        more: Markdown that follows after how the view is computed, such as what depends on the
            model.
    """
    if offers is not None:
        try_this(offers)
    if view is not None:
        about = page.about[view or next(iter(page.about))]
        details(
            numbers, code=code, about=about._replace(how=f"{about.how}\n\n{more}"), key=page.name
        )
    next_step()
