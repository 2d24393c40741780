"""Labelled arrays to plotly figures. No torch, no streamlit."""
