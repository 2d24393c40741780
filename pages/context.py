"""Context: how many earlier tokens a model uses, and which of them matter to each guess."""

import streamlit as st

from gptviz.ui.records.context import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.context import left_out
from gptviz.ui.shell.close import close
from gptviz.ui.shell.subject.bar import subject_bar

subject = subject_bar()
text = left_out.text_of(subject)
how = left_out.how_control()
found = left_out.measured(subject, text, how)
if found is None:
    st.stop()
left_out.which_tokens(subject, text, found.left_out)
left, right = st.columns(2, gap="medium")
with left:
    left_out.how_many(found.by_window)
with right:
    left_out.where(text, found.loss)
left_out.over_data(subject)

offers, numbers = left_out.tries(subject, text, how), found.left_out.labelled
close(PAGE, offers, lambda: numbers(text.labels), code=left_out.code(subject, text, how))
