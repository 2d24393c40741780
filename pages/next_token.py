"""What comes next, and how sure is the model? Every stage from its logits to the token that is
drawn.
"""

import streamlit as st

from gptviz.ui.records.next_token import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.next_token import asking, guessing, ledger
from gptviz.ui.shell.close import close
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.views import text_position
from gptviz.ui.views.append_token import explain_refusal

if asking.is_answered_here():
    asking.answer()
    close(PAGE, view=None)
    st.stop()
subject = subject_bar()
if subject.lm.model.config.mask == "full":
    st.info(
        "This model reads the whole text at once: at every position but the last it has already "
        "seen the token that it guesses."
    )
text, beside = st.columns([3, 1], gap="medium")
place = beside.container(gap="xsmall")
with place:
    asks = asking.switch()
    plays = not asks and guessing.switch()
if plays:
    close(PAGE, [], *guessing.game(subject, text, place))
    st.stop()
with place:
    position = text_position.position(len(subject.seen) - 1)
if asks:
    with text:
        asking.ask(subject, position)
    close(PAGE, view=None)
else:
    with text:
        text_position.strip(subject, position)
    explain_refusal()
    ledger.say_guess(subject, position)
    ledger.ledger(subject, position)
    ledger.say_rounding(subject, position)
    close(PAGE, ledger.tries(subject, position))
