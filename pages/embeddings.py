"""Embeddings: the map of all tokens, and the true neighbours of one."""

import streamlit as st

from gptviz.ui.records.embeddings import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.embeddings import token_map, waves
from gptviz.ui.records.embeddings import WAVES
from gptviz.ui.shell.close import close
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.views import projections
from gptviz.ui.widgets import say_answer

subject = subject_bar()
key = subject.key
config = subject.lm.model.config
if waves.view(subject) == WAVES:
    asked = waves.show(subject)
    close(
        PAGE,
        None,
        lambda: asked.value.powers,
        asked.code("result.used, result.right", "result.powers"),
        WAVES,
    )
    st.stop()
view, trail, compared = token_map.view_controls(key, config)

above = st.container()
side, picture = st.columns([2, 3], gap="medium")
with side:
    token = token_map.token_control(subject)
    token_map.bars(view, token, height=330)
if sentence := token_map.sentence(view, token):
    with above:
        say_answer(*sentence)
with picture:
    st.markdown("**Tokens in one picture, in which neighbours may lie apart**")
    projection, shown = token_map.projection(view)
    drawn = token_map.drawn_tokens(shown, projection, token, subject.seen)
    token_map.cloud(
        shown, drawn, token, height=400 if shown == view else 330, trail=trail, prompt=subject.seen
    )
    st.caption(token_map.what_is_lost(projection, drawn, shown, token, config.d_model))
    st.caption(token_map.trust_in_picture(shown, projection))

if compared:
    token_map.over_seeds(view)

offers = token_map.tries(subject, view)
code = token_map.code(subject.lm, shown, token)
close(PAGE, offers, lambda: projection.points, code, more=projections.HOW_STABLE)
