"""Which tokens of the source does each token of the output read? Cross-attention, the next token anywhere, and the beams."""

import streamlit as st

from gptviz.figures import heatmap
from gptviz.ui import beam_search, controls, frame, translate
from gptviz.ui.behind import behind

frame.page(
    "pages/translate.py",
    "What does the model read while it writes?",
    "Before it writes a token of its output (blue) it looks into the source (orange): the stronger the line, the more it reads.",
)
subject = frame.subject()
notices = st.container()
left, middle, right = st.columns([5, 6, 5], vertical_alignment="bottom")
with left:
    shown = translate.shown(subject, notices)
with middle, st.container(horizontal=True, vertical_alignment="bottom"):
    block, head = translate.heads(subject, notices)
with right:
    position = translate.position(shown, notices)

name, pattern = translate.name(block, head), translate.cross(shown, block, head)
rows, square = st.columns([4, 3])
with rows:
    st.plotly_chart(
        translate.lines(pattern, name, position),
        key="lines",
        on_select=lambda: translate.pick("lines"),
        selection_mode="points",
        config={"displayModeBar": False},
        alt=translate.spoken(pattern, name, position),
    )
with square:
    st.plotly_chart(
        translate.table(pattern),
        key="cross",
        config={"displayModeBar": False},
        alt=f"{name}, as a heatmap: a row for each output token, a column for each source token.",
    )
translate.remark(shown, block, head)

view = controls.select(
    "Show", translate.VIEWS, key="view", segmented=True, label_visibility="collapsed", help="What stands below the lines."
)
if view == translate.VIEWS[0]:
    encoder, decoder = translate.self_attention(shown, block, head)
    for place, stack, own in zip(st.columns(2), ("Encoder", "Decoder"), (encoder, decoder), strict=True):
        with place:
            st.plotly_chart(
                heatmap.one_head(own, frame.theme(), title=translate.titled(stack, own)),
                key=stack,
                config={"displayModeBar": False},
                alt=f"{stack}: how each of {len(own.axes[0].labels)} tokens shares its attention among those it may read.",
            )
elif view == translate.VIEWS[1]:
    translate.strip(shown, position)
    translate.ledger(shown, position)
else:
    search = beam_search.search(subject)
    st.plotly_chart(beam_search.tree(search), key="tree", config={"displayModeBar": False}, alt=beam_search.spoken(search))
    beam_search.answers(search)

with st.container(horizontal=True, vertical_alignment="center"):
    st.text("Try this:", width="content")
    for title, notice, state in translate.to_try(shown):
        controls.try_this(title, notice, **state)

if view == translate.VIEWS[0]:
    behind(
        lambda: pattern,
        code=translate.code(shown, block, head),
        how=translate.HOW_ATTENTION,
        limits=translate.LIMITS_ATTENTION,
        key="cross_attention",
    )
elif view == translate.VIEWS[1]:
    behind(how=translate.HOW_NEXT, limits=translate.LIMITS_NEXT, key="translate_next_token")
else:
    behind(
        lambda: beam_search.numbers(search),
        code=beam_search.code(search),
        how=beam_search.HOW,
        limits=beam_search.LIMITS,
        key="beams",
    )
