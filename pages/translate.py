"""Which tokens of the source does each token of the output read? Cross-attention, the next token anywhere, and the beams."""

import streamlit as st

from gptviz.ui.pages.translate import answer as translate
from gptviz.ui.pages.translate import beam_search
from gptviz.ui.shell import pages
from gptviz.ui.shell.pages import open_page
from gptviz.ui.shell.subject import subject_bar
from gptviz.ui.widgets import controls
from gptviz.ui.widgets.details import details

open_page(
    pages.TRANSLATE,
    "What does the model read while it writes?",
    "Before it writes a token of its output (query) it looks into the source (keys): the stronger the line, the more it reads.",
)
subject = subject_bar()
notices = st.container()
left, right = st.columns(2, vertical_alignment="center")
with left:
    about = "What the output reads, what else might stand at each place of it, or the outputs that were searched through."
    view = controls.select("View", translate.VIEWS, key="view", help=about, segmented=True, label_visibility="collapsed")
with right:
    shown = translate.shown(subject, notices)

if view == translate.VIEWS[0]:
    translate.explorer(shown)
elif view == translate.VIEWS[1]:
    position = translate.position(shown, notices)
    translate.strip(shown, position)
    translate.ledger(shown, position)
else:
    search = beam_search.search(subject)
    st.plotly_chart(beam_search.tree(search), key="tree", config={"displayModeBar": False}, alt=beam_search.spoken(search))
    beam_search.answers(search)
translate.remark(shown)

with st.container(horizontal=True, vertical_alignment="center"):
    st.text("Try this:", width="content")
    for title, notice, state in translate.to_try(shown):
        controls.try_this(title, notice, **state)

if view == translate.VIEWS[0]:
    with st.container(horizontal=True):
        translate.lead_on()
    details(how=translate.HOW_ATTENTION, limits=translate.LIMITS_ATTENTION, key="cross_attention")
elif view == translate.VIEWS[1]:
    details(how=translate.HOW_NEXT, limits=translate.LIMITS_NEXT, key="translate_next_token")
else:
    details(
        lambda: beam_search.numbers(search),
        code=beam_search.code(search),
        how=beam_search.HOW,
        limits=beam_search.LIMITS,
        key="beams",
    )
