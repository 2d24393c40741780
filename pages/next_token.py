"""What comes next, and how sure is the model? Every stage from its logits to the token that is drawn."""

import streamlit as st

from gptviz.ui.pages import next_token
from gptviz.ui.shell import pages
from gptviz.ui.shell.pages import open_page
from gptviz.ui.shell.subject import subject_bar
from gptviz.ui.views.append_token import explain_refusal
from gptviz.ui.widgets import controls
from gptviz.ui.widgets.details import details

open_page(
    pages.NEXT_TOKEN,
    "What comes next, and how sure is the model?",
    "From left to right: what the model says of each token, what temperature, top-k and top-p make of it, and the draw.",
)
subject = subject_bar()
if subject.lm.model.config.mask == "full":
    st.info("This model reads the whole text at once: before the last position, its guesses have seen what comes next.")
text, place = st.columns([3, 1], gap="medium")
with place:
    position = next_token.position(subject)
with text:
    next_token.strip(subject, position)

explain_refusal()
next_token.ledger(subject, position)

with st.container(horizontal=True, vertical_alignment="center"):
    st.text("Try this:", width="content")
    for title, notice, state in next_token.to_try(subject):
        controls.try_this(title, notice, **state)

details(
    how=r"""The model gives every token of its vocabulary a *logit* $z_i$. Before and after sampling:

$$p_i = \frac{e^{z_i}}{\sum_j e^{z_j}} \qquad p'_i = \frac{e^{z_i / T}}{\sum_{j \text{ kept}} e^{z_j / T}}$$

The logits are divided by the temperature $T$; top-k keeps the $k$ likeliest tokens; top-p keeps, of these, the fewest whose
probabilities reach $p$; what is kept is scaled up to sum to 1. At $T = 0$ only the likeliest is left. Of equally likely tokens
the one with the smaller number counts as likelier.

The draw lays what is kept side by side, in the vocabulary's order, on the line from 0 to 1, and takes the token on which a
random number falls. That number is a hash of the seed and of how many tokens stand before: one seed, one path. “Draw 10,000”
takes as many fresh random numbers; $\chi^2 = \sum (\text{seen} - \text{expected})^2 / \text{expected}$, where tokens of which
fewer than 5 are expected are counted together.

All of it over the whole vocabulary, in float64: `gptviz.generate.sampling.ledger` and `draw`. The model runs once per text; your
browser works on the logits it gave. Entropy is $H = -\sum_i p_i \ln p_i$ in nats, divided by $\ln 2$ in bits; perplexity is
$e^H$. The chips above show the probability of each token given those before it: `gptviz.interp.next_token`.""",
    limits="""A probability says what the model expects, not why, and not whether it is right. Rank and probability of one token
say little about the model as a whole: its loss is the average over many.""",
    key="next_token",
)
