"""A room: what the address of the server opens, which pages a class may open, and, for who teaches,
both with the answers of the hour.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from urllib.parse import parse_qsl, urlsplit

import pandas as pd
import streamlit as st

from gptviz.lessons import votes
from gptviz.lessons.lesson import Lesson
from gptviz.lessons.start import read_start
from gptviz.machine.hosting import hosting, variable
from gptviz.streamlit_internals import READ_AS_A_WHOLE
from gptviz.ui.menu import PAGES, pages_here
from gptviz.ui.page import Page
from gptviz.ui.records.home import PAGE as HOME
from gptviz.ui.widgets import escape_markdown
from gptviz.ui.widgets.details import as_csv

from . import present
from .class_answers import teaches
from .lesson import address_of, begin_lesson, lessons


def start_address() -> str:
    """The address, relative to any page, of what the server's own address opens."""
    start = hosting().start
    if start is None:
        return address_of(HOME.name)
    opens = read_start(start, lessons().lessons)
    if isinstance(opens, Lesson):
        return begin_lesson(opens).address
    return address_of(opens.page, opens.query)


def open_start(page: Page) -> None:
    """Open what the server's own address opens, for who has just come to that address."""
    is_read = READ_AS_A_WHOLE in st.session_state
    if page is not HOME or st.query_params or hosting().start is None or is_read:
        return
    link = urlsplit(start_address())
    opens = PAGES[link.path.removeprefix("./") or HOME.name]
    query = dict(parse_qsl(link.query, keep_blank_values=True))
    if opens is not HOME or query:
        st.switch_page(opens.path, query_params=query)


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
        answers = {"By question": ("answers", _counts)}
        if hosting().pseudonyms:
            answers["By browser, under animals' names"] = ("answers_by_browser", _by_pseudonym)
        with st.container(horizontal=True):
            for label, (name, table) in answers.items():
                st.download_button(
                    label,
                    partial(_as_csv, table),
                    f"{name}.csv",
                    "text/csv",
                    on_click="ignore",
                    icon=":material/download:",
                    key=f"csv {name}",
                )
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
    if allowed.start is None:
        opens = "Home"
    else:
        opens = escape_markdown(allowed.start)
    if (only := allowed.pages_of_class) is None:
        may = "all pages"
    else:
        titles = (page.title for page in PAGES.values() if page.name in only)
        may = f"these pages only: {escape_markdown(', '.join(titles))}"
    st.caption(f"It opens {opens}. The class may open {may}. On this machine you may open all.")


def _as_csv(table: Callable[[], pd.DataFrame]) -> bytes:
    return as_csv(table())


def _counts() -> pd.DataFrame:
    """The answers to all questions: a row for each answer that was given."""
    rows = [
        (question.where, question.number, question.words, answer, n_browsers)
        for question, answer, n_browsers in votes.counted_answers()
    ]
    return pd.DataFrame(rows, columns=["where", "number", "question", "choice", "count"])


def _by_pseudonym() -> pd.DataFrame:
    """The answers of each browser: a row for each, a column for each question."""
    found = votes.answers_by_pseudonym()
    questions = dict.fromkeys(question for answers in found.values() for question in answers)
    columns = {question: " ".join(filter(None, question)) for question in questions}
    rows = [
        {"name": name} | {columns[question]: answers.get(question, "") for question in questions}
        for name, answers in found.items()
    ]
    return pd.DataFrame(rows, columns=["name", *columns.values()])
