"""Context: how many earlier tokens a model uses, and which of them matter to each guess."""

import streamlit as st

from gptviz.ui.records.context import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.context import show, words
from gptviz.ui.pages.context.tries import tries
from gptviz.ui.shell.around.next_step import next_step
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.widgets import controls, try_this
from gptviz.ui.widgets.details import details

subject = subject_bar()
controls.notices_in(st.container())
text = show.text_of(subject)
how = show.how_control()
found = show.measured(subject, text, how)
if found is None:
    st.stop()
show.which_tokens(subject, text, found.left_out)
left, right = st.columns(2, gap="medium")
with left:
    show.how_many(found.by_window)
with right:
    show.where(text, found.loss)

show.over_data(subject)

try_this(tries(subject, text, how))

details(
    lambda: found.left_out.labelled(text.labels),
    code=words.code(subject, text, how),
    how=words.HOW,
    limits=words.LIMITS,
    key="context",
)
next_step()
