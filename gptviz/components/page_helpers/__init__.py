"""What acts on the page around it, and is not seen.

On every page a click makes one step in the browser's history, however often the server writes the
address for it; and the Tab key leads from the button of an open popover into it, and from its end
to what follows the button. A prompt that is not edited shows its line breaks, and that it is cut.
Buttons of Streamlit that copy do so on a page from http too. The browser remembers the lessons that
were done, and ticks them in the list. Where it is asked for, the page scrolls to the view that a
step of a lesson is about, keys lead a speaker from step to step and move a spot, the server is told
the address that the page has in the browser.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gptviz.components.kit import pack, register
from gptviz.components.kit.events import read_event, text_up_to

_mount = register(Path(__file__).parent)
# The helpers that every page asks for.
ALWAYS = ("history", "popovers", "prompt", "clipboard", "paper")
LONGEST = 20_000  # characters of a query


def payload(*, done: str = "", step: str | None = None, presents: bool = False) -> bytes:
    """The bytes that the browser gets. Arguments as of `page_helpers`."""
    asked: dict[str, dict[str, str]] = {name: {} for name in ALWAYS} | {"ticks": {"done": done}}
    if step is not None:
        asked |= {"sight": {"step": step}, "question": {}}
    if presents:
        asked["speaker"] = {}
    return pack({"asked": asked})


def page_helpers(
    *, key: str, done: str = "", step: str | None = None, presents: bool = False
) -> None:
    """Let the helpers act on the page.

    Args:
        key: tells the views of one page apart.
        done: the name of the lesson that is open, if it is done. The browser keeps it: it shows
            what has the classes `lesson-tick` and `done-NAME` from then on.
        step: the name of the step of a lesson that is open, if any is. With another one the page
            scrolls if its first large view lies below the window; a visitor who scrolls or types is
            left alone. A question that is answered comes into sight as a whole.
        presents: whether the page listens to a speaker's keys: Page Down and Page Up lead to the
            next step and back, L is a spot.
    """
    _mount(key=key, data=payload(done=done, step=step, presents=presents))


def page_address(known: str, *, key: str, on_tell: Callable[[str], None]) -> None:
    """Call `on_tell` with the query of the page's address if it differs from `known`.

    Views write the choices made in them into the address, and Streamlit does not send these.
    """

    def answer(value: object) -> None:
        if (query := read_query(value)) is not None:
            on_tell(query)

    _mount(key=key, data=pack({"asked": {"address": {"known": known}}}), query=answer)


def read_query(value: object) -> str | None:
    """The query that an event from the browser tells; None if it is not what this component
    sends.
    """
    fields = read_event(value, query=text_up_to(LONGEST))
    if fields is None:
        return None
    return fields["query"]
