"""What is each neuron for? Where it is active, what it speaks for, and what the model says if it is set by hand."""

import streamlit as st

from gptviz.ui.records.neurons import PAGE
from gptviz.ui.shell import frame
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.neurons import experts, show, waves
from gptviz.ui.pages.neurons.choices import EXPERTS, chosen, setting, view
from gptviz.ui.pages.neurons.computed import seen
from gptviz.ui.pages.neurons.tries import tries
from gptviz.ui.pages.neurons.words import HOW, LIMITS, code
from gptviz.ui.records.attention import PAGE as ATTENTION
from gptviz.ui.records.embeddings import PAGE as EMBEDDINGS
from gptviz.ui.shell.around.next_step import next_step
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.views.by_token import by_token
from gptviz.ui.views.sums import WAVES
from gptviz.ui.widgets import capitalised, try_this
from gptviz.ui.widgets.details import details

subject = subject_bar()
config = subject.lm.model.config
if not config.n_layer or not config.mlp_size:
    st.info("The blocks of this model have no MLP, and so no neurons." if config.n_layer else "This model has no blocks.")
    frame.link(ATTENTION if config.n_layer else EMBEDDINGS)
    next_step()
    st.stop()
seen_as = view(subject)
if seen_as == EXPERTS:
    routed = experts.show(subject)
    details(lambda: routed, code=experts.code(subject), how=experts.HOW, limits=experts.LIMITS, key="experts")
    next_step()
    st.stop()
if seen_as == WAVES:
    followed = waves.show(subject)
    details(lambda: followed, code=waves.code(subject.lm), how=waves.HOW, limits=waves.LIMITS, key="neuron waves")
    next_step()
    st.stop()
looked_at, by = setting(subject)
observed = seen(looked_at)
if observed is None:
    st.stop()

left, right = st.columns([2, 3], gap="large")
order = observed.activity.ranked(by)
neuron = chosen(looked_at, order[0])
with left:
    show.ranked(looked_at, observed.activity, by, order, neuron)
    by_token(subject, PAGE, "neurons", "A token: the neurons of all blocks that add most to its logit by an activation of 1.")
title = looked_at.unit(neuron).title
with right:
    st.markdown(f"**{capitalised(title)}: where it is most active**")
    show.strips(subject, looked_at, observed, neuron)
left, middle, right = st.columns(3, gap="large")
with left:
    show.distribution(observed.activity, neuron)
with middle:
    if subject.kind == "decoder":
        show.speaks_for(looked_at, neuron)
    else:
        st.caption("This model guesses labels, not tokens: its neurons speak for no token.")
with right:
    value = show.steer(subject, looked_at, observed.activity, neuron)

try_this(tries(subject, looked_at, observed))
table = observed.activity.table()
details(lambda: table, code=code(subject, looked_at, neuron, value), how=HOW, limits=LIMITS, key="neurons")
next_step()
