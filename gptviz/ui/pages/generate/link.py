"""The link to a text: the route to the branch on screen."""

from __future__ import annotations

import streamlit as st

from gptviz.generate.budget import BUDGET, affordable
from gptviz.generate.route import Route
from gptviz.settings.address_values import ANY, no_value
from gptviz.ui.widgets import addresses, controls, escape_markdown

from .writing import MOST_TOKENS, Writing

# The keys of the address: the second is that of a whole tree, which servers of earlier versions
# kept; it is read no more.
ROUTE = "route"
TREE = "tree"
# The most characters of a route in an address: with the prompt it must pass through servers, mail
# and chat.
LONGEST_ROUTE = 1_500


def open_linked(writing: Writing) -> bool:
    """Bring back the branch that the link asks for, and return whether it asks for one.

    What takes longer than a moment is written while the reader looks on, as when the text plays.
    """
    addresses.accept_values(ROUTE, ANY)
    addresses.accept_values(TREE, ANY)
    try:
        asked = addresses.get(ROUTE)
    except addresses.NotKeptError as error:  # the address names a text that is not on this machine
        st.warning(f"{escape_markdown(str(error))}.", icon=":material/link_off:")
        return False
    if not asked:
        return False
    # these are never written
    size = writing.lm.model.config.vocab_size - len(writing.lm.tokenizer.unused_ids)
    try:
        linked = Route.read_line(asked, vocab_size=size, most=MOST_TOKENS)
    except ValueError as error:
        addresses.accept_values(ROUTE, no_value(str(error)))
        controls.warn_of_link("route =", asked, f": {escape_markdown(str(error))}")
        return False
    writing.follow(linked, asked)
    at_once = affordable(
        writing.lm.model, len(writing.tree.prompt) + writing.length, len(writing.ahead), BUDGET
    )
    for _ in range(at_once):
        writing.step()
    if writing.ahead:
        writing.play()
    return True


def address(writing: Writing) -> dict[str, str | None]:
    """The values in the address that bring the text back; none for the text that the page opens on
    by itself.
    """
    line = "" if writing.is_untouched else writing.linked or route(writing)
    return {ROUTE: line if 0 < len(line) <= LONGEST_ROUTE else None, TREE: None}


def route(writing: Writing) -> str:
    """The route to the branch on screen, as a line."""
    return Route.route_to(writing.written_nodes).line


def explain(writing: Writing) -> None:
    """Say which part of the text a link did not bring back, and what the link to this page cannot
    hold.
    """
    if writing.ahead:
        st.info(
            f"The text of the link has {len(writing.ahead):,} more tokens: Play writes them.",
            icon=":material/play_arrow:",
        )
    if writing.differs:
        st.warning(
            "The link was made for another text: the model was trained again since then, or this "
            "machine’s numbers differ in "
            "the last digit, which can change the draw.",
            icon=":material/link_off:",
        )
    if not writing.is_untouched and len(route(writing)) > LONGEST_ROUTE:
        st.info(
            "The link to this page cannot carry this text: too many of its tokens were chosen by "
            "hand, or by changing settings. "
            "It opens on a new text instead. Download the text to keep it.",
            icon=":material/link_off:",
        )
