"""Embeddings: the map of all tokens, and the true neighbours of one."""

import streamlit as st

from gptviz.figures import scatter
from gptviz.interp.embeddings import METHODS, SPACES
from gptviz.ui import controls, frame
from gptviz.ui import embeddings as ui
from gptviz.ui.behind import behind

frame.page(
    "pages/embeddings.py",
    "Which tokens are alike to the model?",
    "Each token is a point, placed by its vector. Lines lead to the chosen token's true neighbours: a long line is the picture's fault.",
)
subject = frame.subject(needs_prompt=False)
key, config = subject.key, subject.lm.model.config
tokens = ui.tokens(key)
TIED = "embedding = unembedding"

with st.container(horizontal=True, vertical_alignment="bottom"):
    space = controls.select(
        "Vectors",
        SPACES[:1] if config.tied else SPACES,
        key="space",
        help="Embedding: what a token is read as. Unembedding: what the model's last state is compared with to guess the token. "
        "In a tied model both are one matrix.",
        format_func=lambda name: TIED if config.tied else name,
        segmented=True,
    )
    method = controls.select(
        "Projection", METHODS, key="method", help="PCA: straight, at once. t-SNE and UMAP: bent, so that neighbours stay together.", segmented=True
    )
    solid = controls.select("Picture", ("2-D", "3-D"), key="dimensions", help="A 3-D picture turns under the pointer.", segmented=True) == "3-D"
    seed = 0
    if method != "PCA":
        seed = controls.whole("Seed", 0, 9, key="seed", help="t-SNE and UMAP begin at random: another seed, another picture.", default=0)

picture, side = st.columns([5, 2])
with side:
    token = tokens.names.index(
        controls.select(
            "Token", tokens.names, key="token", default="e", help="Type to search. In the 2-D picture a click on a point chooses it, too."
        )
    )
    near = ui.neighbours(key, space, token)
    st.plotly_chart(
        scatter.neighbour_bars(near.similarity, [tokens.kinds[i] for i in near.ids], frame.theme(), height=320),
        key="neighbours",
        alt=f"The tokens nearest to {tokens.labels[token]} by cosine.",
        config={"displayModeBar": False},
    )
with picture:
    projection, shown = ui.projection(key, space, method, 3 if solid else 2, seed)
    figure = scatter.cloud(
        projection.points,
        [tokens.kinds[i] for i in projection.ids],
        frame.theme(),
        height=400 if shown == method else 330,
        axes=[f"component {i} ({share:.0%})" for i, share in enumerate(projection.explained, 1)],
        chosen=projection.index(token),
        neighbours=[i for i in map(projection.index, near.ids) if i is not None],
    )
    st.plotly_chart(
        figure,
        key="map",
        on_select=lambda: ui.pick("map", tokens.names),
        selection_mode="points",
        alt=f"{len(projection.ids)} tokens by {shown} of the {space}, coloured and shaped by kind.",
    )
    st.caption(ui.loses(projection, shown, config.d_model))
    st.caption(ui.trust(*ui.trustworthiness(key, space, shown, 3 if solid else 2, seed), len(projection.ids)))
