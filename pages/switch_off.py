"""Switch off: what the model does without a head, an MLP, a neuron, a pattern or its positions."""

import streamlit as st

from gptviz.ui.records.switch_off import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.interp.changing.edit import MEAN
from gptviz.interp.over_prompts import AskedPrompt
from gptviz.interp.units.unit import heads_and_mlps
from gptviz.ui.pages.switch_off import grid
from gptviz.ui.shell.close import close
from gptviz.ui.shell.subject import edits
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.views import before_after, loss_texts
from gptviz.ui.views.over_prompts import over_prompts
from gptviz.ui.widgets import say_answer

subject = subject_bar()
lm = subject.lm
if not (units := heads_and_mlps(lm.model.config)):
    st.info(
        "This model has no heads and no MLPs: there is nothing to switch off but its embedding."
    )
    grid.form(subject.key, lm.model.config)
    close(PAGE, view=None)
    st.stop()

with st.container(horizontal=True, vertical_alignment="bottom"):
    text = loss_texts.choose(subject)
    to = grid.replaced_by()
if to == MEAN and not any(each.needs_text for each in lm.changes):
    edits.text_box(subject.default)
sentence = st.container()
left, right = st.columns([6, 5], gap="medium")
with left:
    drawn = st.container()
    without = grid.losses(subject, text, to)
before = loss_texts.loss_of(subject.key.unedited, text)
shown, why = (subject.key, "") if lm.edits else grid.example(subject, units, without)
guess = before_after.ask_guess_move(subject, shown)
with sentence:
    edited = grid.describe_edits(shown, lm.model.config)
    said = f"{edited}, {guess.sentence}."
    say_answer(said if lm.edits else f"For example, {said[0].lower()}{said[1:]}")
with drawn:
    example = None if lm.edits else shown.edits[0]
    grid.show(subject, text, to, {unit: value - before for unit, value in without.items()}, example)
with right:
    if not lm.edits:
        st.caption(f"Nothing is switched off yet. The example is framed: {why}.")
    numbers, code = guess.show()
with left:
    before_after.losses(subject, shown, text)
grid.form(subject.key, lm.model.config)
before_after.texts(subject, shown)
if without:
    with st.expander("The loss without each head and MLP, as a table", icon=":material/table:"):
        grid.table(subject, before, without)
likeliest = int(
    loss_texts.ask_guess(subject.key.unedited, subject.text).value.probabilities.argmax()
)
over_prompts(subject, "switch off", AskedPrompt(subject.seen, likeliest))
close(PAGE, grid.tries(subject, text, before, without), lambda: numbers, code)
