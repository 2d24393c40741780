"""What does the model write? Its text, token by token, to play, step, undo and steer."""

import streamlit as st

from gptviz.ui.pages.generate import method
from gptviz.ui.pages.generate.show import current_writing, fork_button, show, transport
from gptviz.ui.pages.generate.writing import MOST_NODES, MOST_TOKENS
from gptviz.ui.shell import pages, scrubber
from gptviz.ui.shell.pages import open_page
from gptviz.ui.shell.subject import subject_bar
from gptviz.ui.widgets import controls
from gptviz.ui.widgets.details import details
from gptviz.ui.widgets.sampling import PLAIN, sampling_controls

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

with st.container(horizontal=True, vertical_alignment="center"):
    st.text("Try this:", width="content")
    anew = PLAIN | {"writing": None, "prompt": subject.default}
    fork_button(writing)
    controls.try_this(
        "Always the likeliest",
        "At temperature 0 the text is soon caught in a loop: the likeliest token leads back to the likeliest text.",
        **anew | {"temperature": 0.0},
    )
    controls.try_this(
        "Too hot",
        "At temperature 2 pale chips are everywhere: tokens the model hardly believed in, and what follows makes no sense.",
        **anew | {"temperature": 2.0},
    )
    controls.try_this(
        "Only the two likeliest",
        "Top-k 2 keeps the words whole, yet the text does not get stuck; of what may come next all but two are struck out.",
        **anew | {"top_k": 2},
    )
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
