"""Embeddings: the map of all tokens, and the true neighbours of one."""

import streamlit as st

from gptviz.ui.records.embeddings import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.embeddings import computed, show, waves, words
from gptviz.ui.pages.embeddings.tries import tries
from gptviz.ui.shell.around.next_step import next_step
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.views.sums import WAVES
from gptviz.ui.widgets import controls, try_this
from gptviz.ui.widgets.details import details

subject = subject_bar()
key, config = subject.key, subject.lm.model.config
if waves.view(subject) == WAVES:
    powers = waves.show(subject)
    details(lambda: powers, code=words.waves_code(subject.lm), how=words.WAVES_HOW, limits=words.WAVES_LIMITS, key="waves")
    next_step()
    st.stop()
controls.notices_in(st.container())
view, trail, compared = show.view_controls(key, config)

picture, side = st.columns([5, 2])
with side:
    token = show.token_control(subject)
    show.bars(view, token, height=310)
with picture:
    projection, shown = computed.projection(view)
    drawn = show.drawn(shown, projection, token, subject.seen)
    show.cloud(shown, drawn, token, height=400 if shown == view else 330, trail=trail, prompt=subject.seen)
    st.caption(show.what_is_lost(projection, drawn, shown, token, config.d_model))
    st.caption(show.trust_in_picture(shown, projection))

if compared:
    show.over_seeds(view)

try_this(tries(subject, view))

details(
    lambda: projection.points,
    code=words.code(subject.lm, shown, token),
    how=words.HOW,
    limits=words.LIMITS,
    key="embeddings",
)
next_step()
