"""How does a model learn? Train one, and watch it as it does."""

import streamlit as st

from gptviz.ui.records.train import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.train import monitor
from gptviz.ui.pages.train.form import form, name_control, train_button
from gptviz.ui.pages.train.inside import look_inside
from gptviz.ui.pages.train.tries import tries
from gptviz.ui.pages.train.words import HOW, LIMITS, code, validation_losses
from gptviz.ui.shell.around.next_step import next_step
from gptviz.ui.shell.subject.bar import device_box
from gptviz.ui.views.planned_run import commands
from gptviz.ui.widgets import controls, try_this
from gptviz.ui.widgets.details import details

controls.notices_in(st.container())
device = device_box()
view, side = st.columns([9, 4], gap="medium")

with side, st.container(border=True):
    planned = form(device)
    name = name_control(planned)
    train_button(planned, name, device)

with view:
    watched = monitor.bar()
    if watched is None:
        st.info("There is no model yet: press Train.")
        st.stop()
    monitor.live(watched)

look_inside(watched, device)

try_this(tries(watched, planned.plan_name))

details(
    lambda: validation_losses(watched),
    code=code(watched, commands(planned, name)),
    how=HOW,
    limits=LIMITS,
    key="training",
)
next_step()
