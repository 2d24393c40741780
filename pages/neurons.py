"""What is each neuron for? Where it is active, what it speaks for, and what the model says if it is
set by hand.
"""

import streamlit as st

from gptviz.ui.records.neurons import PAGE
from gptviz.ui.shell import frame
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.figures.kit.theme import MLP
from gptviz.ui.pages.neurons import experts, neurons
from gptviz.ui.records.attention import PAGE as ATTENTION
from gptviz.ui.records.embeddings import PAGE as EMBEDDINGS
from gptviz.ui.records.embeddings import WAVES
from gptviz.ui.shell.close import close
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.shell.subject.unit_titles import said_title
from gptviz.ui.views import one_unit, where_most
from gptviz.ui.views.by_token import by_token
from gptviz.ui.views.notes import show_notes
from gptviz.ui.widgets import capitalise_text, say_answer

# A link of an earlier version: Embeddings shows the waves.
if st.query_params.get("view") == WAVES:
    st.switch_page(EMBEDDINGS.path, query_params=frame.shared_state() | {"view": WAVES})
subject = subject_bar()
config = subject.lm.model.config
if not config.n_layer or not config.mlp_size:
    st.info(
        "The blocks of this model have no MLP, and so no neurons."
        if config.n_layer
        else "This model has no blocks."
    )
    frame.link(ATTENTION if config.n_layer else EMBEDDINGS)
    close(PAGE, view=None)
    st.stop()
seen_as = neurons.view(subject)
if seen_as == neurons.EXPERTS:
    close(PAGE, None, *experts.show(subject), seen_as)
    st.stop()
asked, by = neurons.ask_neurons(subject)
activity = where_most.observe_units(asked)
if activity is None:
    st.stop()

above = st.container()
left, right = st.columns([3, 2], gap="large")
alike = neurons.count_alike(activity)
order = neurons.order_neurons(subject, activity, by, alike)
neuron = one_unit.chosen_unit(subject, activity, order[0])
number = neuron.index or 0
with above:
    say_answer(*neurons.answer(subject, activity, number))
with left:
    title = capitalise_text(said_title(subject.key, neuron))
    st.markdown(f"**{title}: where it is most active**")
    where_most.strips(subject, activity, number, MLP)
with right:
    more = {neurons.FEW_TOKENS: alike}
    one_unit.show_ranked(subject.key, activity, by, order, number, more)
    st.caption(f"{neurons.FEW_TOKENS}: {neurons.ABOUT_ALIKE}")
    by_token(
        subject,
        PAGE,
        "neurons",
        "A token: the neurons of all blocks that add most to its logit by an activation of 1.",
    )
left, middle, right = st.columns(3, gap="large")
calls = []
with left:
    one_unit.distribution(subject.key, activity, number)
with middle:
    if subject.kind.continues:
        calls.append(one_unit.speaks_for(subject, neuron).call)
    else:
        st.caption("This model guesses labels, not tokens: its neurons speak for no token.")
with right:
    calls.append(one_unit.steer(subject, activity, neuron).call)
show_notes(subject, neuron)

code = asked.code(f"result.histogram({number})", *calls, "result.labelled()  # [neuron, number]")
close(PAGE, neurons.tries(subject, activity), activity.labelled, code)
