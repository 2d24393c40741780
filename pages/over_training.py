"""When did the model learn it? Any number of the other pages at every snapshot of a model's training."""

import streamlit as st

from gptviz.ui.pages.over_training import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.over_training import choices, show, words
from gptviz.ui.pages.over_training.computed import followed
from gptviz.ui.pages.over_training.tries import tries
from gptviz.ui.shell.around.next_step import next_step
from gptviz.ui.shell.subject import scrubber
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.widgets.details import details
from gptviz.ui.widgets.markdown import escaped
from gptviz.ui.widgets.tries import try_this

subject = subject_bar()
if not scrubber.steps(subject.key.name):
    show.without_snapshots(subject)
    next_step()
    st.stop()
chosen = choices.measures(subject)
with st.container(horizontal=True, vertical_alignment="bottom"):
    asked = choices.questions(subject, chosen)
    axes = choices.axes()
histories = []
place = st.container()
for one in chosen:
    try:
        history, progress = followed(subject.key, one, asked[one.name])
    except (ValueError, OSError) as error:
        st.info(escaped(f"{one.title}: {error}."))
        continue
    if history is not None:
        histories.append(history)
        show.chart(subject, history, axes, show.HEIGHTS[min(len(chosen), 3) - 1])
    progress()
if not chosen:
    st.info("Choose a measure above.")
with place:
    if order := show.which_came_first(subject, histories):
        st.markdown(f"**Which came first?** {order}")
    show.pages_at(subject, histories)
try_this(tries(subject, histories, axes))
if histories:
    details(
        lambda: histories[0].labelled(), code=words.code(subject, asked), how=words.HOW, limits=words.LIMITS, key="over training"
    )
next_step()
