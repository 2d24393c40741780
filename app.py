"""Home: the model in one screen, and the way to every page."""

import streamlit as st

from gptviz.components.token_strip import token_strip
from gptviz.ui import frame, home

CARDS_PER_ROW = 4

frame.page(
    "app.py",
    "How does a transformer guess the next token?",
    "Text becomes tokens, the model reads them, and each token it knows gets a probability. Click a guess to take it.",
)
subject = frame.subject()
glance = home.glance(subject.key, subject.seen)


def take(index: int) -> None:
    """Go on with the guess that was clicked: its text joins the prompt."""
    st.session_state["prompt"] = subject.prompt + subject.lm.tokenizer.piece(glance.guess_ids[index])


left, right = st.columns([3, 2], gap="large")
with left:
    st.markdown(f"**1 · The text becomes {len(subject.seen)} tokens**", help="A token is what the model reads in one piece.")
    token_strip(
        glance.tokens,
        key="tokens",
        height=150,
        legend="how probable the model found it",
        label="Tokens of the prompt",
        spaced=subject.lm.tokenizer.kind == "symbols",
    )
    st.caption(f"**2 · The model reads them:** {glance.shape}.")
with right:
    st.markdown("**3 · The likeliest next tokens**", help="Of the whole vocabulary; the Next token page shows the rest.")
    token_strip(glance.guesses, key="guesses", bars=True, legend="", on_pick=take, label="The likeliest next tokens")

st.subheader("Look inside", anchor=False)
pictures = home.pictures(subject.key, subject.seen, frame.theme()) | home.learning(subject.key.name, frame.theme())
others = [page for page in frame.PAGES.values() if page.path != "app.py"]
for start in range(0, len(others), CARDS_PER_ROW):
    for page, column in zip(others[start : start + CARDS_PER_ROW], st.columns(CARDS_PER_ROW), strict=False):
        with column.container(border=True, height="stretch", gap="xsmall"):
            if page.path in pictures:
                st.image(pictures[page.path], alt=f"{page.title}: {page.sentence}", width="stretch")
            st.page_link(page.path, label=f"**{page.title}**", icon=page.icon, query_params=frame.shared_state())
            st.caption(page.sentence)
