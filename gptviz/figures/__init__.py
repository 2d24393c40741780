"""Labelled arrays to plotly figures, without torch and streamlit. `theme` is light or dark, and
`height` is in pixels.
"""
