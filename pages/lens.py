"""Logit lens: what would the model guess if it stopped after a layer?"""

import streamlit as st

from gptviz.ui.records.lens import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.lens import fitted, grid, swap
from gptviz.ui.shell.close import close
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.widgets import say_answer

subject = subject_bar()
result = st.container()
picture = st.container()
with st.container(horizontal=True, vertical_alignment="bottom"):
    chosen = fitted.choice(subject)
    blocks_only = grid.blocks_only(subject)
if chosen is None or chosen.kind == "logit":
    own = None
else:
    own = fitted.find_lens(subject, chosen)
if chosen is None or (chosen.kind != "logit" and own is None):
    close(PAGE)
    st.stop()
asked = grid.ask_lens(subject, chosen, blocks_only)
with picture:
    if not grid.grid(subject, asked):
        st.stop()
lens = asked.value
with result:
    say_answer(grid.where_the_answer_comes_from(subject, lens))
st.caption(f"{grid.about_rows(subject, lens)} {fitted.explain_lens(chosen.kind)}")
if own is not None:
    fitted.show_measures(subject, own, chosen)
    fitted.take_home(subject, chosen)
cell = grid.opened_cell(asked)
with st.container(horizontal=True, vertical_alignment="bottom"):
    followed = grid.follow(subject, lens, cell)
    swap.choose(subject, lens, cell, own)
swap.say(subject, asked, lens, cell)
course = grid.course_of(asked, cell, followed)
grid.cell_view(subject, lens, cell, course)

close(
    PAGE,
    grid.tries(subject, lens),
    lambda: course.probability,
    grid.code_of_cell(asked, cell, followed),
)
