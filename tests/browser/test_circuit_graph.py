"""The graph of a circuit in a browser: its lines and numbers, the keyboard, the card, and its
pictures.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest
import torch
from playwright.sync_api import Locator, expect

from gptviz.components.circuit_graph import payload, read_file
from gptviz.components.kit.command import ViewCommand
from gptviz.interp.explaining.circuit import Circuit, circuit
from gptviz.model import Config, build
from tests.browser.files import csv_rows, tool
from tests.browser.keyboard import check_tools, unreached
from tests.browser.machinery import HOSTILE
from tests.browser.mounting import Mounted
from tests.browser.pictures import faults, saved, words
from tests.hand_built import induction_circuit
from tests.waiting import wait_until

pytestmark = pytest.mark.browser

Mount = Callable[..., Mounted]
# A box of the circuit built by hand: it writes what the token before was.
PREVIOUS = "blocks.0.attention.head.1@2"
BOXES = """() => {
    const root = document.querySelector('div').shadowRoot, frame = root.querySelector('.frame');
    const ends = (element) => [element.getBoundingClientRect().left, element.getBoundingClientRect().right];
    const names = ends(root.querySelector('.layer'))[1];
    return { scrolled: frame.scrollLeft, names, frame: ends(frame), nodes: [...root.querySelectorAll('.node')].map(ends) };
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


def packed(found: Circuit, opened: str = "", of: str = "this", **others: Any) -> bytes:
    about = {"title": "A circuit", "model": "by hand", "code": "…", "choices": {"token": 7}}
    return payload(found, "t{}".format, of=of, opened=opened, **about, **others)


def node(view: Mounted, found: Circuit, name: str) -> Locator:
    """The box of a node."""
    return view.page.locator(".node").nth([one.name for one in found.nodes].index(name))


def in_front(view: Mounted) -> list[str]:
    """The lines in front of all others, as they are drawn: the last ones of the drawing."""
    lines = view.page.locator(".lines .edge")
    looks: list[tuple[str, bool, float]] = lines.evaluate_all(
        "(all) => all.map((one) => [one.getAttribute('d'), one.matches('.own'), "
        "Number(getComputedStyle(one).strokeOpacity)])"
    )
    own = [d for d, is_own, _ in looks if is_own]
    assert [d for d, *_ in looks][len(looks) - len(own) :] == own
    assert not own or min(one[2] for one in looks if one[1]) > 4 * max(
        [one[2] for one in looks if not one[1]], default=0
    )
    return own


def edges_of(found: Circuit, *names: str) -> int:
    """The number of edges that begin or end at one of these nodes."""
    return sum(edge.source.name in names or edge.target.name in names for edge in found.edges)


def test_nodes_and_lines_are_those_of_the_circuit_and_a_click_opens_one(
    mounted: Mount, found: Circuit
) -> None:
    view = mounted("circuit_graph", packed(found))
    page = view.page
    expect(page.locator(".node")).to_have_count(len(found.nodes))
    expect(page.locator(".lines .edge")).to_have_count(len(found.edges))
    expect(page.locator(".lines .edge.key")).to_have_count(
        sum(edge.kind == "key" for edge in found.edges)
    )
    previous = next(i for i, one in enumerate(found.nodes) if one.name == PREVIOUS)
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


def test_lines_stand_back_until_a_box_is_chosen_whose_ways_are_then_in_front_also_after_a_reload(
    mounted: Mount, found: Circuit
) -> None:
    view = mounted("circuit_graph", packed(found))
    faded = "(lines) => lines.map((line) => Number(getComputedStyle(line).strokeOpacity))"
    assert max(view.page.locator(".lines .edge:not(.main)").evaluate_all(faded)) <= 0.5
    main = view.page.locator(".lines .edge.main")
    assert main.count() == len(found.main_edges)
    assert min(main.evaluate_all(faded)) > 0.9, "the path that the page names is drawn dark"
    assert in_front(view) == []
    node(view, found, PREVIOUS).click()
    view.page.mouse.move(0, 0)
    expect(view.page.locator(".card")).to_be_hidden()
    chosen = in_front(view)
    assert len(chosen) == edges_of(found, PREVIOUS)
    again = mounted("circuit_graph", packed(found, opened=PREVIOUS))
    expect(again.page.locator(".node.opened")).to_have_count(1)
    assert in_front(again) == chosen
    again.page.locator(".node.logit").hover()
    assert len(in_front(again)) == edges_of(found, found.nodes[0].name)
    again.page.mouse.move(0, 0)
    assert in_front(again) == chosen


def test_the_lines_of_the_path_have_their_numbers_and_the_legend_says_what_these_are_parts_of(
    mounted: Mount, found: Circuit
) -> None:
    only = re.compile(r"^head 1[VKQ]*$")
    numbers = sorted(f"{edge.value:+#.3g}" for edge in found.main_edges)
    for width in (1_000, 390):
        view = mounted("circuit_graph", packed(replace(found, against=4)), width=width)
        expect(node(view, found, PREVIOUS)).to_have_text(only)
        assert sorted(view.page.locator(".on-line").all_text_contents()) == numbers
        expect(view.page.locator(".legend")).to_contain_text(
            f"how much of t7 − t4 ({found.total:#.3g}) comes along it"
        )
        main = {end for edge in found.main_edges for end in (edge.source, edge.target)}
        expect(view.page.locator(".node.main")).to_have_count(len(main))
    none = mounted("circuit_graph", packed(found, main=()))
    expect(none.page.locator(".on-line, .edge.main, .node.main")).to_have_count(0)
    expect(none.page.locator(".unit")).to_be_hidden()


def test_pins_stay_in_front_and_in_the_address(mounted: Mount, found: Circuit) -> None:
    # of another graph
    view = mounted("circuit_graph", packed(found), pinned="embed@100", groups="a:nothing@1")
    expect(view.page.locator(".node")).to_have_count(len(found.nodes))
    expect(view.page.locator(".node.pinned")).to_have_count(0)
    pin = view.page.locator(".arranging").get_by_role("button").first
    expect(pin).to_be_disabled()
    node(view, found, PREVIOUS).click()
    pin.click()
    node(view, found, "embed@1").focus()
    view.page.keyboard.press("p")
    view.page.keyboard.press("Escape")
    node(view, found, PREVIOUS).click()  # closed again
    view.page.mouse.move(0, 0)
    wait_until(
        lambda: parse_qs(urlparse(view.page.url).query).get("pinned") == [f"{PREVIOUS} embed@1"]
    )
    assert len(in_front(view)) == edges_of(found, PREVIOUS, "embed@1")
    again = mounted("circuit_graph", packed(found), pinned=f"{PREVIOUS} embed@1")
    expect(again.page.locator(".node.pinned")).to_have_count(2)
    assert in_front(again) == in_front(view)
    node(again, found, "embed@1").focus()
    again.page.keyboard.press("p")
    expect(again.page.locator(".node.pinned")).to_have_count(1)
    wait_until(lambda: parse_qs(urlparse(again.page.url).query)["pinned"] == [PREVIOUS])


def test_pinned_boxes_become_a_named_group_which_is_there_after_a_reload(
    mounted: Mount, found: Circuit
) -> None:
    view = mounted("circuit_graph", packed(found), pinned=f"{PREVIOUS} embed@1")
    name = f"{HOSTILE[0][:20]};"
    view.page.get_by_label("Name of the group").fill(name)
    view.page.get_by_role("button", name="Group the 2 pinned boxes").click()
    group = view.page.locator(".node.group")
    expect(group).to_contain_text(name[:9])
    expect(view.page.locator(".node")).to_have_count(len(found.nodes) - 1)
    wait_until(lambda: "groups" in parse_qs(urlparse(view.page.url).query))
    query = parse_qs(urlparse(view.page.url).query)
    assert query["groups"] == [f"{name[:-1]}:{PREVIOUS} embed@1"]
    assert "pinned" not in query
    again = mounted("circuit_graph", packed(found), groups=query["groups"][0])
    group = again.page.locator(".node.group")
    expect(group).to_be_visible()
    members = (PREVIOUS, "embed@1")
    out = [
        edge
        for edge in found.edges
        if edge.source.name in members and edge.target.name not in members
    ]
    given = sum(edge.value for edge in out)
    group.hover()
    expect(again.page.locator(".card")).to_contain_text(
        f"gives {given:+#.3g} of t7".replace("-", "−")
    )
    assert len(in_front(again)) < edges_of(found, *members), (
        "what the members give to each other is no line"
    )
    before = len(again.sent)
    group.click()
    assert len(again.sent) == before, "the server knows of no groups"
    again.page.get_by_role("button", name="Ungroup").click()
    expect(again.page.locator(".node")).to_have_count(len(found.nodes))
    assert [float(row["logit"]) for row in csv_rows(again.page)] == pytest.approx(
        [edge.value for edge in found.edges]
    )


def test_a_saved_graph_is_read_again_and_shown_when_the_server_asks_for_it(
    mounted: Mount, found: Circuit
) -> None:
    view = mounted("circuit_graph", packed(found), pinned="embed@1", groups=f"one:{PREVIOUS}")
    with view.page.expect_download() as download:
        tool(view.page, "Save").click()
    content = Path(download.value.path()).read_bytes()
    assert download.value.suggested_filename == "circuit.json"
    choices, arranged = read_file(content)
    assert choices == {"token": 7}
    assert arranged == {"pinned": "embed@1", "groups": f"one:{PREVIOUS}"}
    edges = json.loads(content)["edges"]
    assert [(one["from"], one["to"], one["kind"], one["value"]) for one in edges] == [
        (edge.source.name, edge.target.name, edge.kind, edge.value) for edge in found.edges
    ]
    other = mounted("circuit_graph", packed(found), pinned=PREVIOUS)
    other.show(packed(found, command=ViewCommand.new_command(arranged)))
    expect(other.page.locator(".node.group")).to_have_count(1)
    expect(other.page.locator(".node.pinned:not(.group)")).to_have_text(re.compile("“t"))
    wait_until(
        lambda: (
            parse_qs(urlparse(other.page.url).query)
            == {key: [value] for key, value in arranged.items()}
        )
    )


def test_a_line_is_as_wide_where_it_takes_away_as_where_it_adds_as_much(
    mounted: Mount, found: Circuit
) -> None:
    view = mounted("circuit_graph", packed(found))
    widths = "(lines) => lines.map((line) => line.getAttribute('stroke-width'))"
    added = view.page.locator(".lines .edge.up").evaluate_all(widths)
    opposite = replace(found, edges=tuple(replace(edge, value=-edge.value) for edge in found.edges))
    view.show(packed(opposite, of="its opposite"))
    expect(view.page.locator(".lines .edge.down")).to_have_count(len(added))
    assert view.page.locator(".lines .edge.down").evaluate_all(widths) == added
    assert float(added[0]) == max(map(float, added)) > min(map(float, added))


def test_by_the_keyboard_alone_all_nodes_are_walked_from_one_tab_stop_read_and_opened(
    mounted: Mount, found: Circuit
) -> None:
    view = mounted("circuit_graph", packed(found))
    page = view.page
    focused = view.page.locator(".node:focus")
    expect(page.locator('.node[tabindex="0"]')).to_have_count(1)
    assert not unreached(page)
    page.locator(".node").first.focus()
    page.keyboard.press("ArrowDown")
    expect(focused).to_contain_text("head 2")
    expect(focused).to_have_accessible_description(re.compile("It reads|It adds to"))  # said aloud
    expect(page.locator(".card")).to_contain_text("Head 2 of block 1")
    page.keyboard.press("Enter")
    assert view.sent[-1].value == {
        "node": int(focused.get_attribute("data-index") or ""),
        "of": "this",
    }
    page.keyboard.press("Escape")
    expect(page.locator(".card")).to_be_hidden()
    check_tools(page)


@pytest.mark.parametrize("width", [390, 1280, 1920, 3840])
def test_it_opens_at_the_logit_and_the_frame_cuts_no_node(
    mounted: Mount, wide: Circuit, width: int
) -> None:
    view = mounted("circuit_graph", packed(wide), width=width, height=900)
    expect(view.page.locator(".node").first).to_be_attached()
    seen = view.page.evaluate(BOXES)
    expect(view.page.locator(".node.logit")).to_be_in_viewport(ratio=1)
    left = seen["names"]
    right = seen["frame"][1]
    assert max(end for _, end in seen["nodes"]) <= right + 1
    assert sum(start >= left - 1 for start, _ in seen["nodes"]) >= 2
    assert not [box for box in seen["nodes"] if box[0] < left - 1 and box[1] > left + 1]
    goes_on = min(start for start, _ in seen["nodes"]) < left - 1
    assert view.page.get_by_text("goes on to the left").is_visible() == goes_on
    assert goes_on or width > 390
    if width == 390:
        view.page.get_by_text("goes on to the left").click()
        wait_until(lambda: view.page.evaluate(BOXES)["scrolled"] == 0)
        view.page.get_by_text("goes on to the right").click()
        expect(view.page.locator(".node.logit")).to_be_in_viewport(ratio=1)
        # all of it once there is room
        view.page.set_viewport_size({"width": 3840, "height": 900})
        expect(view.page.get_by_text("goes on to the")).to_be_hidden()


def test_the_drawing_has_every_node_and_the_table_every_edge(
    mounted: Mount, found: Circuit
) -> None:
    page = mounted("circuit_graph", packed(found), width=390).page
    drawn = saved(page)
    assert not faults(page, drawn)
    texts = words(drawn)
    assert sum(text.startswith("“") for text in texts) == sum(
        node.unit is not None and node.unit.part == "embed" for node in found.nodes
    )
    names = {text.strip() for text in texts}  # those of layers take two lines
    assert {"head 1", "head 2", "block 0,", "block 1,", "heads", "logit"} <= names
    rows = csv_rows(page)
    assert [float(row["logit"]) for row in rows] == pytest.approx(
        [edge.value for edge in found.edges]
    )
    assert [row["kind"] for row in rows] == [edge.kind for edge in found.edges]
