"""What does each head look at? All heads at a glance, and one of them large."""

import streamlit as st

from gptviz.figures import heatmap
from gptviz.interp.attention import one_head, strongest
from gptviz.ui import attention, controls, frame, kinds
from gptviz.ui.behind import behind

frame.page(
    "pages/attention.py",
    "What does each head look at?",
    "Each row is a token (query) sharing its attention among the tokens it may read (keys); "
    "the stronger the colour, the larger the share.",
)
subject = frame.subject()
overview, large = st.columns([5, 8])
with overview:
    has_two = subject.kind == "encoder-decoder"
    stack = kinds.stack() if has_two else kinds.DECODER
config = kinds.part(subject.lm.model, stack).config
if not config.n_layer:
    attention.without(subject)
    st.stop()
read = attention.read_by(subject, stack)
view = attention.view(subject.key, read)
labels = tuple(map(subject.lm.tokenizer.label, read.ids))

with overview:
    with st.container(horizontal=True):
        block = controls.whole("Block", 0, config.n_layer - 1, key="block", default=2, help="Numbered from 0, nearest the input.")
        head = controls.whole("Head", 0, config.n_head - 1, key="head", default=2, help="The heads of a block read side by side.")
    glance = st.container()
    with st.container(horizontal=True, vertical_alignment="center"):
        log = controls.switch(
            "Log colours", key="log", help="Equal ratios, equal steps of colour, down to 0.1%: small shares show."
        )
        if has_two:
            attention.to_the_other(subject)
        if view.pooling > 1:
            st.caption(f"Cell: largest of {view.pooling} × {view.pooling}", width="content", help="In the small pictures only.")

name, averages = f"Block {block}, head {head}", view.averages(block, head)
pattern = one_head(view.patterns, block, head, labels)
one = heatmap.one_head(pattern, frame.theme(), title=name, notes=averages, log=log)
room = {"height": 230} if has_two else {}  # the control of the stack takes some
every = heatmap.all_heads(view.thumbnails, frame.theme(), (block, head), view.notes(), log=log, **room)
with large:  # sent first: what was asked for is drawn first
    st.plotly_chart(
        one,
        key="large",
        width=520,
        config={"displaylogo": False},
        alt=f"{name}: how each of {len(labels)} tokens shares its attention among them. {', '.join(averages)}",
    )
    if averages and view.patterns.blocked is None:
        st.caption(", ".join(averages))
with glance:
    st.plotly_chart(
        every,
        key="glance",
        on_select=lambda: attention.pick("glance"),
        selection_mode="points",
        config={"displayModeBar": False},
        alt=f"The attention patterns of all heads of all {config.n_layer} blocks; {name} is outlined. Click one to see it large.",
    )

with st.container(horizontal=True, vertical_alignment="center"):
    st.text("Try this:", width="content")
    if not subject.on_task:
        there = {"block": 2, "head": 2} if config.n_layer > 2 and config.n_head > 2 else {}
        seed = (
            "The seed's picture: Sinai (2024) numbers from 1 and calls it block 3, head 3; here, from 0, it is block 2, head 2."
        )
        controls.try_this("The seed's picture", seed, prompt=frame.DEFAULT_PROMPT, **there)
    if view.facts:
        b, h = strongest(view.facts.previous)
        controls.try_this(
            "The token before", f"Block {b}, head {h} looks there most: a line along the diagonal.", block=b, head=h
        )
        b, h = strongest(view.facts.first)
        controls.try_this("The first token", f"Block {b}, head {h} rests there most: a column at the left.", block=b, head=h)

behind(
    lambda: pattern,
    code=attention.code(subject, stack, block, head),
    how=attention.HOW,
    limits=attention.LIMITS,
    key="attention",
)
