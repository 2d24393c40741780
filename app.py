"""Home: the model in one screen, and the way to every page."""

import streamlit as st

from gptviz.ui.pages import home
from gptviz.ui.shell import kinds, lesson, pages
from gptviz.ui.shell.next_step import next_step, reading_order
from gptviz.ui.shell.pages import open_page
from gptviz.ui.shell.subject import subject_bar
from gptviz.ui.shell.theme import theme
from gptviz.ui.views import model_map

open_page(pages.HOME, home.TITLES, home.SENTENCES)
subject = subject_bar()
glance = home.glance(subject.key, subject.seen)
model_map.show(subject, glance.tokens, glance.guesses, glance.guess_ids, glance.shape)
home.link_to_own_page(subject)
lesson.first()
next_step()

st.header("Look inside, one page after the other", anchor=False)
pictures = home.pictures(subject.key, subject.seen, theme()) | home.learning(subject.key.name, theme())
numbers = {page.path: number for number, page in enumerate(reading_order(subject.kind)[1:], 1)}
for place, (group, entries) in enumerate(pages.GROUPS.items()):
    shown = [page for page in entries if page.path in numbers]
    st.markdown(f"**{group}**")
    with st.container(horizontal=True, key=f"contents-{place}"):
        for page in shown:
            with st.container(border=True, width="stretch", height="stretch", gap="xsmall"):
                if page.path in pictures:
                    st.image(pictures[page.path], alt=f"{page.title}: {page.sentence}", width="stretch")
                pages.link(page, f"**{numbers[page.path]} {page.title}**")
                st.caption(page.sentence)
if others := [page for page in pages.PAGES.values() if subject.kind not in page.kinds]:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption("About other kinds of models:", width="content")
        for page in others:
            pages.link(page, description=page.sentence, query={"model": kinds.best_model(page.kinds[0])})
