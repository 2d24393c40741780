"""Home: the model in one screen, and the way to every page."""

import streamlit as st

from gptviz.ui.pages import home
from gptviz.ui.shell import frame, kinds
from gptviz.ui.views import model_map

CARDS_PER_ROW = 4

frame.page("app.py", home.TITLES, home.SENTENCES)
subject = frame.subject()
glance = home.glance(subject.key, subject.seen)
model_map.show(subject, glance.tokens, glance.guesses, glance.guess_ids, glance.shape)
home.lead_on(subject)

st.subheader("Look inside", anchor=False)
pictures = home.pictures(subject.key, subject.seen, frame.theme()) | home.learning(subject.key.name, frame.theme())
about = [page for page in frame.PAGES.values() if page.path != "app.py" and subject.kind in page.kinds]
for start in range(0, len(about), CARDS_PER_ROW):
    for page, column in zip(about[start : start + CARDS_PER_ROW], st.columns(CARDS_PER_ROW), strict=False):
        with column.container(border=True, height="stretch", gap="xsmall"):
            if page.path in pictures:
                st.image(pictures[page.path], alt=f"{page.title}: {page.sentence}", width="stretch")
            st.page_link(page.path, label=f"**{page.title}**", icon=page.icon, query_params=frame.shared_state())
            st.caption(page.sentence)
if others := [page for page in frame.PAGES.values() if subject.kind not in page.kinds]:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption("About other kinds of models:", width="content")
        for page in others:
            best = {"model": kinds.best(page.kinds[0])}
            st.page_link(page.path, label=page.title, icon=page.icon, help=page.sentence, query_params=best)
