"""What does the model write? Its text, token by token, to play, step, undo and steer."""

import streamlit as st

from gptviz.ui.records.generate import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.generate import drafting, link, tree
from gptviz.ui.shell.close import close
from gptviz.ui.shell.subject import scrubber
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.views.how_written import say_how_written
from gptviz.ui.widgets import try_this
from gptviz.ui.widgets.sampling import sampling_controls

subject = subject_bar()
view = st.container()
buttons, temperature = view.columns([3, 1], gap="medium")
sampling = sampling_controls(temperature=0.8, place=temperature)
writing = tree.current_writing(subject, sampling, tree.stops_at_end(subject))

with buttons:
    speed = tree.transport(writing)
with view:
    say_how_written(subject.lm.task)
    tree.show(writing, speed)
    tree.explain_tree(writing)
    link.explain(writing)
    if scrubber.steps(subject.key.name):
        st.caption(
            "At each step of training the text is written again from the prompt, with the same "
            "random numbers: only the model "
            "differs."
        )

drafting.show(subject, writing)
try_this(tree.tries(writing))
st.download_button(
    "Download the text",
    lambda: writing.document,
    "gptviz.txt",
    "text/plain",
    icon=":material/download:",
    type="tertiary",
    on_click="ignore",
)

close(PAGE, more=tree.memory(writing))
