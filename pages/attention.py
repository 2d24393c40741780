import streamlit as st

from gptviz.ui import controls, frame

frame.page("pages/attention.py", "attention?", "attention.")
subject = frame.subject()
b = controls.whole("Block", 0, subject.lm.model.config.n_layer - 1, key="block", help="x", default=2)
st.write(b, subject.labels)
controls.try_this("x", "y", block=1, prompt="HELLO")
