"""The popovers of a page by the keyboard alone; test_every_view.py has what all views made by hand
keep to.

Points of a figure and rows of a table are no stops: what a click on one chooses, a select box
beside it chooses too (`ui/widgets/picking.py`).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from gptviz.components import page_helpers
from tests.browser.keyboard import press, tab_to, to_start
from tests.browser.mounting import Mounted

pytestmark = pytest.mark.browser

Mount = Callable[..., Mounted]


# A page as Streamlit builds it: what a popover holds stands at the end of the page while it is
# open.
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
