"""Logit lens: what would the model guess if it stopped after a layer?"""

import streamlit as st

from gptviz.ui.records.lens import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.lens import show, words
from gptviz.ui.pages.lens.computed import seen_by
from gptviz.ui.pages.lens.tries import tries, where_the_answer_comes_from
from gptviz.ui.shell.around.next_step import next_step
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.views.read import read_by
from gptviz.ui.widgets import try_this
from gptviz.ui.widgets.details import details

subject = subject_bar()
read = show.rows_of(subject, read_by(subject))
if not show.grid(subject, read):
    st.stop()
st.markdown(where_the_answer_comes_from(subject, seen_by(subject.key, read)))
st.caption(show.about_rows(subject, read))
cell = show.opened(subject, read)
numbers = show.cell_view(subject, read, cell)

try_this(tries(subject, read))

details(lambda: numbers, code=words.code_of_cell(subject, read, cell), how=words.HOW, limits=words.LIMITS, key="lens")
next_step()
