"""The circuit of one guess: which parts does it come from, and what did each of them read?"""

import streamlit as st

from gptviz.ui.pages import circuit
from gptviz.ui.shell import pages
from gptviz.ui.shell.next_step import next_step
from gptviz.ui.shell.pages import open_page
from gptviz.ui.shell.subject import subject_bar
from gptviz.ui.widgets.details import details
from gptviz.ui.widgets.tries import try_this

open_page(
    pages.CIRCUIT,
    "Which parts make this guess?",
    "From the tokens at the bottom to the logit (the score of the next token) at the top: each box is a part of the model at a "
    "token, each line what it adds to what the upper box reads.",
)
subject = circuit.with_room(subject_bar())
chosen = circuit.choose(subject)
if chosen is None:
    st.stop()
found = circuit.search(subject, chosen)
if found is None:
    st.stop()
circuit.graph(subject, chosen, found)
st.caption(circuit.about(subject, chosen, found))
circuit.check(subject, chosen, found)
circuit.opened(subject, chosen, found)

try_this(circuit.to_try(subject, chosen, found))

details(how=circuit.HOW, limits=circuit.LIMITS, key="circuit")
next_step()
