"""Labelled arrays to plotly figures. No torch, no streamlit.

Everywhere `theme` is light or dark, and `height` is in pixels.
"""
