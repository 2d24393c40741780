"""Which tokens of the source does each token of the output read? Cross-attention, the next token anywhere, and the beams."""

import streamlit as st

from gptviz.ui.records.translate import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.translate import attention, beam_search, next_token
from gptviz.ui.pages.translate.known import say_languages, warn_of_unknown_words
from gptviz.ui.pages.translate.translation import output_control, remark, sampling_control
from gptviz.ui.pages.translate.tries import tries
from gptviz.ui.pages.translate.words import (
    HOW_ATTENTION,
    HOW_BEAMS,
    HOW_NEXT,
    LIMITS_ATTENTION,
    LIMITS_BEAMS,
    LIMITS_NEXT,
)
from gptviz.ui.records.translate import BEAM_SEARCH, CROSS_ATTENTION, NEXT_TOKEN, VIEWS
from gptviz.ui.shell.around.next_step import next_step
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.widgets import controls, try_this
from gptviz.ui.widgets.details import details

subject = subject_bar()
controls.notices_in(st.container())
say_languages(subject)
warn_of_unknown_words(subject)
left, right = st.columns(2, vertical_alignment="center")
with left:
    help_text = (
        "What the output reads; which other tokens were possible at each place of the output; or all the outputs that the "
        "search looked at."
    )
    view = controls.select("View", VIEWS, key="view", help=help_text, segmented=True, label_visibility="collapsed")
shown = st.container()
sampling = None if view == BEAM_SEARCH else sampling_control()  # a search draws nothing
with right:
    translation = output_control(subject, sampling)

with shown:
    if view == CROSS_ATTENTION:
        attention.show_attention(translation)
    elif view == NEXT_TOKEN:
        position = next_token.position_control(translation)
        next_token.show_strip(translation, position)
        next_token.show_ledger(translation, position)
    else:
        search = beam_search.search(subject)
        beam_search.show_tree(search)
        beam_search.show_answers(search)
    remark(translation)

try_this(tries(translation))

if view == CROSS_ATTENTION:
    with st.container(horizontal=True):
        attention.links()
    details(how=HOW_ATTENTION, limits=LIMITS_ATTENTION, key="cross_attention")
elif view == NEXT_TOKEN:
    details(how=HOW_NEXT, limits=LIMITS_NEXT, key="translate_next_token")
else:
    numbers, code = beam_search.numbers, beam_search.code(search)
    details(lambda: numbers(search), code=code, how=HOW_BEAMS, limits=LIMITS_BEAMS, key="beams")
next_step()
