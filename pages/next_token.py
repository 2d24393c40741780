"""What comes next, and how sure is the model? Every token's probability, before and after sampling."""

import streamlit as st

from gptviz.figures import bars
from gptviz.interp.next_token import predict
from gptviz.ui import controls, frame, next_token
from gptviz.ui.behind import behind
from gptviz.ui.sampling import PLAIN, sampling_controls

frame.page(
    "pages/next_token.py",
    "What comes next, and how sure is the model?",
    "Outlined: how likely the model finds each next token. Filled: what is left to draw from after temperature, top-k and top-p.",
)
subject = frame.subject()
label = subject.lm.tokenizer.label
if subject.lm.model.config.mask == "full":
    st.info("This model reads the whole text at once: before the last position, its guesses have seen what comes next.")
strip = st.container()
chart, facts = st.columns([3, 1], gap="medium")
left, right = st.columns([3, 1], gap="medium")
with left:
    sampling = sampling_controls()
with right:
    position = next_token.position(subject)
with strip:
    next_token.strip(subject, position)

prediction = predict(next_token.logits(subject, position), sampling)
true = subject.seen[position + 1] if position + 1 < len(subject.seen) else None
with facts:
    order = next_token.order(len(prediction.before))
    log = controls.switch(
        "Log heights", key="log", help="Equal ratios become equal heights: small probabilities show, down to 0.01 %."
    )
    next_token.facts(subject, prediction, true)
shown = next_token.tokens(prediction, order)
figure = bars.next_token(
    prediction.labelled(shown, [label(int(i)) for i in shown]),
    frame.theme(),
    cut=prediction.cut[shown].tolist(),
    true=next((place for place, i in enumerate(shown) if i == true), None),
    by_rank=order != next_token.ORDERS[2],
    log=log,
)
with chart:
    st.plotly_chart(
        next_token.hold(figure, subject, log),
        key="bars",
        config={"displayModeBar": False},
        alt=f"Probabilities of {len(shown)} tokens before and after sampling; the likeliest is {label(int(shown[0]))}.",
    )

with st.container(horizontal=True, vertical_alignment="center"):
    st.text("Try this:", width="content")
    for title, notice, state in next_token.to_try(subject):
        controls.try_this(title, notice, **PLAIN | state)

behind(
    lambda: next_token.numbers(subject, prediction),
    code=next_token.code(subject, position, sampling),
    how=r"""The model gives every token of its vocabulary a *logit* $z_i$. Before and after sampling:

$$p_i = \frac{e^{z_i}}{\sum_j e^{z_j}} \qquad p'_i = \frac{e^{z_i / T}}{\sum_{j \text{ kept}} e^{z_j / T}}$$

The logits are divided by the temperature $T$; top-k keeps the $k$ likeliest tokens; top-p keeps, of these, the fewest whose
probabilities reach $p$; what is kept is scaled up to sum to 1. At $T = 0$ only the likeliest is left. All of it over the whole
vocabulary, in float64: `gptviz.learn.sampling.ledger`. The model runs once per text; the sliders work on the logits it gave.

Entropy is $H = -\sum_i p_i \ln p_i$ in nats, divided by $\ln 2$ in bits; perplexity is $e^H$. The chips above show the
probability of each token given those before it: `gptviz.interp.next_token`.""",
    limits="""A probability says what the model expects, not why, and not whether it is right. Rank and probability of one token
say little about the model as a whole: its loss is the average over many.""",
    key="next_token",
)
