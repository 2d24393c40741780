"""Every view made by hand is used by the keyboard alone, from the first Tab; test_every_view.py has what all views keep to.

Points of a figure and rows of a table are no stops: what a click on one chooses, a select box beside it chooses too
(`ui/widgets/picking.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch
from playwright.sync_api import expect

from gptviz.components import circuit_graph, page_helpers
from gptviz.interp.explaining.circuit import circuit
from tests.browser.keyboard import check_tools, press, tab_to, to_start, unreached
from tests.browser.mounting import Mounted
from tests.hand_built import induction_circuit

pytestmark = pytest.mark.browser

Mount = Callable[..., Mounted]


def test_the_graph_of_a_circuit(mounted: Mount) -> None:
    found = circuit(induction_circuit(), torch.tensor([3, 5, 7, 1, 8, 2, 9, 5]), 7, 7)
    view = mounted(
        "circuit_graph", circuit_graph.payload(found, str, of="this", title="A circuit", model="by hand", code="…", opened="")
    )
    assert not unreached(view.page)
    to_start(view.page)
    press(view.page, "Tab")
    expect(view.page.locator(".card")).to_be_visible()
    expect(view.page.locator(".node:focus")).to_have_accessible_description(re.compile("It reads|It adds to"))  # said aloud
    press(view.page, "Enter")
    assert view.sent[-1].value == {"node": int(view.page.locator(".node:focus").get_attribute("data-index")), "of": "this"}
    press(view.page, "Escape")
    expect(view.page.locator(".card")).to_be_hidden()
    check_tools(view.page)


# A page as Streamlit builds it: what a popover holds stands at the end of the page while it is open.
POPOVERS = """() => {
    document.body.insertAdjacentHTML('beforeend', `
        <button data-testid=stPopoverButton aria-expanded=false>Share</button><button>After</button>
        <button data-testid=stPopoverButton aria-expanded=false>Words</button><button>Last</button>`);
    const holds = {
        Share: `<input type=radio name=as aria-label=Page><input type=radio name=as checked aria-label=Notebook>
            <button>Save</button>`,
        Words: 'A token is a piece of text.',
    };
    const shut = () => {
        document.querySelector('[data-testid=stPopoverBody]')?.remove();
        for (const one of document.querySelectorAll('[aria-expanded]')) one.ariaExpanded = 'false';
    };
    for (const button of document.querySelectorAll('[data-testid=stPopoverButton]')) button.onclick = () => {
        const isOpen = button.ariaExpanded === 'true';
        shut();
        if (isOpen) return;
        button.ariaExpanded = 'true';
        const label = `aria-label=${button.textContent}`, held = holds[button.textContent];
        document.body.insertAdjacentHTML('beforeend', `<div data-testid=stPopoverBody role=dialog ${label}>${held}</div>`);
    };
}"""


def test_the_popovers_of_a_page(mounted: Mount) -> None:
    page = mounted("page_helpers", page_helpers.payload()).page
    page.evaluate(POPOVERS)
    opened = page.get_by_role("dialog")
    to_start(page)
    tab_to(page, "button Share")
    page.keyboard.press("Enter")
    expect(opened).to_be_focused()  # so that it is read aloud
    assert "Notebook" in press(page, "Tab")
    assert "Save" in press(page, "Tab")
    assert "After" in press(page, "Tab"), "its end leads to what follows its button"
    expect(opened).to_have_count(0)
    tab_to(page, "button Words")
    page.keyboard.press("Enter")
    expect(opened).to_be_focused()  # it holds nothing that Tab could stop at
    assert "button Words" in press(page, "Shift+Tab")
    assert press(page, "Tab").startswith("div Words")
    assert "button Last" in press(page, "Tab")
    expect(opened).to_have_count(0)
    page.get_by_role("button", name="Share").click()
    assert "Notebook" in press(page, "Tab"), "what the pointer opened is the next stop, too"
    assert "button Share" in press(page, "Shift+Tab")
