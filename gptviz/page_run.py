"""A page of the app, run once without a server and without a browser."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from streamlit import config
from streamlit.testing.v1 import AppTest

from . import address_values
from .location import APP, FOLDER

# What warns, many times over, that a page is computed without a server: whoever runs one here means to.
_WARNS = "streamlit.runtime.scriptrunner_utils.script_run_context"
# As .streamlit/config.toml says, which Streamlit finds only from the folder that it lies in.
_WIDGETS = "global.disableWidgetStateDuplicationWarning"


def page_names() -> list[str]:
    """The names of all pages; the first page is "home"."""
    return ["home", *sorted(path.stem for path in (FOLDER / "pages").glob("*.py"))]


def run_page(name: str, query: Mapping[str, str], patience: float) -> AppTest:
    """What the page called `name` ("home" for the first) shows where its address says `query`.

    Args:
        name: that of a script in `pages/`, without its ending.
        query: what the address says.
        patience: how many seconds the page may take.

    Raises:
        RuntimeError: the page takes longer.
    """
    logging.getLogger(_WARNS).disabled = True
    config.set_option(_WIDGETS, True)
    at = AppTest.from_file(str(APP), default_timeout=patience)
    if name != "home":
        at.switch_page(f"pages/{name}.py")
    for key, value in query.items():
        at.query_params[key] = value
    return at.run()


def in_vain(at: AppTest, name: str, query: Mapping[str, str]) -> list[str]:
    """What of `query` the page called `name`, which ran with it, does not take: a sentence for each."""
    return address_values.in_vain(name, query, at.session_state[address_values.NOTED])
