"""In front of a class: larger type, no menu, keys for a speaker, and the link to this screen as a
QR code.
"""

from __future__ import annotations

from urllib.parse import parse_qsl, urljoin, urlsplit

import segno
import streamlit as st

from gptviz.machine.hosting import hosting, own_address
from gptviz.ui.widgets import addresses, escape_markdown

from ..subject import on_screen

PRESENT = "present"
# Its values: larger type, no menu; and without the controls too.
LARGE = "1"
VIEW_ONLY = "view"
# What a person may type for them.
WORDS = {
    **dict.fromkeys((LARGE, "yes", "true", "on", "large"), LARGE),
    **dict.fromkeys((VIEW_ONLY, "view only", "view_only", "only"), VIEW_ONLY),
}
# The longest link that a QR code can hold, in characters.
LONGEST_LINK = 2_000
HERE = ("localhost", "127.0.0.1", "::1", "[::1]")
KEYS = (
    "**Page Down** and **Page Up** lead through the steps of a lesson, as a speaker's remote "
    "control does. **L** turns on a red "
    "spot that follows the pointer and the arrow keys, **Escape** turns it off."
)


def _mode() -> str:
    """How the page is shown to a class, from its address or the page before; empty where it is not
    shown to one.
    """
    asked = st.query_params.get(PRESENT, st.session_state.get(PRESENT, ""))
    return WORDS.get(asked.lower(), "")


def is_presenting() -> bool:
    """Whether the page is shown to a class."""
    return _mode() != ""


def is_view_only() -> bool:
    """Whether a class is shown the views without the controls, and of a step of a lesson the
    question.
    """
    return _mode() == VIEW_ONLY


def state() -> dict[str, str]:
    """Its values in a link to another page."""
    if is_presenting():
        return {PRESENT: _mode()}
    return {}


def _switch(mode: str) -> None:
    if mode:
        st.session_state[PRESENT] = mode
    else:
        st.session_state.pop(PRESENT, None)
    addresses.write(PRESENT, mode or None)


def listen() -> None:
    """While presenting, keep that in the address."""
    if is_presenting():
        _switch(_mode())


def controls() -> None:
    """The tools of a speaker: buttons that start and end the presentation and fold the controls,
    and the list of keys.
    """
    on = is_presenting()
    only = is_view_only()
    st.markdown("**Present**")
    with st.container(horizontal=True):
        label = "Leave the presentation" if on else "Larger type, no menu"
        st.button(label, key="switch presenting", on_click=_switch, args=("" if on else LARGE,))
        label = "Show the controls" if only else "View only, no controls"
        st.button(
            label, key="switch view only", on_click=_switch, args=(LARGE if only else VIEW_ONLY,)
        )
    st.caption(KEYS)


def link() -> None:
    """The link to this screen, to be opened by a phone's camera."""
    st.markdown("**Link**")
    _show_link(_address())


def link_to(address: str) -> None:
    """The link to what an address names that is relative to this page, in the same way."""
    _show_link(urljoin(base, address) if (base := _base()) else None)


def _show_link(link: str | None) -> None:
    if link is None or len(link) > LONGEST_LINK:
        st.caption("What is on screen has no link that a QR code could hold.")
        return
    host = urlsplit(link).hostname or ""
    if host in HERE:
        st.caption(
            f"Only this machine opens this link: its address, {escape_markdown(host)}, means "
            "itself. For "
            "a class in the same network "
            "start the app with `gptviz app --lan`."
        )
    else:
        code = segno.make(link, error="l", micro=False)
        st.image(
            code.svg_data_uri(border=4, dark="#000", light="#fff"),
            width=220,
            alt=f"QR code of {link}",
        )
    st.code(link, language=None, wrap_lines=True)  # with a button that copies it


def _address() -> str | None:
    """The address of this screen, without the state of the presentation; None without a browser."""
    base = _base()
    if base is None:
        return None
    query = [
        (key, value)
        for key, value in parse_qsl(on_screen.query(), keep_blank_values=True)
        if key != PRESENT
    ]
    return addresses.link(base.partition("?")[0], query)


def _base() -> str | None:
    """The address of this page, as a class in one network can open it; None without a browser."""
    base = st.context.url
    if not base:
        return None
    parts = urlsplit(base)
    if hosting().lan and parts.hostname in HERE and (address := own_address()) is not None:
        return parts._replace(netloc=f"{address}:{parts.port}" if parts.port else address).geturl()
    return base
