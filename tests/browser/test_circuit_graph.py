"""The graph of a circuit in a browser: its lines and numbers, the keyboard, the card, and its pictures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from playwright.sync_api import expect

from gptviz.components.circuit_graph import payload
from gptviz.interp.explaining.circuit import Circuit, circuit
from gptviz.model import Config, build
from tests.browser.files import csv_rows
from tests.browser.mounting import Mounted
from tests.browser.pictures import faults, saved, words
from tests.hand_built import induction_circuit

pytestmark = pytest.mark.browser

Mount = Callable[..., Mounted]
BOXES = """() => {
    const root = document.querySelector('div').shadowRoot, frame = root.querySelector('.frame');
    const ends = (element) => [element.getBoundingClientRect().left, element.getBoundingClientRect().right];
    return { scrolled: frame.scrollLeft, frame: ends(frame), nodes: [...root.querySelectorAll('.node')].map(ends) };
}"""


@pytest.fixture(scope="module")
def found() -> Circuit:
    return circuit(induction_circuit(), torch.tensor([3, 5, 7, 1, 8, 2, 9, 5]), 7, 7)


@pytest.fixture(scope="module")
def wide() -> Circuit:
    """A circuit of many positions, wider than most screens."""
    torch.manual_seed(0)
    model = build(Config(vocab_size=11, context_length=32, d_model=24, n_layer=2, n_head=6)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(6)  # so that heads look at some tokens more than at others
    return circuit(model, torch.arange(32) % 11, 31, 4, share=0.9)


def packed(found: Circuit, opened: str = "", of: str = "this") -> bytes:
    return payload(found, "t{}".format, of=of, title="A circuit", model="by hand", code="…", opened=opened)


def test_nodes_and_lines_are_those_of_the_circuit_and_a_click_opens_one(mounted: Mount, found: Circuit) -> None:
    view = mounted("circuit_graph", packed(found))
    page = view.page
    expect(page.locator(".node")).to_have_count(len(found.nodes))
    expect(page.locator(".lines .edge")).to_have_count(len(found.edges))
    expect(page.locator(".lines .edge.key")).to_have_count(sum(edge.kind == "key" for edge in found.edges))
    previous = next(i for i, node in enumerate(found.nodes) if node.name == "blocks.0.attention.head.1@2")
    page.locator(".node").nth(previous).hover()
    card = page.locator(".card")
    expect(card).to_contain_text("Head 1 of block 0")
    given = next(edge.value for edge in found.edges if edge.source == found.nodes[previous])
    expect(card).to_contain_text(f"+{given:.3g}")
    expect(page.locator(".edge.own")).to_have_count(4)
    page.locator(".node").nth(previous).click()
    assert view.sent[-1].value == {"node": previous, "of": "this"}
    view.show(packed(found, opened=found.nodes[previous].name))
    expect(page.locator(".node").nth(previous)).to_have_attribute("aria-pressed", "true")


def test_a_line_is_as_wide_where_it_takes_away_as_where_it_adds_as_much(mounted: Mount, found: Circuit) -> None:
    view, widths = mounted("circuit_graph", packed(found)), "(lines) => lines.map((line) => line.getAttribute('stroke-width'))"
    added = view.page.locator(".lines .edge.up").evaluate_all(widths)
    opposite = replace(found, edges=tuple(replace(edge, value=-edge.value) for edge in found.edges))
    view.show(packed(opposite, of="its opposite"))
    expect(view.page.locator(".lines .edge.down")).to_have_count(len(added))
    assert view.page.locator(".lines .edge.down").evaluate_all(widths) == added
    assert float(added[0]) == max(map(float, added)) > min(map(float, added))


def test_the_arrow_keys_walk_all_nodes_from_one_tab_stop(mounted: Mount, found: Circuit) -> None:
    page = mounted("circuit_graph", packed(found)).page
    expect(page.locator('.node[tabindex="0"]')).to_have_count(1)
    page.locator(".node").first.focus()
    page.keyboard.press("ArrowDown")
    focused = page.locator(".node:focus")
    expect(focused).to_contain_text("head 2")
    expect(page.locator(".card")).to_contain_text("Head 2 of block 1")
    page.keyboard.press("Escape")
    expect(page.locator(".card")).to_be_hidden()


@pytest.mark.parametrize("width", [390, 1280, 1920, 3840])
def test_it_opens_at_its_beginning_and_the_frame_cuts_no_node(mounted: Mount, wide: Circuit, width: int) -> None:
    view = mounted("circuit_graph", packed(wide), width=width, height=900)
    expect(view.page.locator(".node").first).to_be_attached()
    seen = view.page.evaluate(BOXES)
    assert seen["scrolled"] == 0
    left, right = seen["frame"]
    assert sum(end <= right + 1 for _, end in seen["nodes"]) >= 2
    assert not [box for box in seen["nodes"] if box[0] < right - 1 and box[1] > right + 1]
    assert min(start for start, _ in seen["nodes"]) > left
    goes_on = max(end for _, end in seen["nodes"]) > right + 1
    assert view.page.get_by_text("goes on to the right").is_visible() == goes_on
    assert goes_on or width > 390
    if width == 390:
        view.page.get_by_text("goes on to the right").click()
        expect(view.page.locator(".node.logit")).to_be_in_viewport(ratio=1)
        # all of it once there is room
        view.page.set_viewport_size({"width": 3840, "height": 900})
        expect(view.page.get_by_text("goes on to the right")).to_be_hidden()


def test_the_drawing_has_every_node_and_the_table_every_edge(mounted: Mount, found: Circuit) -> None:
    page = mounted("circuit_graph", packed(found), width=390).page
    drawn = saved(page)
    assert not faults(page, drawn)
    texts = words(drawn)
    assert texts.count("token") == sum(node.unit is not None and node.unit.part == "embed" for node in found.nodes)
    names = {text.strip() for text in texts}  # those of layers take two lines
    assert {"head 1", "head 2", "block 0,", "block 1,", "heads", "logit"} <= names
    rows = csv_rows(page)
    assert [float(row["logit"]) for row in rows] == pytest.approx([edge.value for edge in found.edges])
    assert [row["kind"] for row in rows] == [edge.kind for edge in found.edges]
