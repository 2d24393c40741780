"""Positions: how alike two positions are to the model, and the waves that tell them apart."""

import streamlit as st

from gptviz.ui.records.positions import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.interp.reading import positions
from gptviz.ui.pages.positions import vectors
from gptviz.ui.shell.close import close
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.views import edits, encoder_decoder
from gptviz.ui.widgets import controls, escape_markdown, try_this

subject = subject_bar()
key = subject.key
config = subject.lm.model.config
changed = edits.about_positions(subject.lm)
for sentence in changed:
    controls.notice_place().info(escape_markdown(sentence), icon=":material/edit:")
stack = encoder_decoder.DECODER
block = 0
if subject.kind.has_source and vectors.has_own_stacks(config.positions):
    stack = encoder_decoder.stack_control()  # each has vectors of its own
own, fixed = vectors.kinds(key, stack)
own_config = encoder_decoder.stack_of(subject.lm.model, stack).config
if own != "none" and positions.differ_by_block(own_config):
    hint = "Blocks have positions of their own."
    block = controls.whole_number(
        "Block", 0, own_config.n_layer - 1, key="block", help=hint, default=0
    )
headline = st.container()
with st.container(horizontal=True, vertical_alignment="bottom"):
    beside = controls.select(
        "Beside it",
        vectors.offer_kinds(own, fixed, st.query_params.get("beside")),
        key="beside",
        help="Kinds of positions that need no training, at this model's sizes.",
        format_func=vectors.name,
        segmented=True,
    )
    has_waves = vectors.waves_control(own, fixed)
    most = vectors.how_many(subject)
if not changed:
    with headline:
        vectors.say_headline(key, own, block, stack, most)
if beside == vectors.NOTHING:
    vectors.panel("own", subject, own, block, height=520, stack=stack, most=most, alone=True)
else:
    left, right = st.columns(2)
    with left:
        vectors.panel("own", subject, own, block, height=400, stack=stack, most=most)
    with right:
        vectors.panel("beside", subject, beside, 0, height=400, most=most)

try_this(vectors.tries(subject, own, fixed))

if has_waves:
    vectors.one_wave(key, own, fixed, block, stack)

mapped = beside if own == "none" else own
asked = vectors.ask_map(key, mapped, block, stack, most)
close(PAGE, numbers=lambda: asked.value, code=asked.code("result"))
