"""Every view made by hand is used by the keyboard alone, from the first Tab: a test per view.

    view                 Tab stops at                         and from there
    token strip          the strip                            arrows, Home, End walk; Enter chooses; Escape shuts the card
    heads and MLPs       the grid, each button below          arrows walk; Enter or Space switches off, or brings back
    circuit              the graph, each button below         arrows walk; Enter opens a node; Escape shuts its card
    logit lens           the grid, each control below         arrows, Home, End walk the cells; Enter opens one; Escape goes back
    speaker              (keys of the whole page)             Page Down, Page Up, L, arrows, Escape: test_presenter.py
    attention explorer   each control, heads, tokens, pattern test_attention_explorer.py: “the keyboard walks …”
    generation tree      the tree, the card's lists, controls test_generation_tree.py: “by the keyboard alone …”
    sampling ledger      each control, the list               test_sampling_ledger.py: “a click and enter …”, “a key held down …”
    model map            the map, each control of the panel   test_model_map.py: “by the keyboard alone …”
    pictures of a figure each button                          test_figure_tools.py: “by the keyboard alone …”
    popovers of a page   the button, then what it opens       Tab leads in and out again; Escape shuts it

Points of a figure and rows of a table are no stops: what a click on one chooses, a select box beside it chooses too
(`ui/widgets/picking.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch
from playwright.sync_api import expect

from gptviz.components import circuit_graph, lens_grid, token_strip, unit_grid
from gptviz.components.kit import pack
from gptviz.components.unit_grid import About, rows
from gptviz.interp.explaining.circuit import circuit
from gptviz.interp.reading.lens import lens
from gptviz.interp.units.unit import heads_and_mlps
from tests.browser.keyboard import check_tools, press, stops, tab_to, to_start, unreached
from tests.browser.mounting import Mounted
from tests.hand_built import induction_circuit
from tests.tiny import scrambled, some_ids, tiny

pytestmark = pytest.mark.browser

Mount = Callable[..., Mounted]


def test_the_token_strip(mounted: Mount) -> None:
    usual = {"generation": 1, "colour": "#CC3311", "selected": None, "picks": True, "label": "Tokens", "legend": "probability"}
    tokens = [token_strip.Token(label, 0.5, (("x", 0.5),)) for label in ("To", "␣", "be", "⏎", "or")]
    packed = token_strip.payload(tokens, usual | {"height": None, "bars": False, "spaced": False})
    view = mounted("token_strip", packed)
    assert not unreached(view.page)
    to_start(view.page)
    assert len(stops(view.page)) == 1
    press(view.page, "Tab")
    press(view.page, "End")
    expect(view.page.locator(".card")).to_be_visible()
    press(view.page, "Enter")
    assert view.sent[-1].value == {"at": 4, "generation": 1}
    press(view.page, "Escape")
    expect(view.page.locator(".card")).to_be_hidden()


def test_the_grid_of_heads_and_mlps(mounted: Mount) -> None:
    units = heads_and_mlps(tiny(n_encoder_layer=1, n_layer=1))
    about = About("x", "a model", "a prompt", "nats per token", "some code")
    view = mounted("unit_grid", unit_grid.payload(rows(units), {}, dict.fromkeys(units, 0.1), about))
    assert not unreached(view.page)
    to_start(view.page)
    press(view.page, "Tab")
    press(view.page, "ArrowRight")
    press(view.page, "Space")
    assert unit_grid.clicked(view.sent[-1].value, "x", units) == units[1]
    check_tools(view.page)


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


def test_the_grid_of_the_logit_lens(mounted: Mount) -> None:
    model = scrambled(tiny(vocab_size=40, context_length=300, n_layer=2))
    seen = lens(model, some_ids(6, batch=1, vocab=40)[0].tolist())
    packed = lens_grid.payload(seen, str, of="text", model="a model", vocab_size=40, code="seen = …")
    view = mounted("lens_grid", packed)
    assert not unreached(view.page)
    to_start(view.page)
    tab_to(view.page, "layers by")
    for key in ("Home", "Enter"):
        press(view.page, key)
    assert view.sent[-1].value["index"] == 0
    to_start(view.page)
    tab_to(view.page, "Large cells")
    press(view.page, "Enter")
    expect(view.page.get_by_role("button", name="Large cells")).to_have_attribute("aria-pressed", "true")
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
    page = mounted("popover_keys", pack({})).page
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
