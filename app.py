"""Home: the model in one screen, and the way to every page."""

import streamlit as st

from gptviz.ui.menu import pages_here
from gptviz.ui.records.home import PAGE
from gptviz.ui.shell import frame
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.home import glance as home
from gptviz.ui.shell.around import lesson
from gptviz.ui.shell.around.next_step import next_step
from gptviz.ui.shell.subject import kinds
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.views import model_map, real_model
from gptviz.ui.views.read import read_by

subject = subject_bar()
lesson.link_first()
glance = home.glance(subject.key, subject.seen)
if subject.kind.continues:
    home.say_guess(subject, glance.guesses)
above = st.container(horizontal=True, vertical_alignment="center", gap="small", key="first-finding")
model_map.show(subject, glance.tokens, glance.guesses, glance.guess_ids, glance.shape)
home.link_to_own_page(subject)
home.what_to_look_at(subject, above, model_map.block_for_guess(subject.key, read_by(subject)))
real_model.offer()
next_step()

if others := [page for page in pages_here().values() if subject.kind.name not in page.kinds]:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption("About other kinds of models:", width="content")
        for page in others:
            frame.link(
                page, description=page.sentence, query={"model": kinds.best_model(page.kinds[0])}
            )
