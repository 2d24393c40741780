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
from gptviz.ui.views.read import read_by

subject = subject_bar()
read = read_by(subject)
vectors.stop_unless_numbers(subject, read)
chosen = None
with st.container(horizontal=True, vertical_alignment="bottom"):
    view = vectors.view_control(is_decoder=subject.kind.continues)
    if view == MAP:
        chosen = vectors.map_controls(subject, read)
    elif view == PROBES:
        asked = probes.ask_probe(subject)
if view == PROBES:
    table = probes.show(subject, asked)
    close(PAGE, vectors.tries(subject, read), None if table is None else lambda: table, probes.code(asked), view)
    st.stop()
if view == STEERING:
    table, code = steering.show(subject)
    close(PAGE, vectors.tries(subject, read), None if table is None else lambda: table, code, view)
    st.stop()
picture = st.container()
index = vectors.position_control(subject, read)

with picture:
    if chosen is not None:
        shown = vectors.map_of(subject, read, chosen, index)
    else:
        st.markdown(vectors.who_writes_most(subject, read))
        shown = vectors.written(subject, read, index)

code = vectors.code(subject, read, index, chosen)
close(PAGE, vectors.tries(subject, read), lambda: shown, code, more=projections.HOW_STABLE)
