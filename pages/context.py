"""Context: how many earlier tokens a model uses, and which of them matter to each guess."""

import streamlit as st

from gptviz.ui.records.context import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.context import left_out
from gptviz.ui.shell.close import close
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.widgets import say_answer

subject = subject_bar()
asked = left_out.ask_use(subject)
if asked is None or not left_out.is_finite(subject, asked.value):
    st.stop()
use = asked.value
labels = left_out.labels_of(subject, asked.value)
guess = subject.lm.tokenizer.label(use.ids[-1])
say_answer(*left_out.answer(use, labels, guess))
left, right = st.columns(2, gap="medium")
with left:
    left_out.how_many(use.by_window, guess)
with right:
    left_out.which_tokens(subject, use, labels)
left, right = st.columns(2, gap="medium")
with left:
    left_out.show_losses(labels, use.loss)
with right:
    left_out.over_data(subject)

offers = left_out.tries(subject, dict(asked.settings).get("how", "replaced"))
close(PAGE, offers, lambda: use.left_out.labelled(labels), code=left_out.code(subject, asked))
