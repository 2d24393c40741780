"""A room: what the address of the server opens, which pages a class may open, and, for who teaches,
both with the answers of the hour.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from gptviz.lessons import votes
from gptviz.lessons.start import read_start
from gptviz.machine.hosting import hosting, variable
from gptviz.streamlit_internals import READ_AS_A_WHOLE
from gptviz.ui.menu import PAGES, pages_here
from gptviz.ui.page import Page
from gptviz.ui.records.home import PAGE as HOME
from gptviz.ui.widgets import escape_markdown

from . import present
from .class_answers import teaches
from .lesson import lessons


def open_start(page: Page) -> None:
    """Open what the server's own address opens, for who has just come to that address."""
    start = hosting().start
    is_read = READ_AS_A_WHOLE in st.session_state
    if start is None or page is not HOME or st.query_params or is_read:
        return
    opens = read_start(start, lessons().lessons)
    if opens.page != HOME.name or opens.query:
        st.switch_page(PAGES[opens.page].path, query_params=opens.query)


def refuse_left_out(page: Page) -> None:
    """Stop a page that this visitor may not open, with the way to those that are open."""
    here = pages_here()
    if page.name in here:
        return
    st.title("This page is not open here", anchor=False)
    st.info(
        f"“{escape_markdown(page.title)}” is left out of what this server shows you "
        f"({escape_markdown(variable('only'))} is set). Open one of these:",
        icon=":material/block:",
    )
    for other in here.values():
        st.page_link(other.path, label=other.title, icon=other.icon, help=other.sentence)
    st.stop()


def room_button() -> None:
    """For who teaches: a button with the address for the class, and the answers of the hour."""
    if not teaches():
        return
    with st.popover(
        "Class", type="tertiary", help="The address for your class, and the answers of the hour."
    ):
        st.markdown("**The class opens**")
        present.link_to("./")
        _say_room()
        st.markdown("**Answers of the hour**")
        answers = {"By question": counts_as_csv}
        if hosting().pseudonyms:
            answers["By browser, under animals' names"] = browsers_as_csv
        with st.container(horizontal=True):
            for label, table in answers.items():
                st.download_button(label, table, "answers.csv", "text/csv", on_click="ignore")
            st.button(
                "Forget all answers",
                on_click=votes.forget,
                icon=":material/delete:",
                key="forget answers",
                help="For the next class: nothing of the hour is left on this machine.",
            )
        st.caption(
            "As CSV: each question, each answer to it, and how many browsers gave it. Answers are "
            "in memory until the server ends."
        )


def _say_room() -> None:
    """What the address opens, and what a class may open."""
    allowed = hosting()
    only = allowed.pages_of_class or PAGES.keys()
    pages = ", ".join(page.title for page in PAGES.values() if page.name in only)
    st.caption(
        f"It opens {escape_markdown(allowed.start or HOME.title)}. The class may open "
        f"{escape_markdown(pages)}; on this machine you may open all pages."
    )


def counts_as_csv() -> bytes:
    """The answers to all questions: a line for each answer that was given."""
    rows = [(*question, answer, count) for question, answer, count in votes.counted_answers()]
    return _as_csv(rows, ("where", "number", "question", "choice", "count"))


def browsers_as_csv() -> bytes:
    """The answers of each browser: a line for each, a column for each question."""
    found = votes.answers_by_pseudonym()
    questions = dict.fromkeys(question for answers in found.values() for question in answers)
    rows = [
        (name, *(answers.get(question, "") for question in questions))
        for name, answers in found.items()
    ]
    return _as_csv(rows, ("name", *(" ".join(filter(None, question)) for question in questions)))


def _as_csv(rows: Sequence[Sequence[str | int]], titles: Sequence[str]) -> bytes:
    # both take long to import, and no page waits for this
    import pandas as pd

    from gptviz.ui.widgets.details import as_csv

    return as_csv(pd.DataFrame(rows, columns=titles))
