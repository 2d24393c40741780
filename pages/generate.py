"""What does the model write? Its text, token by token, to play, step, undo and steer."""

import streamlit as st

from gptviz.ui.records.generate import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.generate import drafting, link, words
from gptviz.ui.pages.generate.show import current_writing, explain_tree, show, stops_at_end, transport
from gptviz.ui.pages.generate.tries import tries
from gptviz.ui.shell.around.next_step import next_step
from gptviz.ui.shell.subject import scrubber
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.widgets import try_this
from gptviz.ui.widgets.details import details
from gptviz.ui.widgets.sampling import sampling_controls

subject = subject_bar()
view = st.container()
sampling = sampling_controls(temperature=0.8)
writing = current_writing(subject, sampling, stops_at_end(subject))

with view:
    speed = transport(writing)
    show(writing, speed)
    explain_tree(writing)
    link.explain(writing)
    if scrubber.steps(subject.key.name):
        st.caption(
            "At each step of training the text is written again from the prompt, with the same random numbers: only the model "
            "differs."
        )

drafting.show(subject, writing)
try_this(tries(writing, subject))
st.download_button(
    "Download the text",
    lambda: writing.document,
    "gptviz.txt",
    "text/plain",
    icon=":material/download:",
    type="tertiary",
    on_click="ignore",
)

details(
    how=f"{words.HOW}\n\n{words.memory(writing)}",
    limits=words.LIMITS,
    key="generate",
)
next_step()
