"""What does each head look at? All heads at a glance, and one of them large."""

import numpy as np
import streamlit as st

from gptviz.figures import heatmap
from gptviz.interp.attention import one_head
from gptviz.ui import attention, controls, frame
from gptviz.ui.behind import behind

frame.page(
    "pages/attention.py",
    "What does each head look at?",
    "Each row is a token (query) sharing its attention among the tokens it may read (keys); the stronger the colour, the larger the share.",
)
subject = frame.subject()
config = subject.lm.model.config
if not config.n_layer:
    st.info("This model has no blocks, hence no attention: it guesses the next token from the last one alone.")
    st.page_link("pages/next_token.py", label="See its guesses", icon=":material/bar_chart:", query_params=frame.shared_state())
    st.stop()
view = attention.view(subject.key, subject.seen)

overview, large = st.columns([5, 8])
with overview:
    with st.container(horizontal=True):
        block = controls.whole("Block", 0, config.n_layer - 1, key="block", default=2, help="Numbered from 0, the one nearest the input.")
        head = controls.whole("Head", 0, config.n_head - 1, key="head", default=2, help="Each block has several heads, numbered from 0.")
    glance = st.container()
    log = controls.switch("Log colours", key="log", help="Equal ratios become equal steps of colour, so that small shares show, down to 0.1%.")

pattern = one_head(view.patterns, block, head, subject.labels)
name = f"Block {block}, head {head}"
facts = ("on average", *view.facts.phrases(block, head)) if view.facts else ()
notes = [
    ["<br>".join(view.facts.phrases(b, h)) if view.facts else "" for h in range(config.n_head)] for b in range(config.n_layer)
]
with glance:
    st.plotly_chart(
        heatmap.all_heads(view.thumbnails, frame.theme(), (block, head), notes, log=log),
        key="glance",
        on_select=lambda: attention.pick("glance"),
        selection_mode="points",
        config={"displayModeBar": False},
        alt=f"The attention patterns of all {config.n_layer} × {config.n_head} heads; {name} is outlined.",
    )
with large:
    st.plotly_chart(
        heatmap.one_head(pattern, frame.theme(), title=name, notes=facts, log=log),
        key="large",
        width=520,
        config={"displaylogo": False},
        alt=f"{name}: how each of {len(subject.seen)} tokens shares its attention among the tokens.",
    )
with st.container(horizontal=True, vertical_alignment="center"):
    st.text("Try this:", width="content")
    controls.try_this("The seed's picture", "x", block=2, head=2, prompt=frame.DEFAULT_PROMPT)
    if view.facts:
        b, h = np.unravel_index(view.facts.previous.argmax(), view.facts.previous.shape)
        controls.try_this("Reads the token before", "x", block=int(b), head=int(h))
        b, h = np.unravel_index(view.facts.first.argmax(), view.facts.first.shape)
        controls.try_this("Rests on the first token", "x", block=int(b), head=int(h))

behind(
    lambda: pattern,
    code=f"""import gptviz

lm = gptviz.load({subject.lm.name!r})
trace = lm.trace({subject.prompt!r}, ["blocks.{block}.attention.pattern"])
pattern = trace["blocks.{block}.attention.pattern"][0, {head}]  # [query, key]""",
    how="",
    limits="",
    key="attention",
)
