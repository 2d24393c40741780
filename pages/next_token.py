"""What comes next, and how sure is the model? Every stage from its logits to the token that is drawn."""

import streamlit as st

from gptviz.ui.pages import next_token
from gptviz.ui.shell import pages
from gptviz.ui.shell.next_step import next_step
from gptviz.ui.shell.pages import open_page
from gptviz.ui.shell.subject import subject_bar
from gptviz.ui.views import text_position
from gptviz.ui.views.append_token import explain_refusal
from gptviz.ui.widgets.details import details
from gptviz.ui.widgets.tries import try_this

open_page(
    pages.NEXT_TOKEN,
    "What comes next, and how sure is the model?",
    "From left to right: how likely the model finds each token, how temperature, top-k and top-p change that, and the random "
    "draw.",
)
subject = subject_bar()
if subject.lm.model.config.mask == "full":
    st.info(
        "This model reads the whole text at once: at every position but the last it has already seen the token that it guesses."
    )
text, place = st.columns([3, 1], gap="medium")
with place:
    position = text_position.position(len(subject.seen) - 1)
with text:
    text_position.strip(subject, position)

explain_refusal()
next_token.ledger(subject, position)

try_this(next_token.to_try(subject, position))

details(how=next_token.HOW, limits=next_token.LIMITS, key="next_token")
next_step()
