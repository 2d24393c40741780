"""Home: the model in one screen, and the way to every page."""

import streamlit as st

from gptviz.ui.menu import GROUPS, PAGES
from gptviz.ui.records.home import PAGE
from gptviz.ui.shell import frame
from gptviz.ui.shell.frame import open_page

open_page(PAGE)

from gptviz.ui.pages.home import glance as home
from gptviz.ui.shell.around import lesson
from gptviz.ui.shell.around.next_step import next_step, reading_order
from gptviz.ui.shell.subject import kinds
from gptviz.ui.shell.subject.bar import subject_bar
from gptviz.ui.views import model_map
from gptviz.ui.widgets.figure import theme

subject = subject_bar()
lesson.first()
glance = home.glance(subject.key, subject.seen)
model_map.show(subject, glance.tokens, glance.guesses, glance.guess_ids, glance.shape)
if subject.kind == "decoder":
    home.say_guess(glance.guesses)
home.link_to_own_page(subject)
next_step()

st.header("Look inside, one page after the other", anchor=False)
pictures = home.pictures(subject.key, subject.seen, theme()) | home.learning(subject.key.name, theme())
carried = frame.carried_state()  # once for all links
numbers = {page.name: number for number, page in enumerate(reading_order(subject.kind)[1:], 1)}
for place, (group, entries) in enumerate(GROUPS.items()):
    shown = [page for page in entries if page.name in numbers]
    st.markdown(f"**{group}**")
    with st.container(horizontal=True, key=f"contents-{place}"):
        for page in shown:
            with st.container(border=True, width="stretch", height="stretch", gap="xsmall"):
                if page.name in pictures:
                    st.image(pictures[page.name], alt=f"{page.title}: {page.sentence}", width="stretch")
                query = {"model": frame.default_model(page)} | carried
                frame.link(page, f"**{numbers[page.name]} {page.title}**", query=query)
                st.caption(page.sentence)
if others := [page for page in PAGES.values() if subject.kind not in page.kinds]:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption("About other kinds of models:", width="content")
        for page in others:
            frame.link(page, description=page.sentence, query={"model": kinds.best_model(page.kinds[0])})
