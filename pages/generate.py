"""What does the model write? Its text, token by token, to play, step, undo and steer."""

import streamlit as st

from gptviz.ui.pages.generate import method
from gptviz.ui.pages.generate.show import current_writing, show, transport
from gptviz.ui.pages.generate.tries import tries
from gptviz.ui.pages.generate.writing import MOST_NODES, MOST_TOKENS
from gptviz.ui.shell import pages, scrubber
from gptviz.ui.shell.pages import open_page
from gptviz.ui.shell.subject import subject_bar
from gptviz.ui.widgets.details import details
from gptviz.ui.widgets.sampling import sampling_controls
from gptviz.ui.widgets.tries import try_this

open_page(
    pages.GENERATE,
    "What does the model write?",
    "Grey: the prompt. The model drew the rest, token by token: a strong colour where it was sure. Click a token to go on there.",
)
subject = subject_bar()
view = st.container()
sampling = sampling_controls(temperature=0.8, seed=True)
writing = current_writing(subject, sampling)

with view:
    speed = transport(writing)
    show(writing, speed)
    if writing.full:
        st.info(f"The text has {MOST_TOKENS:,} tokens, the most this page keeps. Undo, restart or download it.")
    if writing.tree.dropped:
        st.caption(f"The tree keeps {MOST_NODES:,} tokens: {writing.tree.dropped:,} of its oldest branches’ ends had to go.")
    if scrubber.steps(subject.key.name):
        st.caption("Each step of training writes anew from the prompt, with the same random numbers: only the model differs.")

try_this(tries(writing))
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
    how=method.HOW,
    limits=method.LIMITS,
    key="generate",
)
