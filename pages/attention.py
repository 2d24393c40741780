"""What does each head look at? All heads at a glance, and one of them large."""

import streamlit as st

from gptviz.interp.attention import strongest
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
shown = attention.show(
    subject,
    stack,
    overview,
    large,
    default=2,
    height=230 if has_two else 300,  # the control of the stack takes some
    beside=lambda: attention.to_the_other(subject) if has_two else None,
)
facts = shown.view.facts

with st.container(horizontal=True, vertical_alignment="center"):
    st.text("Try this:", width="content")
    if not subject.on_task:
        there = {"block": 2, "head": 2} if config.n_layer > 2 and config.n_head > 2 else {}
        seed = (
            "The seed's picture: Sinai (2024) numbers from 1 and calls it block 3, head 3; here, from 0, it is block 2, head 2."
        )
        controls.try_this("The seed's picture", seed, prompt=frame.DEFAULT_PROMPT, **there)
    if facts:
        b, h = strongest(facts.previous)
        controls.try_this(
            "The token before", f"Block {b}, head {h} looks there most: a line along the diagonal.", block=b, head=h
        )
        b, h = strongest(facts.first)
        controls.try_this("The first token", f"Block {b}, head {h} rests there most: a column at the left.", block=b, head=h)

behind(
    lambda: shown.pattern,
    code=attention.code(subject, stack, shown.block, shown.head),
    how=attention.HOW,
    limits=attention.LIMITS,
    key="attention",
)
