"""Streamlit's page in a browser still has what style sheets and scripts look for, and writes the
address as it did.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from gptviz.streamlit_internals import SELECTORS
from tests.browser.machinery import Server, serve, visiting
from tests.test_streamlit_internals import changed

pytestmark = pytest.mark.browser

SCRIPT = """
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

with st.sidebar:
    st.header("Side")
st.header("Main")
st.page_link("https://example.org", label="A link", icon=":material/home:")
st.segmented_control("Side by side", ["a", "b"], key="letter", bind="query-params")
for column in st.columns(2):
    column.plotly_chart(go.Figure(), key=f"chart {id(column)}")
st.dataframe(pd.DataFrame({"number": range(3)}))
if st.button("Main", type="primary"):
    st.query_params["written"] = "1"
st.code("pass", "python")
st.caption("a caption")
st.info("what is said of an answer")
with st.popover("More"):
    st.text("unfolded")
st.slider("Slider", 0, 9, help="what it does")
st.download_button("Download", "text")
st.file_uploader("File")
st.expander("Folded").text("unfolded too")
st.toggle("Switch", True)
st.selectbox("Select", ["a"])
st.multiselect("Several", ["a"], ["a"])
st.text_area("Text")
st.components.v2.component("view", html="<p>view</p>")(key="view")
"""
EXPAND = "[data-testid=stExpandSidebarButton]"
# What the browser's history is told, as `components/page_helpers` replaces it.
LISTEN = """() => {
    globalThis.pushed = [];
    history.pushState = (state, unused, address) => pushed.push(new URL(address, location.href).search);
}"""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of a page with one of each element."""
    folder = tmp_path_factory.mktemp("small")
    (folder / "script.py").write_text(SCRIPT)
    with serve(folder, folder / "script.py") as running:
        yield running


def test_the_page_has_what_style_sheets_and_scripts_look_for(
    browser: Browser, small: Server
) -> None:
    with visiting(browser, small) as visit:
        page = visit.open()
        visit.drawn()
        page.get_by_test_id("stPopoverButton").click()
        expect(page.get_by_text("unfolded", exact=True)).to_be_visible()
        found = {selector for selector in SELECTORS if page.locator(selector).count()}
        page.set_viewport_size({"width": 390, "height": 844})  # on a phone the side bar is shut
        expect(page.locator(EXPAND), changed(SELECTORS[EXPAND])).to_have_count(1)
        found.add(EXPAND)
        missing = [
            f"{selector}: {lost}" for selector, lost in SELECTORS.items() if selector not in found
        ]
        assert not missing, changed("; ".join(missing))


def test_what_the_server_writes_into_the_address_is_a_step_in_the_history_and_a_control_is_none(
    browser: Browser, small: Server
) -> None:
    with visiting(browser, small) as visit:
        page = visit.open()
        page.evaluate(LISTEN)
        page.get_by_role("radio", name="b").click()
        expect(page).to_have_url(re.compile("letter=b"))
        page.get_by_role("button", name="Main").click()
        visit.settle()
        lost = (
            "a click makes several steps in the browser's history, or none: see "
            "components/page_helpers"
        )
        assert page.evaluate("pushed") == ["?letter=b&written=1"], changed(lost)
