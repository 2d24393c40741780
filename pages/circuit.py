"""The circuit of one guess: which parts does it come from, and what did each of them read?"""

import streamlit as st

from gptviz.ui.records.circuit import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.circuit import saved, show, words
from gptviz.ui.pages.circuit.tries import tries
from gptviz.ui.shell.around.next_step import next_step
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.widgets import try_this
from gptviz.ui.widgets.details import details

subject = show.with_room(subject_bar())
text, rest = st.columns([6, 5])
chosen = show.choose(subject, text, rest)
if chosen is None:
    st.stop()
found = show.search(subject, chosen)
if found is None:
    st.stop()
result = show.check(subject, chosen, found)
doubt = show.disagreement(found, result)
if doubt is not None:  # in words beside the share, and here, where it takes no room from the graph
    rest.caption(":material/rule: **The check disagrees:** see below the graph.")
choices = saved.choices(subject, chosen)
show.graph(subject, chosen, found, choices)
if doubt is not None:
    st.warning(doubt, icon=":material/rule:")
st.caption(show.about(subject, chosen, found))
show.result_of(subject, chosen, found, result)
show.opened(subject, chosen, found)
saved.open_file(choices)

try_this(tries(subject, chosen, found))

details(how=words.HOW, limits=words.LIMITS, key="circuit")
next_step()
