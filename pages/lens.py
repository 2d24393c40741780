"""Logit lens: what would the model guess if it stopped after a layer?"""

import streamlit as st

from gptviz.ui.records.lens import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.lens import grid
from gptviz.ui.shell.close import close
from gptviz.ui.shell.subject.bar import subject_bar

subject = subject_bar()
result, picture = st.container(), st.container()
asked = grid.ask_lens(subject)
with picture:
    if not grid.grid(subject, asked):
        st.stop()
lens = asked.value
result.markdown(grid.where_the_answer_comes_from(subject, lens))
st.caption(grid.about_rows(subject, lens))
cell = grid.opened(asked)
followed = grid.follow(subject, lens, cell)
course = grid.course_of(asked, cell, followed)
grid.cell_view(subject, lens, cell, course, followed)

close(PAGE, grid.tries(subject, lens), lambda: course.probability, grid.code_of_cell(asked, cell, followed))
