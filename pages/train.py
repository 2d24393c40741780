"""How does a model learn? Train one, and watch it as it does."""

import streamlit as st

from gptviz.ui.pages.train import monitor
from gptviz.ui.pages.train.details import HOW, LIMITS, code, validation_losses
from gptviz.ui.pages.train.form import form
from gptviz.ui.pages.train.inside import look_inside
from gptviz.ui.pages.train.launch import name_control, train_button
from gptviz.ui.shell import pages
from gptviz.ui.shell.pages import open_page
from gptviz.ui.shell.subject import device_box
from gptviz.ui.views.planned_run import command
from gptviz.ui.widgets import controls
from gptviz.ui.widgets.details import details

open_page(
    pages.TRAIN,
    "How does a model learn?",
    "Step by step its weights are moved so that what is right surprises it less: the loss, its mean surprise, falls.",
)
notices = st.container()
device = device_box()
view, side = st.columns([9, 4], gap="medium")

with side, st.container(border=True):
    planned = form(notices)
    name = name_control(planned)
    train_button(planned, name, device)

with view:
    watched = monitor.bar(notices)
    if watched is None:
        st.info("There is no model yet: press Train.")
        st.stop()
    monitor.live(watched)

look_inside(watched, device)

with st.container(horizontal=True, vertical_alignment="center"):
    st.text("Try this:", width="content")
    mirror = "Train it: within some hundred steps a head finds the mirror image, a line across the text, and the loss its floor."
    controls.try_this("A mirror appears", mirror, plan="reversal")
    sudden = "Train it: for long nothing happens, then the loss falls at once, when a head of block 1 looks where the token was."
    controls.try_this("A sudden insight", sudden, plan="induction", block=1)
    turned = "Train it: “never dull” is praise, which no count of words can tell. Compare its accuracy with the baseline's."
    controls.try_this("A word turned round", turned, plan="classifier")
    controls.try_this("Far too fast", "At a learning rate of 1 it leaps about and learns nothing.", run_learning_rate=1.0)

details(
    lambda: validation_losses(watched),
    code=code(watched, command(planned, name)),
    how=HOW,
    limits=LIMITS,
    key="training",
)
