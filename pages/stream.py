"""Residual stream: what happens to the vector of a token on its way through the model?"""

import streamlit as st

from gptviz.ui.records.stream import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.stream import probes, steering, vectors
from gptviz.ui.records.stream import MAP, PROBES, STEERING
from gptviz.ui.shell.close import close
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.views import projections

subject = subject_bar()
asked = vectors.ask_stream(subject)
vectors.stop_unless_numbers(asked)
chosen = None
with st.container(horizontal=True, vertical_alignment="bottom"):
    view = vectors.view_control(is_decoder=subject.kind.continues)
    if view == MAP:
        chosen = vectors.map_controls(asked.value)
    elif view == PROBES:
        probed = probes.ask_probe(subject)
if view == PROBES:
    table = probes.show(subject, probed)
    close(
        PAGE,
        vectors.tries(asked),
        None if table is None else lambda: table,
        probes.code(probed),
        view,
    )
    st.stop()
if view == STEERING:
    table, code = steering.show(subject)
    close(PAGE, vectors.tries(asked), None if table is None else lambda: table, code, view)
    st.stop()
picture = st.container()
# The map begins with all tokens, the bars with the last.
usual = len(asked.value.positions) - 1 if chosen is None else None
index = vectors.position_control(subject, asked, usual)

with picture:
    if chosen is not None:
        shown = vectors.map_of(subject, asked, chosen, index)
    else:
        vectors.say_what_happens(asked, index)
        shown = vectors.draw_written(subject, asked, index)

code = vectors.code(asked, index, chosen)
close(PAGE, vectors.tries(asked), lambda: shown, code, more=projections.HOW_STABLE)
