"""All that gptviz uses of Streamlit beyond its documented interface. No other module imports the
inner modules of Streamlit.

Any of it may change with a new version of Streamlit. `tests/test_streamlit_internals.py` tests
each, and says what breaks in gptviz when it changes. The replaced `history.pushState` of the
browser is in `components/page_helpers/history_steps.js`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Thread
from time import monotonic, sleep
from typing import Any

from streamlit import config, context, runtime
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.scriptrunner_utils.script_run_context import ThreadState, in_cached_function

from .machine.job import jobs_going_on
from .machine.location import APP
from .settings import address_values

# The version in which all of this was tested last.
SEEN_IN = "1.67.0"
# In the session of a page that is run without a browser: it is read as a whole, with what is
# folded.
READ_AS_A_WHOLE = "read as a whole"
# Seconds between two looks at whether there is a server.
LOOK = 0.02

# How a browser of this machine names the server, as Host and as Origin.
_OWN = re.compile(r"(https?://)?(localhost|127\.0\.0\.1|\[::1\])\.?(:[0-9]{1,5})?", re.IGNORECASE)
# The headers that a forwarder adds, and no browser.
_OF_FORWARDER = re.compile(
    r"via|(.*-)?forwarded(-.*)?|x-(real|original|envoy|cluster)-.*|(.*-)?(client|connecting)-ip",
    re.IGNORECASE,
)

# The selectors that style sheets and scripts use on Streamlit's pages, and what is lost if one
# finds nothing. Only `st-key-…`, the class of an element with a key, is documented.
SELECTORS = {
    "[data-testid=stApp]": "a lesson's view is not brought into sight; a click makes several steps "
    "in the browser's history",
    "[data-test-script-state]": "a lesson's view is brought into sight too early; changes of the "
    "address get lost in the history",
    "[data-test-connection-state]": "the page does not say why its controls are grey while the "
    "server does not answer",
    "[data-testid=stMain]": "a lesson's view is not brought into sight; the focus has no ring, or "
    "is below the bar",
    "[data-testid=stAppViewContainer]": "a lesson covers the page on a phone",
    "[data-testid=stMainBlockContainer]": "a page begins too far down and is too narrow",
    "[data-testid=stHeader]": "in front of a class the header takes room; the menu as a rail has "
    "no button",
    "[data-testid=stSidebar]": "a lesson is narrow, or covers the page of a phone; the menu is no "
    "rail when shut, and is printed",
    "[data-collapsed]": "a lesson is as narrow as the menu; the menu is no rail when shut",
    "[data-testid=stSidebarContent]": "a long step of a lesson covers the page on a phone; the "
    "menu does not unfold",
    "[data-testid=stSidebarUserContent]": "the menu as a rail is cut in the middle of words",
    "[data-testid=stSidebarHeader]": "the side bar begins with an empty line",
    "[data-testid=stExpandSidebarButton]": "beside a lesson on a phone stands a button that does "
    "nothing",
    ".stVerticalBlock": "the menu stands above a lesson on a phone, and a folded lesson is not one "
    "line",
    "[data-testid=stHeading]": "there is too much room around headings",
    "[data-testid=stHorizontalBlock]": "charts side by side are too narrow for their labels",
    "[data-testid=stColumn]": "charts side by side are too narrow for their labels",
    "[data-testid=stLayoutWrapper]": "cards, suggestions, captions beside figures and the table of "
    "Runs have the wrong width",
    "[data-testid=stPlotlyChart]": "charts side by side are too narrow; a lesson's chart is not "
    "brought into sight",
    "[data-testid=stDataFrame]": "a lesson's table is not brought into sight",
    ".stBidiComponent": "a lesson's view is not brought into sight",
    "[data-testid=stPageLink-NavLink]": "a link of the menu with the focus has no ring",
    "[data-testid=stButtonGroup]": "choices side by side are cut on a phone",
    "[data-testid^=stBaseButton-primary]": "the words on the main buttons can hardly be read in "
    "the dark theme",
    "[data-testid=stBaseButton-elementToolbar]": "the focus on a button above a table has no ring",
    "[data-testid=stElementToolbar]": "the buttons above a table cannot be seen by who comes to "
    "them with the Tab key",
    "[data-testid=stPopover]": '"view only" shows the buttons that open a popover, and so does paper',
    "[data-testid=stButton]": "buttons are printed",
    "[data-testid=stDownloadButton]": "buttons are printed",
    "[data-testid=stFileUploader]": "the place for a file is printed",
    "[data-testid=stExpander]": "the names of what is folded are printed",
    "[data-testid=stTooltipIcon]": "question marks are printed",
    "[data-testid=stPopoverButton]": "a popover is not reached by the Tab key",
    "[data-testid=stPopoverBody]": "a popover is not reached by the Tab key",
    "[data-testid=stSelectbox]": "the name of a control in one line stands above it",
    "[data-tag]": "the words on what is chosen of several can hardly be read in the dark theme",
    "[data-testid=stTextArea]": "the prompt takes several lines, its name stands above it",
    "[data-testid=stTextAreaRootElement]": "the prompt is cut while it is edited",
    "[data-testid=stWidgetLabel]": "controls in one line are not in the middle of it",
    "[data-testid=stElementContainer]": "a class that is to see only the view sees the controls",
    "[data-testid=stSlider]": "sliders cannot be seen where colours are forced; the slider of the "
    "step is higher than its line",
    "[data-testid=stSliderThumbValue]": "the step is written twice",
    "[data-testid=stAlert]": "what is said of an answer in a lesson is not brought into sight",
    "[data-rac]": "sliders cannot be seen where colours are forced",
    "[data-testid=stMarkdownContainer]": "a lesson in a language that is written from the right "
    "begins at the left",
    "[data-testid=stCaptionContainer]": "code in a caption is too faint",
    "[data-testid=stCheckbox]": "switches cannot be seen where colours are forced",
    "[data-testid=stCode]": "the words of code are too faint",
    "[data-selected]": "it cannot be seen which switches are on where colours are forced",
}


def serve(meanwhile: Callable[[], None]) -> None:
    """Run the server that the command line of this process describes, as `python -m streamlit`
    does.

    `meanwhile` is called in a thread as soon as there is a server. Not earlier: modules of
    Streamlit import each other in circles, which two threads must not do at the same time, and what
    is cached without a server is cached in another way.
    """
    from streamlit.web import bootstrap, cli  # noqa: F401

    def when_running() -> None:
        while not runtime.exists():
            sleep(LOOK)
        meanwhile()

    Thread(target=when_running, daemon=True).start()
    cli.main(prog_name="streamlit")


def session() -> str | None:
    """The session whose page this thread runs, or None if it runs none."""
    context = get_script_run_ctx(suppress_warning=True)
    if context:
        return context.session_id
    return None


def is_fragment() -> bool:
    """Whether this thread runs a fragment of a page, which may draw controls only in itself."""
    return ThreadState.get().fragment_id is not None


def is_guest() -> bool:
    """Whether this thread of a server may work for a visitor from another machine.

    It does not where it runs a page for a browser of this machine that asked for this machine by
    its own address. A forwarder on this machine may say nothing of its visitors, or what they wish:
    so whatever it adds, and any other address that the browser asked for, speaks against it. The
    browser itself writes the header Origin, which forwarders leave as it is.
    """
    if not runtime.exists():
        return False
    headers = context.headers
    asked = [*headers.get_all("Host"), *headers.get_all("Origin")]
    return (
        context.ip_address is not None
        or len(asked) != 2
        or not all(map(_OWN.fullmatch, asked))
        or any(map(_OF_FORWARDER.fullmatch, headers))
    )


def browser() -> str | None:
    """What tells the browser whose page this thread runs from all others, in another tab and after
    a reload too: the random number of the cookie that Streamlit has against forged requests. None
    for a browser that keeps no cookies.
    """
    # what starts a server, which the command line does not need
    from streamlit.web.server.starlette.starlette_app_utils import decode_xsrf_token_string

    number, _ = decode_xsrf_token_string(context.cookies.get("_streamlit_xsrf", ""))
    if number is None:
        return None
    return number.hex()


def page_and_query() -> tuple[str, str]:
    """The page that this thread runs, and the query of its address as the browser sent it; both
    empty if it runs none.
    """
    context = get_script_run_ctx(suppress_warning=True)
    if context:
        return (context.page_script_hash, context.query_string)
    return ("", "")


def is_drawn_before() -> bool:
    """Whether the browser already shows a page of gptviz, while this session has drawn nothing yet:
    the server was started again.

    Such a browser sends the state of controls. Its query is the one that the server wrote last,
    without what views wrote since.
    """
    context = get_script_run_ctx(suppress_warning=True)
    return context is not None and bool(context.session_state._state._new_widget_state.states)


def is_step_in_history() -> bool:
    """Whether the page runs because the visitor went back or forward in the browser's history."""
    context = get_script_run_ctx(suppress_warning=True)
    return context is not None and context.is_history_navigation


def read_controls_from_address() -> None:
    """Let each control that is drawn from now on take its value from the whole query of the
    address.

    On the way from page to page Streamlit drops from the query what a control of the page left was
    bound to.
    """
    context = get_script_run_ctx()
    if context is not None:
        with context.session_state.query_params() as arrived:
            arrived.set_initial_query_params(context.query_string)


def period(seconds: int) -> int:
    """A number that changes every `seconds`: as an argument of a cached function, it has the value
    computed again.

    It stands in place of `st.cache_resource(ttl=seconds)`, which looks at the clock twice and ends
    the page with a KeyError if a value's time is over between the two.
    """
    return int(monotonic() // seconds)


@contextmanager
def outside_cache() -> Iterator[None]:
    """Within a cached function: elements drawn inside are not drawn again with the cached value;
    controls are allowed too.
    """
    before = in_cached_function.set(False)
    try:
        yield
    finally:
        in_cached_function.reset(before)


_clear = ForwardMsgQueue.clear


def send_everything() -> None:
    """From now on, let a part of a page that runs again remove nothing from the messages that wait
    to be sent.

    Streamlit removes from them what the part drew before. But it does not remove the short messages
    that stand for a large one which the browser already has, and it cannot remove what was sent a
    moment ago. So the browser could get an element without those before it, and then shows an error
    in place of the page.
    """
    ForwardMsgQueue.clear = _clear_for_pages  # type: ignore[method-assign]


def _clear_for_pages(
    self: ForwardMsgQueue,
    retain_lifecycle_msgs: bool = False,
    fragment_ids_this_run: list[str] | None = None,
) -> None:
    if fragment_ids_this_run is None:
        _clear(self, retain_lifecycle_msgs)
    else:
        # what is drawn from now on comes after all that waits, and in the place of none of it
        self._delta_index_map = {}


# The logger that warns, many times over, that a page is computed without a server, which is
# intended here.
_WARNS = "streamlit.runtime.scriptrunner_utils.script_run_context"
# As .streamlit/config.toml says, which Streamlit finds only from the folder that it lies in.
_WIDGETS = "global.disableWidgetStateDuplicationWarning"


class Element:
    """An element of a page, as Streamlit's tools for tests name it."""

    def __init__(self, node: Any) -> None:
        children = getattr(node, "children", None)
        #: its fields in Streamlit's protocol
        self._node = node
        self.message = node.proto
        #: the elements of a container, or None for another element
        if children is None:
            self.inside = None
        else:
            self.inside = [Element(child) for child in children.values()]
        #: the kind of a container, such as "expander"; else the name of the element's message, such
        #: as "Markdown"
        self.kind: str = type(node.proto).__name__ if children is None else node.type

    @property
    def value(self) -> Any:
        """The value of a control, or the numbers of a table, or None if it has neither."""
        return getattr(self._node, "value", None)


@dataclass(frozen=True)
class PageRun:
    """A page that ran once."""

    shown: Sequence[Element]  #: the elements of its main part
    failed: Sequence[str]  #: the messages of the exceptions that ended it
    errors: Sequence[str]  #: the errors that it shows
    #: a sentence for each key of its address that it does not take; empty if the page failed
    rejected: Mapping[str, str]


def run_page(name: str, query: Mapping[str, str], patience: float) -> PageRun:
    """Run the page called `name` (of `location.page_names()`) at the address `query`, without a
    server and a browser, until nothing that it has begun to compute goes on.

    A RuntimeError if it takes longer than `patience` seconds. This is the only place where gptviz
    stands on `streamlit.testing`.
    """
    from streamlit.testing.v1 import AppTest  # pages of a server do not need it

    logging.getLogger(_WARNS).disabled = True
    config.set_option(_WIDGETS, True)
    at = AppTest.from_file(str(APP), default_timeout=patience)
    if name != "home":
        at.switch_page(f"pages/{name}.py")
    for key, value in query.items():
        at.query_params[key] = value
    at.session_state[READ_AS_A_WHOLE] = True
    at.run()
    # what is computed beside the page is shown by its next run
    until = monotonic() + patience
    while (going := jobs_going_on()) and monotonic() < until:
        for job in going:
            job.wait(until - monotonic())
        at.run()
    failed = [exception.message for exception in at.exception]
    if failed:
        rejected = {}
    else:
        rejected = address_values.reject_keys(name, query, at.session_state[address_values.NOTED])
    return PageRun(
        Element(at.main).inside or [], failed, [error.value for error in at.error], rejected
    )
