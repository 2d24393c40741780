"""The circuit of one guess: which parts does it come from, and what did each of them read?"""

import streamlit as st

from gptviz.ui.records.circuit import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.circuit import graph, saved, weights
from gptviz.ui.pages.circuit.features import choose_nodes
from gptviz.ui.records.circuit import WEIGHTS
from gptviz.ui.shell.close import close
from gptviz.ui.shell.subject.bar import subject_bar

subject = graph.with_room(subject_bar())
# one slim line, so that the graph begins high
views = st.container(horizontal=True, vertical_alignment="center")
with views:
    view = weights.choose_view(subject)
if view == WEIGHTS:
    offers, shown = weights.show(subject)
    close(PAGE, offers, *shown)
    st.stop()
text, rest = st.columns([6, 5])
with views:
    nodes = choose_nodes(subject)
chosen = graph.choose(subject, text, rest, nodes)
if chosen is None:
    st.stop()
asked = graph.ask_circuit(subject, chosen)
circuit = graph.search(subject, asked)
if circuit is None:
    st.stop()
result = graph.check(subject, asked)
doubt = graph.disagreement(circuit, result)
if doubt is not None:  # in words beside the share, and here, where it takes no room from the graph
    rest.caption(":material/rule: **The check disagrees:** see below the graph.")
choices = saved.choices(subject, chosen)
graph.result(subject, chosen, circuit)
graph.graph(subject, chosen, asked, choices)
graph.say_share(subject, chosen, circuit)
graph.say_random(circuit, result)
if doubt is not None:
    st.warning(doubt, icon=":material/rule:")
st.caption(graph.describe_graph(chosen, circuit))
graph.result_of(subject, chosen, circuit, result)
graph.show_node(subject, chosen, circuit)
saved.open_file(choices)

close(PAGE, graph.tries(subject, chosen, circuit))
