"""Home."""

import streamlit as st

from gptviz.ui import frame

frame.page("app.py", "How does a transformer guess the next token?", "home")
subject = frame.subject()
st.write(len(subject.seen))
