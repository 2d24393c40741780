"""`python -m gptviz.serve run app.py …`: as `python -m streamlit run app.py …`, with what pages
need imported in the meantime.

torch takes longer to import than the server takes to start. A page that comes at once shows its
heading first, and then imports torch; one that comes later finds it there, or waits for the rest.
"""

from __future__ import annotations

from importlib import import_module

from .streamlit_internals import serve

# Seconds for which a first page is waited for: two imports at a time would take longer for what it
# needs first.
WAITS = 4.0


def get_ready() -> None:
    """Import what a page needs for its heading, while the browser loads the app; then what it needs
    for the rest.
    """
    import_module("gptviz.ui.shell.frame").begun.wait(WAITS)
    import_module("torch")


if __name__ == "__main__":
    serve(get_ready)
