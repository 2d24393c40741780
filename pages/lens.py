"""Logit lens: what would the model guess if it stopped after a layer?"""

import streamlit as st

from gptviz.ui.pages import lens
from gptviz.ui.shell import pages
from gptviz.ui.shell.next_step import next_step
from gptviz.ui.shell.pages import open_page
from gptviz.ui.shell.subject import subject_bar
from gptviz.ui.views.decoder_text import read_by
from gptviz.ui.widgets.details import details
from gptviz.ui.widgets.tries import try_this

open_page(
    pages.LENS,
    "What would the model guess if it stopped here?",
    "Each row is a layer, from the embedding down to the last; each column a token that was read. In a cell: the next token that "
    "the model would guess if the stream went straight to its output from there.",
)
subject = subject_bar()
read = lens.rows_of(subject, read_by(subject))
if not lens.grid(subject, read):
    st.stop()
st.caption(lens.about_rows(subject, read))
cell = lens.opened(subject, read)
numbers = lens.cell_view(subject, read, cell)

try_this(lens.to_try(subject, read))

details(lambda: numbers, code=lens.code_of_cell(subject, read, cell), how=lens.HOW, limits=lens.LIMITS, key="lens")
next_step()
