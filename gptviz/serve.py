"""`python -m gptviz.serve run app.py …`: as `python -m streamlit run app.py …`, with what pages need imported in the meantime.

torch takes longer to import than the server takes to start. The first page finds it there, or waits for the rest.
"""

from __future__ import annotations

from importlib import import_module

from .streamlit_internals import serve


def get_ready() -> None:
    """Import what a page needs for its heading, while the browser loads the app; then what it needs for the rest."""
    for module in ("gptviz.ui.shell.frame", "torch"):
        import_module(module)


if __name__ == "__main__":
    serve(get_ready)
