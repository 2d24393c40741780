"""When did the model learn it? Any number of the other pages at every snapshot of a model's
training.
"""

import streamlit as st

from gptviz.ui.records.over_training import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.machine.errors import reason_of
from gptviz.ui.pages.over_training import beside, charts
from gptviz.ui.records.over_training import APART, RELATIVES
from gptviz.ui.shell.close import close
from gptviz.ui.shell.subject import scrubber
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.widgets import escape_markdown

subject = subject_bar()
if not scrubber.steps(subject.key.name):
    charts.without_snapshots(subject)
    close(PAGE, view=None)
    st.stop()
with st.container(horizontal=True, vertical_alignment="bottom"):
    for_measures = st.container(width="stretch")
    if (shown := charts.choose_series(subject.key.name)) != RELATIVES:
        with for_measures:
            chosen = charts.measures(subject)
        with st.popover("More"):
            axes = charts.Axes(shown == APART, *charts.logarithmic())
            asked = charts.questions(subject, chosen)
if shown == RELATIVES:
    beside.show(subject.key.name)
    close(PAGE, view=None)
    st.stop()
charts.say_missing(subject)
histories = []
answer = st.container()
if subject.key.step is None:
    pictures = st.container()
    column = st.container()
else:
    pictures, column = st.columns([3, 1], gap="large")
for one in chosen:
    try:
        history, progress = charts.follow_measure(subject.key, one, asked[one.name])
    except (ValueError, OSError) as error:
        pictures.info(escape_markdown(f"{one.title}: {reason_of(error)}."))
        continue
    with pictures:
        if history is not None:
            histories.append(history)
            charts.chart(subject, history, axes, charts.HEIGHTS[min(len(chosen), 3) - 1])
        progress()
with answer:
    charts.which_came_first(subject, histories)
with column:
    charts.pages_at(subject, histories)
if histories:
    close(
        PAGE,
        charts.tries(subject, histories, axes),
        lambda: histories[0].labelled(),
        charts.code(subject, asked),
    )
else:
    close(PAGE, charts.tries(subject, histories, axes), view=None)
