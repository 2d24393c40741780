"""How does a model learn? Train one, and watch it as it does."""

import streamlit as st

from gptviz.ui.records.train import PAGE
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.train import dictionary, watch
from gptviz.ui.pages.train.form import form, name_control, train_button
from gptviz.ui.pages.train.inside import look_inside
from gptviz.ui.shell.close import close
from gptviz.ui.shell.subject.bar import device_box, settings_box
from gptviz.ui.views.planned_run import commands
from gptviz.ui.widgets import controls

controls.notices_in(st.container())
with settings_box():
    device = device_box()
view, side = st.columns([9, 4], gap="medium")

with side, st.container(border=True):
    planned = form(device)
    name = name_control(planned)
    train_button(planned, name, device)

with view:
    watched = watch.bar()
    if watched is None:
        st.info("There is no model yet: press Train.")
        st.stop()
    watch.live(watched)

look_inside(watched, device)
dictionary.fitted_here(device)

offers = watch.tries(watched, planned.plan_name)
code = watch.code(watched, commands(planned, name))
close(PAGE, offers, lambda: watch.validation_losses(watched), code)
