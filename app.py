"""Home: the model in one screen, and the way to every page."""

import streamlit as st

from gptviz.ui.pages import home
from gptviz.ui.shell import kinds, pages
from gptviz.ui.shell.pages import open_page
from gptviz.ui.shell.subject import subject_bar
from gptviz.ui.shell.theme import theme
from gptviz.ui.views import model_map

CARDS_PER_ROW = 4

open_page(pages.HOME, home.TITLES, home.SENTENCES)
subject = subject_bar()
glance = home.glance(subject.key, subject.seen)
model_map.show(subject, glance.tokens, glance.guesses, glance.guess_ids, glance.shape)
home.link_to_own_page(subject)

st.subheader("Look inside", anchor=False)
pictures = home.pictures(subject.key, subject.seen, theme()) | home.learning(subject.key.name, theme())
about = [page for page in pages.PAGES.values() if page is not pages.HOME and subject.kind in page.kinds]
for start in range(0, len(about), CARDS_PER_ROW):
    for page, column in zip(about[start : start + CARDS_PER_ROW], st.columns(CARDS_PER_ROW), strict=False):
        with column.container(border=True, height="stretch", gap="xsmall"):
            if page.path in pictures:
                st.image(pictures[page.path], alt=f"{page.title}: {page.sentence}", width="stretch")
            pages.link(page, f"**{page.title}**")
            st.caption(page.sentence)
if others := [page for page in pages.PAGES.values() if subject.kind not in page.kinds]:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption("About other kinds of models:", width="content")
        for page in others:
            pages.link(page, description=page.sentence, query={"model": kinds.best_model(page.kinds[0])})
