"""Views made by hand, as Streamlit components: one folder each."""
