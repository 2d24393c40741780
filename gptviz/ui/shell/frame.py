"""The frame of every page: how it starts, its menu, and how a link leads from one page to
another.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from threading import Event
from typing import Literal
from urllib.parse import parse_qs

import streamlit as st

from gptviz import streamlit_internals
from gptviz.components import kit
from gptviz.components.page_helpers import page_helpers
from gptviz.languages import translate
from gptviz.machine import hosting
from gptviz.machine.memory import release_memory
from gptviz.model import devices
from gptviz.model.devices import STORED
from gptviz.model.kinds import MODEL_KINDS, Kind
from gptviz.runs import checkpoints
from gptviz.settings.address_values import ANY
from gptviz.ui.menu import GROUPS, IN_MENU, PAGES, pages_here
from gptviz.ui.page import Page
from gptviz.ui.records.home import PAGE as HOME
from gptviz.ui.widgets import addresses, buttons, controls, tries, visit
from gptviz.ui.widgets.headings import say_below_titles

from .around import glossary, language, lesson, present, room, search, server_log, tour
from .around.share import share
from .subject import edits, kinds, prompts, scrubber

# The model of an address that names none, but something else of what a page shows.
DEFAULT_MODEL = kinds.BEST["decoder"]
DEFAULT_PROMPT = prompts.LINES
# Keys of the session's state: the default prompt of the model shown last, the page that is open,
# whether the reader has chosen a model, and the groups of the menu that the reader folded.
DEFAULT_SHOWN = "default prompt"
OPEN_PAGE = "page open"
HAS_CHOSEN = "a model was chosen"
FOLDED = "menu folded"
MENU_WIDTH = 216
# In the address: whether all of a long prompt is read.
WHOLE = "whole"
# In the address of a page that opens on another model: that it shows `DEFAULT_MODEL`, which an
# address does not name.
USUAL = "usual"
# Keys that the address of any page may have, even if the page does not show them: links carry them
# from page to page.
SHARED = (
    "model",
    "step",
    "prompt",
    "device",
    "precision",
    WHOLE,
    USUAL,
    edits.EDITS,
    edits.TEXT,
    *lesson.KEYS,
    present.PRESENT,
    language.LANGUAGE,
)
# Those that say nothing about a model.
ABOUT_NO_MODEL = ("device", "precision", *lesson.KEYS, present.PRESENT, language.LANGUAGE)
hosting.guests_are(streamlit_internals.is_guest)
# Set once any page has shown its heading: what takes the processor longer may follow.
begun = Event()


def page_about(kind: Kind) -> Page:
    """The page that shows what a model of this kind does: the first that is about no other kind."""
    return next(page for page in PAGES.values() if page.kinds == (kind,))


def current_page() -> Page:
    """The page that is open."""
    return PAGES[st.session_state.get(OPEN_PAGE, HOME.name)]


def default_model(page: Page | None = None) -> str:
    """The model that `page` shows if its address asks for nothing; of the open page unless
    given.
    """
    page = page or current_page()
    has_own = page.opens_on and checkpoints.folder_of(page.opens_on) is not None
    if has_own:
        return page.opens_on
    return kinds.best_model(page.kinds[0])


def model_on_screen() -> str:
    """The name of the model that the open page shows."""
    shown = st.session_state.get("model", st.query_params.get("model"))
    if shown is None:
        return default_model()
    return str(shown)


def open_page(page: Page) -> None:
    """Start a page: configuration, menu, the question it answers and one sentence on what it
    shows.
    """
    server_log.protect()
    streamlit_internals.send_everything()
    kit.begin_page()
    release_memory()  # of the page before
    _follow_history()
    # The side bar is open if it has a lesson, on a phone too; else closed in front of a class. A
    # number is its width in pixels on a screen that has room for it.
    closed: int | Literal["collapsed"] = "collapsed" if present.is_presenting() else MENU_WIDTH
    side_bar: int | Literal["expanded", "collapsed"] = "expanded" if lesson.is_asked() else closed
    st.set_page_config(
        page_title=f"{translate(page.title)} · gptviz",
        page_icon="🔎",
        layout="wide",
        initial_sidebar_state=side_bar,
    )
    if OPEN_PAGE not in st.session_state and streamlit_internals.is_drawn_before():
        # The page is loaded anew, so that it opens on all that its address says.
        st.html("<script>location.reload()</script>", unsafe_allow_javascript=True)
        st.stop()
    if OPEN_PAGE not in st.session_state:
        room.open_start(page)
    if st.session_state.get(OPEN_PAGE) != page.name:
        st.session_state[OPEN_PAGE] = page.name
        tries.forget()
        controls.forget_texts()
        buttons.forget_pressed()
        visit.forget()
        _open_linked_model()
    if model_on_screen() != default_model():
        st.session_state[HAS_CHOSEN] = True
    addresses.forget_taken()
    controls.notices_in()
    tries.begin()
    for key in SHARED:
        addresses.accept_values(key, ANY)
    addresses.write(USUAL, "yes" if page.opens_on and model_on_screen() == DEFAULT_MODEL else None)
    say_below_titles()  # until the page has a subject
    is_presenting = present.is_presenting()
    look = {
        "lesson": lesson.current_lesson() is not None,
        "presenting": is_presenting,
        "view_only": present.is_view_only(),
    }
    st.html(f"<style>{kit.page_style(**look)}</style>")
    present.listen()
    language.listen()
    with st.sidebar:
        st.markdown("## gptviz")
        has_lesson = lesson.panel()
        state = carried_state()
        search.box(state, {key: state[key] for key in ABOUT_NO_MODEL if key in state})
        with st.expander("All pages") if has_lesson or is_presenting else st.container():
            _menu()
        done = lesson.done_on_screen()
        step = lesson.step_on_screen()
        page_helpers(key="page helpers", done=done, step=step, presents=is_presenting)
    room.refuse_left_out(page)
    kind = kinds.kind_said(checkpoints.folder_of(model_on_screen())) or "decoder"
    with st.container(gap=None, key="page-head"):
        with st.container(
            horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"
        ):
            st.title(_text_for(page.question, kind), anchor=False, width="content")
            with st.container(horizontal=True, width="content", gap="xsmall", key="page-tools"):
                tour.tour_button(page)
                glossary.words_button(page)
                room.room_button()
                share(page.name, model_on_screen() if MODEL_KINDS[kind].continues else None)
        st.caption(_text_for(page.caption, kind))
    begun.set()


def _text_for(text: str | Mapping[Kind, str], kind: Kind) -> str:
    """The text about models of this kind, in the reader's language."""
    return translate(text if isinstance(text, str) else text[kind])


def _follow_history() -> None:
    """After a step in the browser's history, show what the address says, and nothing of the page
    left.

    Between pages Streamlit drops the keys that controls of the page left were bound to from the
    query, and a control of the same key would show its default. That is right for a link, which is
    given those values too; here they belong to this page.
    """
    if not streamlit_internals.is_step_in_history():
        return
    for key in SHARED:
        st.session_state.pop(key, None)
    streamlit_internals.read_controls_from_address()
    asked = parse_qs(streamlit_internals.page_and_query()[1], keep_blank_values=True)
    # The keys that say how the page is embedded in another one belong to Streamlit.
    dropped = {
        key: asked[key]
        for key in asked
        if key not in st.query_params and not key.lower().startswith("embed")
    }
    if dropped:
        st.query_params.update(dropped)


def _menu() -> None:
    """The links to all pages, in groups that can be folded: a folded one stays so on the other
    pages.
    """
    folded = st.session_state.setdefault(FOLDED, set())
    state = carried_state()  # once for all links
    here = pages_here()
    for group in IN_MENU:
        entries = [page for page in GROUPS[group] if page.name in here]
        if not entries:
            continue
        fold = partial(folded.symmetric_difference_update, [group])
        opened = st.expander(
            group, expanded=group not in folded, type="compact", key=f"menu {group}", on_change=fold
        )
        with opened.container(gap="xxsmall"):
            for entry in entries:
                if "model" in state:
                    query = state
                else:
                    query = {"model": default_model(entry)} | state
                link(entry, description=translate(entry.sentence), query=query)


def _open_linked_model() -> None:
    """Open the model that the link to this page names. A link that asks for nothing opens the
    page's own model.

    This is set by hand: between pages Streamlit drops the keys that controls of the last page were
    bound to from the query, even if the link asks for them. The query that arrived has the last
    page's part first, then the link's. A control whose default differed from page to page would
    leave the model out of the link.
    """
    query = parse_qs(streamlit_internals.page_and_query()[1])
    asks_for_more = any(
        key not in ABOUT_NO_MODEL and not key.lower().startswith("embed") for key in query
    )
    if asks_for_more:
        usual = kinds.best_model(current_page().kinds[0])
    else:
        usual = default_model()
    asked = query.get("model", [usual])[-1]
    if checkpoints.folder_of(asked) is not None:
        st.session_state["model"] = asked
        if asked != DEFAULT_MODEL:
            addresses.write("model", asked)


def shared_state() -> dict[str, str]:
    """The state that all pages share, as the query of a link: the model; prompt, step, whether all
    of the prompt is read, device, precision and edits, if they are not the defaults; and the open
    lesson.
    """
    # What the reader has chosen for the model on screen, apart from the model itself.
    prompt = st.session_state.get(DEFAULT_SHOWN, DEFAULT_PROMPT)
    defaults = {"step": scrubber.LAST, "prompt": prompt, "precision": STORED, WHOLE: "False"}
    now = {
        key: st.session_state.get(key, st.query_params.get(key)) for key in (*defaults, "device")
    }
    now |= {key: controls.in_link(key) for key in ("prompt", edits.TEXT)} | {
        edits.EDITS: st.query_params.get(edits.EDITS)
    }
    state = {
        key: str(value)
        for key, value in now.items()
        if value is not None and value != defaults.get(key, "")
    }
    if "device" in state and state["device"] == devices.devices()[0]:
        del state["device"]
    if "step" in state and not scrubber.has_step(model_on_screen(), state["step"]):
        del state["step"]
    return (
        {"model": model_on_screen()} | state | lesson.state() | present.state() | language.state()
    )


def carried_state() -> dict[str, str]:
    """The shared state as far as a link brings it along: without the model where the reader has
    chosen nothing.

    A page about other kinds than decoders keeps its model: what leads on from there is about the
    same one.
    """
    state = shared_state()
    has_chosen = st.session_state.get(HAS_CHOSEN) or state.keys() & {"prompt", "step", edits.EDITS}
    if not has_chosen and "decoder" in current_page().kinds:
        del state["model"]
    return state


def link(
    page: Page,
    label: str | None = None,
    *,
    description: str | None = None,
    query: Mapping[str, str] | None = None,
) -> None:
    """A link to `page`, if this visitor may open it.

    Args:
        label: the page's title unless given.
        description: a sentence shown when the pointer rests on the link.
        query: what the link asks for; unless given, the shared state, or the page's own model if
            the reader has chosen nothing.
    """
    if page.name not in pages_here():
        return
    state = dict(({"model": default_model(page)} | carried_state()) if query is None else query)
    # An address leaves this model out, unless its page would open on another one, or the model of
    # this page would be taken along.
    if state.get("model") == DEFAULT_MODEL == model_on_screen() and not page.opens_on:
        del state["model"]
    st.page_link(
        page.path,
        label=label or translate(page.title),
        icon=page.icon,
        help=description,
        query_params=state,
    )
