"""Context: how many earlier tokens a model uses, and which of them matter to each guess."""

import streamlit as st

from gptviz.ui.pages import context
from gptviz.ui.shell import pages
from gptviz.ui.shell.next_step import next_step
from gptviz.ui.shell.pages import open_page
from gptviz.ui.shell.subject import subject_bar
from gptviz.ui.widgets.details import details
from gptviz.ui.widgets.tries import try_this

open_page(
    pages.CONTEXT,
    "How much of its context does the model use?",
    "Each row is a guess, each column a token that was left out before it. Blue: without that token the guess gets worse, by so "
    "many nats (the unit of surprise); orange: it gets better.",
)
subject = subject_bar()
notices = st.container()
text = context.text_of(subject)
how = context.how_control(notices)
found = context.measured(subject, text, how)
if found is None:
    st.stop()
context.which_tokens(subject, text, found.left_out)
left, right = st.columns(2, gap="medium")
with left:
    context.how_many(found.by_window)
with right:
    context.where(subject, text, found.loss)

context.over_data(subject)

try_this(context.to_try(subject, text, how, found))

details(
    lambda: found.left_out.labelled(text.labels),
    code=context.code(subject, text, how),
    how=context.HOW,
    limits=context.LIMITS,
    key="context",
)
next_step()
