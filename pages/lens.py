"""Logit lens: what would the model guess if it stopped after a layer?"""

import streamlit as st

from gptviz.ui.records.lens import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.lens import grid
from gptviz.ui.shell.close import close
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.views.read import read_by

subject = subject_bar()
read = grid.rows_of(subject, read_by(subject))
if not grid.grid(subject, read):
    st.stop()
st.markdown(grid.where_the_answer_comes_from(subject, grid.seen_by(subject.key, read)))
st.caption(grid.about_rows(subject, read))
cell = grid.opened(subject, read)
followed = grid.follow(subject, read, cell)
numbers = grid.cell_view(subject, read, cell, followed)

close(PAGE, grid.tries(subject, read), lambda: numbers, grid.code_of_cell(subject, read, cell, followed))
