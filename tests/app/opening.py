"""Opening a page by its address, without a browser."""

from __future__ import annotations

from pathlib import Path

from streamlit.testing.v1 import AppTest

from tests.waiting import PATIENCE

ROOT = Path(__file__).resolve().parents[2]


def opened(path: str, **query: str | list[str]) -> AppTest:
    """The page at `path`, or Home at `app.py`, run once with `query` in its address."""
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=PATIENCE)
    if path != "app.py":
        at.switch_page(path)
    for key, value in query.items():
        at.query_params[key] = value
    return at.run()
