"""Which tokens of the source does each token of the output read? Cross-attention, the next token
anywhere, and the beams.
"""

import streamlit as st

from gptviz.ui.records.translate import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.translate import beam_search, next_token, translation
from gptviz.ui.records.translate import BEAM_SEARCH, CROSS_ATTENTION, NEXT_TOKEN, VIEWS
from gptviz.ui.shell.close import PageResult, close
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.widgets import controls, say_answer, try_this

subject = subject_bar()
translation.say_languages(subject)
translation.warn_of_unknown_words(subject)
left, right = st.columns(2, vertical_alignment="center")
with left:
    help_text = (
        "What the output reads; which other tokens were possible at each place of the output; or "
        "all the outputs that the "
        "search looked at."
    )
    view = controls.select(
        "View", VIEWS, key="view", help=help_text, segmented=True, label_visibility="collapsed"
    )
place = st.container()
sampling = None if view == BEAM_SEARCH else translation.sampling_control()  # a search draws nothing
with right:
    translated = translation.output_control(subject, sampling)

shown = PageResult(view=view)
with place:
    if view == CROSS_ATTENTION:
        say_answer(translation.sentence(translated))
        translation.show_attention(translated)
    elif view == NEXT_TOKEN:
        position = next_token.position_control(translated)
        next_token.show_strip(translated, position)
        next_token.show_ledger(translated, position)
    else:
        asked = beam_search.ask_beams(subject)
        beam_search.show_tree(subject, asked)
        beam_search.show_answers(subject, asked.value)
        shown = beam_search.details(subject, asked)
    translation.remark(translated)

try_this(translation.tries(translated))
if view == CROSS_ATTENTION:
    with st.container(horizontal=True):
        translation.links()
close(PAGE, None, *shown)
