"""Embeddings: the map of all tokens, and the true neighbours of one."""

import streamlit as st

from gptviz.ui.pages import embeddings
from gptviz.ui.shell import pages
from gptviz.ui.shell.next_step import next_step
from gptviz.ui.shell.pages import open_page
from gptviz.ui.shell.subject import subject_bar
from gptviz.ui.widgets.details import details
from gptviz.ui.widgets.tries import try_this

open_page(
    pages.EMBEDDINGS,
    "Which tokens are alike to the model?",
    "Each token is a point, placed by its vector (its list of numbers). Thin rings mark the tokens of the prompt. Lines lead to "
    "the chosen token's true nearest neighbours: where a line is long, the picture has pulled neighbours apart.",
)
subject = subject_bar()
key, config = subject.key, subject.lm.model.config
notices = st.container()
view, trail, compared = embeddings.view_controls(key, config, notices)

picture, side = st.columns([5, 2])
with side:
    token = embeddings.token_control(subject, notices)
    embeddings.bars(view, token, height=310)
with picture:
    projection, shown = embeddings.projection(view)
    embeddings.cloud(shown, projection, token, height=400 if shown == view else 330, trail=trail, prompt=subject.seen)
    st.caption(embeddings.what_is_lost(projection, shown, token, config.d_model))
    st.caption(embeddings.trust_in_picture(shown, projection))

if compared:
    embeddings.over_seeds(view)

try_this(embeddings.to_try(subject, view))

details(
    lambda: projection.points,
    code=embeddings.code(subject.lm, shown, token),
    how=embeddings.HOW,
    limits=embeddings.LIMITS,
    key="embeddings",
)
next_step()
