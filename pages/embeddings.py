"""Embeddings: the map of all tokens, and the true neighbours of one."""

import streamlit as st

from gptviz.interp.embeddings import METHODS
from gptviz.ui.pages import embeddings as ui
from gptviz.ui.shell import pages, scrubber
from gptviz.ui.shell.pages import open_page
from gptviz.ui.shell.subject import subject_bar
from gptviz.ui.views.vocabulary import tokens
from gptviz.ui.widgets import controls
from gptviz.ui.widgets.details import details

open_page(
    pages.EMBEDDINGS,
    "Which tokens are alike to the model?",
    "Each token is a point, placed by its vector. Lines lead to the chosen token's true neighbours: "
    "a long line is the picture's fault.",
)
subject = subject_bar(needs_prompt=False)
key, config = subject.key, subject.lm.model.config
names = tokens(key).names
spaces = ui.spaces(config)

notices = st.container()
with st.container(horizontal=True, vertical_alignment="bottom"):
    space = controls.select(
        "Vectors",
        spaces,
        key="space",
        help="Embedding: what a token is read as. Unembedding: what the model's last state is compared with, to guess the "
        "next token. A tied model has one matrix for both; a classifier guesses no token, and has no unembedding.",
        format_func=lambda space: ui.space_name(space, config),
        segmented=True,
        notices=notices,
    )
    about = "PCA: straight, at once. t-SNE and UMAP: bent, so that neighbours stay together; slower with many tokens."
    method = controls.select("Projection", METHODS, key="method", help=about, segmented=True, notices=notices)
    about = "A 3-D picture turns under the pointer."
    solid = controls.select("Picture", ("2-D", "3-D"), key="dimensions", help=about, segmented=True, notices=notices) == "3-D"
    seed = "0"
    if method != "PCA":
        about = "They start with some noise: another seed gives another picture."
        seed = controls.select("Seed", ("0", "1", "2", "3", "4"), key="seed", help=about, segmented=True, notices=notices)
    trail = False
    if method == "PCA" and scrubber.steps(key.name):
        about = "The way the chosen token came through training, as a grey line."
        trail = controls.switch("Trail", key="trail", help=about, notices=notices)
view = ui.View(key, space, method, 3 if solid else 2, int(seed))

picture, side = st.columns([5, 2])
with side:
    about = "Type to search. In 2-D, a click on a point chooses it too."
    first = "good" if subject.kind == "classifier" and "good" in names else "e"
    token = names.index(controls.select("Token", names, key="token", default=first, help=about, notices=notices))
    ui.bars(view, token, height=310)
with picture:
    projection, shown = ui.projection(view)
    ui.cloud(shown, projection, token, height=400 if shown == view else 330, trail=trail)
    st.caption(ui.what_is_lost(projection, shown, token, config.d_model))
    st.caption(ui.trust_in_picture(shown, projection))

with st.container(horizontal=True, vertical_alignment="center"):
    st.text("Try this:", width="content")
    if steps := scrubber.steps(key.name):
        begun = {"step": str(steps[0]), "method": "PCA", "dimensions": "2-D", "trail": True}
        controls.try_this("Before training", "Chance put every token where it is. Press play and follow the grey line.", **begun)
    if "e" in names:
        near = {"token": "e", "method": "t-SNE", "dimensions": "2-D"}
        controls.try_this("Vowels", "The vowels are near each other, though nobody told the model what a vowel is.", **near)
    if "good" in names and "bad" in names and subject.kind == "classifier":
        words = {"token": "bad", "method": "PCA", "dimensions": "2-D"}
        opposed = "Nobody told the model which words praise. Do those that blame keep to a side of their own?"
        controls.try_this("Praise and blame", opposed, **words)
    if "A" in names:
        apart = {"token": "A", "space": spaces[-1], "method": "PCA", "dimensions": "2-D"}
        controls.try_this("Capitals apart", "Capitals, small letters and punctuation keep to themselves.", **apart)
    turned = {"method": "PCA", "dimensions": "3-D"}
    controls.try_this("Turn it", "Drag the picture: what is one heap from one side may be two from another.", **turned)

details(
    lambda: projection.points,
    code=ui.code(subject.lm, shown, token),
    how=ui.HOW,
    limits=ui.LIMITS,
    key="embeddings",
)
