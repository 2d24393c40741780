"""When did the model learn it? Any number of the other pages at every snapshot of a model's training."""

import streamlit as st

from gptviz.ui.records.over_training import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.over_training import beside, choices, show, words
from gptviz.ui.pages.over_training.computed import followed
from gptviz.ui.pages.over_training.tries import tries
from gptviz.ui.records.over_training import APART, RELATIVES
from gptviz.ui.shell.around.next_step import next_step
from gptviz.ui.shell.subject import scrubber
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.widgets import escaped, try_this
from gptviz.ui.widgets.details import details

subject = subject_bar()
if not scrubber.steps(subject.key.name):
    show.without_snapshots(subject)
    next_step()
    st.stop()
with st.container(horizontal=True, vertical_alignment="bottom"):
    for_measures = st.container(width="stretch")
    if (shown := choices.shown(subject.key.name)) != RELATIVES:
        with for_measures:
            chosen = choices.measures(subject)
        with st.popover("More"):
            axes = choices.Axes(shown == APART, *choices.logarithmic())
            asked = choices.questions(subject, chosen)
if shown == RELATIVES:
    beside.show(subject.key.name)
    next_step()
    st.stop()
choices.say_missing(subject)
histories = []
charts, column = st.columns([3, 1], gap="large")
for one in chosen:
    try:
        history, progress = followed(subject.key, one, asked[one.name])
    except (ValueError, OSError) as error:
        charts.info(escaped(f"{one.title}: {error}."))
        continue
    with charts:
        if history is not None:
            histories.append(history)
            show.chart(subject, history, axes, show.HEIGHTS[min(len(chosen), 3) - 1])
        progress()
with column:
    show.which_came_first(subject, histories)
    show.pages_at(subject, histories)
try_this(tries(subject, histories, axes))
if histories:
    details(
        lambda: histories[0].labelled(), code=words.code(subject, asked), how=words.HOW, limits=words.LIMITS, key="over training"
    )
next_step()
