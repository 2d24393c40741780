"""The machine that gptviz runs on: its files, its memory, its terminal, and what a server on it
allows.
"""
