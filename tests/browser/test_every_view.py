"""What every view made by hand keeps to, whatever it shows: one payload of each, and one test of
each promise.

A view is listed in `VIEWS` once, with what it shows of a model whose tokens have hostile names.
What a view shows, and what a reader does with it, is tested in its own file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from playwright.sync_api import Page, expect

import gptviz
from gptviz.components import (
    attention_explorer,
    circuit_graph,
    figure_tools,
    generation_tree,
    head_pattern,
    kit,
    lens_grid,
    page_helpers,
    sampling_ledger,
    search,
    token_strip,
)
from gptviz.components import model_map as map_of_boxes
from gptviz.components.cell_grid import units as unit_grid
from gptviz.components.generation_tree.finished import Finished
from gptviz.components.generation_tree.look import Ghost, Look
from gptviz.components.token_strip import Token
from gptviz.generate.tree import Tree
from gptviz.interp.explaining.circuit import Circuit, circuit
from gptviz.interp.reading.attention import one_head, patterns
from gptviz.interp.reading.lens import lens
from gptviz.interp.units.unit import heads_and_mlps
from gptviz.language_model import LanguageModel
from gptviz.runs import checkpoints
from gptviz.text import CharTokenizer
from gptviz.ui.shell.subject.models import Subject, model_key
from gptviz.ui.views import attention as attention_view
from gptviz.ui.views import model_map as map_view
from gptviz.ui.views.read import PromptRead
from tests.browser.contrast import faint
from tests.browser.files import MENU, tool
from tests.browser.keyboard import check_tools, press, to_start, unreached
from tests.browser.machinery import FRAMES, HOSTILE, box_of, memory
from tests.browser.mounting import Mounted, encoded
from tests.browser.pictures import faults, keep_drawing, names, saved, small, words
from tests.tiny import scrambled, tiny
from tests.waiting import wait_until

pytestmark = pytest.mark.browser

# What tokens are called; the last two are what every object of a script has.
NAMES = (*HOSTILE, "constructor", "__proto__")
# How many characters of a name there are: few in a picture, whose words must not lie on each other.
LONG = 300
SHORT = 8
TEXT = "abcdefghab"
SETTINGS = [HOSTILE[2]]


def explorer(lm: LanguageModel, turn: int) -> bytes:
    """The payload that the page Attention gives the explorer."""
    sent: list[bytes] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            attention_explorer, "attention_explorer", lambda packed, **_: sent.append(packed)
        )
        text = TEXT[turn:]
        ids = tuple(lm.encode(text).tolist())
        subject = Subject(model_key("hostile", "cpu"), lm, text, lm.tokenizer.encode(text), ids)
        attention_view.show(subject, "decoder")
    return sent[0]


FOUND: dict[int, Circuit] = {}


def graph(lm: LanguageModel, turn: int) -> bytes:
    if turn not in FOUND:  # the model of all tests is the same, whatever its tokens are called
        FOUND[turn] = circuit(
            lm.model, lm.encode(TEXT), len(TEXT) - 1, turn, share=(0.8, 0.5)[turn]
        )
    found = FOUND[turn]
    about = {"of": f"text {turn}", "title": HOSTILE[0], "model": HOSTILE[1], "code": HOSTILE[0]}
    return circuit_graph.payload(found, lm.tokenizer.label, **about, settings=SETTINGS)


def tree(lm: LanguageModel, turn: int) -> bytes:
    grown = Tree(lm.generation(TEXT), n_candidates=4)
    for _ in range(5 + turn):
        grown.step()
    look = Look(
        1,
        [lm.tokenizer.label(i) for i in lm.encode(TEXT).tolist()],
        lm.tokenizer.label,
        lambda _: HOSTILE[0],
        ghosts=[Ghost(i, 0.25, 0.25 * (i != 2), "top-k" if i == 2 else "") for i in range(4)],
        code=HOSTILE[0],
        status=HOSTILE[1],
        heading={"model": HOSTILE[1], "prompt": HOSTILE[0], "settings": SETTINGS},
    )
    return generation_tree.pack_tree(grown, look, Finished()).joined_bytes


def grid_of_lens(lm: LanguageModel, turn: int) -> bytes:
    seen = lens(lm.model, lm.encode(TEXT).tolist(), top=4)
    about = {
        "of": f"text {turn}",
        "model": HOSTILE[1],
        "vocab_size": lm.tokenizer.vocab_size,
        "code": HOSTILE[0],
    }
    return lens_grid.payload(seen, lm.tokenizer.label, **about)


def map_of_model(lm: LanguageModel, turn: int) -> bytes:
    """The payload that Home gives the map."""
    ids = tuple(lm.encode(TEXT[turn:]).tolist())
    chips = tuple(Token(lm.tokenizer.label(i), 0.5) for i in ids)
    look = map_of_boxes.TensorPage("blocks.0.attention.q", 0, (0, 0, 0))
    return map_view.payload(
        model_key("hostile", "cpu"), PromptRead(ids), TEXT, chips, chips[:4], True, HOSTILE[0], look
    )


def ledger(lm: LanguageModel, turn: int) -> bytes:
    logits = lm.model(lm.encode(TEXT)[None])[0, -1].detach().numpy()
    labels = [lm.tokenizer.label(i) for i in range(len(logits))]
    about = {
        "about": f"text {turn}",
        "title": HOSTILE[1],
        "prompt": HOSTILE[0],
        "code": (HOSTILE[0], HOSTILE[1]),
    }
    numbers = torch.linspace(0.01, 0.99, 100).double().numpy()
    return sampling_ledger.payload(
        logits, labels, **about, numbers=numbers, true=0, takes=True, note=HOSTILE[2]
    ).data


def strip(lm: LanguageModel, turn: int) -> bytes:
    labels = [lm.tokenizer.label(i) for i in lm.encode(TEXT[turn:]).tolist()]
    alternatives = tuple((label, 0.25) for label in labels[:4])
    settings = {
        "generation": turn,
        "colour": "#CC3311",
        "selected": 2,
        "picks": True,
        "label": HOSTILE[0],
    }
    settings |= {
        "legend": HOSTILE[1][:20],
        "height": None,
        "spaced": False,
        "kinds": {HOSTILE[1]: ("#CC3311", "double")},
    }
    look = {"mark": True, "kind": HOSTILE[1], "below": HOSTILE[2][:20]}
    return token_strip.payload(
        [Token(label, 0.9, alternatives, HOSTILE[2], **look) for label in labels], settings
    )


def grid_of_units(lm: LanguageModel, turn: int) -> bytes:
    units = heads_and_mlps(lm.model.config)
    edits = {units[1]: units[1].name, units[2]: HOSTILE[0]}
    changes = {unit: (-1) ** i * (i + turn) / 10 for i, unit in enumerate(units[:-1])}
    about = unit_grid.UnitNotes(
        "a text", HOSTILE[1], HOSTILE[0], HOSTILE[0], HOSTILE[0], (HOSTILE[2],)
    )
    return unit_grid.payload(unit_grid.rows(units), edits, changes, about)


def tools(_: LanguageModel, turn: int) -> bytes:
    heading = {"title": HOSTILE[0], "model": HOSTILE[1], "prompt": HOSTILE[2], "settings": SETTINGS}
    return figure_tools.payload(1.0 + turn / 10, heading, name=HOSTILE[0], sharp=True)


def one_pattern(lm: LanguageModel, turn: int) -> bytes:
    ids = lm.encode(TEXT[turn:]).tolist()
    shares = one_head(patterns(lm.model, ids), 0, 0, [lm.tokenizer.label(i) for i in ids])
    about = {"title": HOSTILE[0], "model": HOSTILE[1], "settings": SETTINGS}
    return head_pattern.payload(shares, about, HOSTILE[0], HOSTILE[2])


def button(_: LanguageModel, turn: int) -> bytes:
    return kit.pack({"label": HOSTILE[turn], "names": []})


def box(_: LanguageModel, turn: int) -> bytes:
    return search.payload(
        search.index([("Model", HOSTILE[turn], HOSTILE[0], "./", "")]), {}, {}
    ).joined_bytes


@dataclass(frozen=True)
class View:
    """A view, and what is known of it here.

    Attributes:
        payload: what it shows of a model on one of two turns.
        choices: what is open in it, as its part of the address says.
        touched: what of it a reader touches, as a selector.
        names: whether it shows names of tokens.
        has_picture: whether it can be saved as a picture.
        names_made_up: whether it names the values of a link that it does not take.
        tools: where the menu of its numbers, code and picture is.
        walks: the parts of it that keys walk, as selectors, each with the arrow that leads no
            further from its end; "" where an arrow may lead on from there.
    """

    payload: Callable[[LanguageModel, int], bytes]
    choices: tuple[dict[str, Any], ...] = ({},)
    touched: str = "button"
    names: bool = True
    has_picture: bool = True
    names_made_up: bool = False
    tools: str = ".root"
    walks: Mapping[str, str] = field(default_factory=dict)


VIEWS = {
    "address_button": View(button, names=False, has_picture=False),
    "attention_explorer": View(
        explorer,
        ({}, {"query": 7, "key": 3}),
        touched=".head, .tokens .chip, .heat",
        names_made_up=True,
        walks={".heads": "ArrowRight", ".tokens": "ArrowDown", ".heatmap": "ArrowRight"},
    ),
    "cell_grid": View(grid_of_units, touched=".cell", names=False, walks={".grid": "ArrowRight"}),
    "circuit_graph": View(graph, touched=".node", walks={".stage": ""}),
    # Its pictures are those of a figure beside it: test_figure_tools.py.
    "figure_tools": View(tools, touched="button", names=False, has_picture=False),
    "generation_tree": View(
        tree, touched=".stage .chip, .slider", walks={".stage": "", ".candidates": "ArrowDown"}
    ),
    "head_pattern": View(one_pattern, touched=".heat", walks={".heatmap": "ArrowRight"}),
    "lens_grid": View(
        grid_of_lens, ({}, {"words": "true"}), touched=".frame", walks={".frame": "ArrowRight"}
    ),
    "model_map": View(
        map_of_model,
        ({}, {"box": "blocks.0.attention.q"}),
        touched="[data-box], [data-block]",
        tools=".foot",
        walks={".stage": "ArrowRight"},
    ),
    "sampling_ledger": View(
        ledger,
        ({}, {"top_k": 3, "temperature": 1.3}),
        touched=".token-row, input[type=range]",
        names_made_up=True,
        walks={".list": "ArrowDown"},
    ),
    # What it finds is in test_search.py.
    "search": View(box, names=False, has_picture=False),
    "token_strip": View(strip, touched=".chip", has_picture=False, walks={".strip": "ArrowRight"}),
}
# It acts on the page around it, and is not seen.
UNSEEN = "page_helpers"
CHOICES = [
    pytest.param(name, choice, id=f"{name} {choice}")
    for name, view in VIEWS.items()
    for choice in view.choices
]


@pytest.fixture
def hostile(home: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], LanguageModel]:
    """A model whose tokens are called by hostile names of so many characters."""
    tokenizer = CharTokenizer(TEXT)
    config = tiny(vocab_size=tokenizer.vocab_size, context_length=32)
    checkpoints.save("hostile", scrambled(config), tokenizer, {})

    def load(longest: int) -> LanguageModel:
        monkeypatch.setattr(CharTokenizer, "label", lambda _, i: NAMES[i % len(NAMES)][:longest])
        return gptviz.load("hostile")

    return load


@pytest.fixture
def seen(
    mounted: Callable[..., Mounted], hostile: Callable[[int], LanguageModel]
) -> Callable[..., Mounted]:
    """Shows a view by its name; further arguments are those of `mounted`."""

    def show(name: str, longest: int = LONG, **page: Any) -> Mounted:
        view = mounted(name, VIEWS[name].payload(hostile(longest), 0), **page)
        expect(view.page.locator(f".root {VIEWS[name].touched}").first).to_be_visible()
        view.page.evaluate(FRAMES)
        return view

    return show


def check_text_is_text(page: Page) -> None:
    """No markup in a text was obeyed."""
    assert page.title() == "A view"
    assert page.locator(".root").locator("img, script, a[href^='javascript']").count() == 0
    assert page.locator(".root").locator("b, strong").get_by_text("bold", exact=True).count() == 0


def keys(data: bytes) -> list[str]:
    """The keys that a view has in the address."""
    return [*kit.unpack(data)[0].get("declared", ())]


def test_every_folder_of_a_view_is_listed() -> None:
    folders = {
        script.stem
        for script in kit.FOLDER.parent.glob("*/*.js")
        if script.stem == script.parent.name
    }
    assert folders == VIEWS.keys() | {UNSEEN}


def test_what_acts_on_the_page_alone_shows_nothing(mounted: Callable[..., Mounted]) -> None:
    page = mounted(UNSEEN, page_helpers.payload(step="", presents=True)).page
    assert page.locator("body").inner_text().strip() == ""


def check_readable(page: Page, width: int) -> None:
    """Every text is large and clear enough, and nothing sticks out of a page so wide."""
    assert small(page) == []
    assert faint(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(("name", "choice"), CHOICES)
def test_every_text_is_text_and_can_be_read_and_the_wheel_scrolls_the_page_in_the_end(
    seen: Callable[..., Mounted], name: str, choice: dict[str, Any]
) -> None:
    page = seen(name, **choice).page
    view = VIEWS[name]
    check_readable(page, 1280)
    page.locator(f".root {view.touched}").first.hover()
    texts = page.locator(".root *").evaluate_all("all => all.map((one) => one.textContent)")
    if view.names:
        # Names that are too long for their place are cut.
        assert [
            name for name in NAMES if not any(text.startswith(name[:3]) for text in texts)
        ] == []
    check_text_is_text(page)
    for opened in ("Numbers", "Code"):
        if page.locator(view.tools).locator(f"{MENU}[aria-label*='{opened}']").count():
            tool(page, opened, page.locator(view.tools)).click()
            expect(page.get_by_role("dialog")).to_be_visible()
            check_text_is_text(page)
            page.keyboard.press("Escape")
    check_wheel(page, view)


def check_wheel(page: Page, view: View) -> None:
    """The wheel over a view scrolls the page in the end."""
    page.add_style_tag(content="body { min-height: 500vh }")
    page.locator(f".root {view.touched}").first.hover()
    down = page.evaluate("scrollY")

    def scrolled() -> bool:
        page.mouse.wheel(0, 5_000)  # what scrolls within the view comes first
        page.evaluate(FRAMES)
        return bool(page.evaluate("scrollY") > down)

    # a wheel that is still turning goes on to scroll what it began with
    wait_until(scrolled, every=0.3)


# Colours say nothing about sizes: each look is paired with another width. Light and wide is the
# test above.
@pytest.mark.parametrize(("name", "choice"), CHOICES)
def test_in_the_dark_and_on_a_phone_every_text_can_be_read(
    seen: Callable[..., Mounted], name: str, choice: dict[str, Any]
) -> None:
    check_readable(seen(name, **choice, dark=True, width=390).page, 390)


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_grows_with_the_window(seen: Callable[..., Mounted], name: str) -> None:
    def height(width: int) -> float:
        page = seen(name, SHORT, width=width, height=width * 9 // 16).page
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        return float(box_of(page.locator(f".root {VIEWS[name].touched}").first)["height"])

    laptop, screen, projector = map(height, (1280, 1920, 3840))
    assert laptop < screen
    assert projector == pytest.approx(2 * screen, rel=0.1)


@pytest.mark.parametrize(
    ("name", "choice"), [one for one in CHOICES if VIEWS[str(one.values[0])].has_picture]
)
def test_a_picture_is_made_of_what_is_on_the_screen(
    seen: Callable[..., Mounted], name: str, choice: dict[str, Any]
) -> None:
    page = seen(name, SHORT, **choice).page
    where = VIEWS[name].tools
    drawn = saved(page, page.locator(where))
    assert faults(page, drawn) == []
    assert "<img" in "".join(words(drawn))
    assert not any(tag in drawn for tag in ("<script", "<img", "<foreignObject"))
    keep_drawing(page)
    with page.expect_download() as waiting:
        tool(page, "PNG", page.locator(where)).click()
    assert Path(waiting.value.path()).read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", [name for name, view in VIEWS.items() if view.has_picture])
def test_it_fills_the_screen_alone_and_gives_it_back(
    seen: Callable[..., Mounted], name: str
) -> None:
    page = seen(name, SHORT).page
    where = page.locator(VIEWS[name].tools)
    root = page.locator(".root")
    tool(page, "Full screen", where).click()
    expect(root).to_have_js_property("offsetWidth", page.evaluate("innerWidth"))
    assert root.evaluate("(root) => root.matches(':fullscreen')")
    assert root.evaluate("(root) => root.scrollWidth <= root.clientWidth")
    tool(page, "Full screen", where).click()
    page.wait_for_function("document.fullscreenElement === null")


@pytest.mark.parametrize("name", [name for name, view in VIEWS.items() if view.has_picture])
def test_two_pictures_can_stand_in_one_document(
    seen: Callable[..., Mounted], hostile: Callable[[int], LanguageModel], name: str
) -> None:
    view = seen(name, SHORT)
    where = VIEWS[name].tools
    one = saved(view.page, view.page.locator(where))
    view.show(VIEWS[name].payload(hostile(SHORT - 1), 1))
    assert names(one) & names(saved(view.page, view.page.locator(where))) == set()


@pytest.mark.parametrize("name", VIEWS)
def test_an_address_that_a_link_made_up_is_named_and_chooses_nothing(
    seen: Callable[..., Mounted], hostile: Callable[[int], LanguageModel], name: str
) -> None:
    def lines(**made_up: str) -> set[str]:
        return set(seen(name, **made_up).page.locator(".root").inner_text().splitlines())

    made_up = dict.fromkeys(keys(VIEWS[name].payload(hostile(LONG), 0)), "<b>x</b>")
    said = lines(**made_up)
    usual = lines()
    assert [line for line in said - usual if "The link asks for" not in line] == []
    named = {key for key in made_up if any(f"{key} = “<b>x</b>”" in line for line in said)}
    assert named == (made_up.keys() if VIEWS[name].names_made_up else set())


# The others open what they offer as one walks: their own tests do so by the keyboard alone.
@pytest.mark.parametrize(
    "name", sorted(VIEWS.keys() - {"circuit_graph", "generation_tree", "model_map"})
)
def test_the_keyboard_reaches_all_that_a_pointer_can_use(
    seen: Callable[..., Mounted], name: str
) -> None:
    page = seen(name, SHORT).page
    assert not unreached(page)
    if VIEWS[name].has_picture:
        check_tools(page)


# How wide the ring is of what has the focus, in pixels; in a drawing it is the line around the
# shape.
RING = """() => {
    let at = document.activeElement;
    while (at.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
    const width = (style) => style.outlineStyle === 'none' ? 0 : parseFloat(style.outlineWidth);
    const lines = [...at.querySelectorAll('.edge')].map((line) => parseFloat(getComputedStyle(line).strokeWidth));
    return Math.max(width(getComputedStyle(at)), ...(at instanceof SVGElement ? lines : []));
}"""


@pytest.mark.parametrize(("name", "choice"), CHOICES)
def test_what_the_tab_key_leads_to_has_a_ring(
    seen: Callable[..., Mounted], name: str, choice: dict[str, Any]
) -> None:
    page = seen(name, SHORT, **choice).page
    to_start(page)
    rings: dict[str, float] = {}
    while (at := press(page, "Tab")) and at not in rings:
        rings[at] = page.evaluate(RING)
    assert rings
    assert {at: ring for at, ring in rings.items() if ring < 2} == {}


# Where the keys stand in a view: what has the focus, the row of a list that is the active one, and
# what is said aloud.
STANDING = """() => {
    const root = [...document.querySelectorAll('*')].map((one) => one.shadowRoot?.querySelector('.root')).find((one) => one);
    const at = root.getRootNode().activeElement;
    return [[...root.querySelectorAll('*')].indexOf(at), at?.getAttribute('aria-activedescendant'),
        root.querySelector(':scope > .aloud')?.textContent];
}"""


@pytest.mark.parametrize(
    ("name", "part", "forth"),
    [(name, part, forth) for name, view in VIEWS.items() for part, forth in view.walks.items()],
)
def test_home_and_end_lead_to_the_ends_of_what_keys_walk(
    seen: Callable[..., Mounted], name: str, part: str, forth: str
) -> None:
    page = seen(name, SHORT).page

    def standing(key: str) -> list[Any]:
        page.keyboard.press(key)
        page.evaluate(FRAMES)
        return list(page.evaluate(STANDING))

    walked = page.locator(f".root {part}")
    (
        walked
        if walked.get_attribute("tabindex") == "0"
        else walked.locator("[tabindex='0']").first
    ).focus()
    for _ in range(9 * (name == "circuit_graph")):
        standing("ArrowDown")  # to the tokens: in a line above them there may be a single box
    end = standing("End")
    assert standing("End") == end
    if forth:
        assert standing(forth) == end
    home = standing("Home")
    assert home != end
    assert standing("Home") == home
    assert standing("End") == end, "and back"


def test_every_view_that_listens_to_keys_is_walked() -> None:
    listening = {
        script.parent.name
        for script in kit.FOLDER.parent.glob("*/*.js")
        if "onKeys(" in script.read_text("utf-8")
    }
    assert {name for name, view in VIEWS.items() if view.walks} == listening - {"kit"}


# Mounts a view and takes it away, so many times.
REMOUNTED = """async ({ payload, times }) => {
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    for (let i = 0; i < times; i++) {
        window.replace();
        window.show(payload);
        await frame();
        await frame();
    }
    window.replace();
    window.sent.length = 0;
}"""


@pytest.mark.parametrize("name", sorted({*VIEWS, UNSEEN}))
def test_a_view_that_is_taken_away_leaves_nothing(
    mounted: Callable[..., Mounted], hostile: Callable[[int], LanguageModel], name: str
) -> None:
    lm = hostile(SHORT)
    payload = (
        page_helpers.payload(step="a", presents=True)
        if name == UNSEEN
        else VIEWS[name].payload(lm, 0)
    )
    page = mounted(name, payload, alone=True).page
    page.evaluate(REMOUNTED, {"payload": encoded(payload), "times": 3})
    before = memory(page)
    page.evaluate(REMOUNTED, {"payload": encoded(payload), "times": 10})

    def is_let_go() -> bool:  # what is garbage may be collected a little later
        after = memory(page)
        return (
            after["listeners"] <= before["listeners"] + 2 and after["nodes"] <= before["nodes"] + 20
        )

    wait_until(is_let_go)


# Shows two payloads in turn, and touches one part of the view after each.
REDRAWN = """async ({ payloads, touched, times }) => {
    const root = [...document.querySelectorAll('*')].map((one) => one.shadowRoot?.querySelector('.root')).find((one) => one);
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    for (let i = 0; i < times; i++) {
        window.show(payloads[i % 2]);
        const parts = [...root.querySelectorAll(touched)], one = parts[(7 * i) % parts.length];
        const { left, top, width, height } = one.getBoundingClientRect();
        const at = { clientX: left + width * ((i / 7) % 1), clientY: top + height * ((i / 5) % 1) };
        for (const kind of ['pointerover', 'pointermove', 'pointerdown', 'pointerup', 'click']) {
            one.dispatchEvent(new PointerEvent(kind, { bubbles: true, composed: true, ...at }));
        }
        if (one.localName === 'input') {
            one.value = Number(one.min) + (one.max - one.min) * ((i / 3) % 1);
            one.dispatchEvent(new Event('input', { bubbles: true }));
        }
        one.focus?.();
        await frame();
    }
    for (const payload of payloads) window.show(payload);
    await frame();
    await frame();
    window.sent.length = 0;
}"""


@pytest.mark.parametrize("name", sorted(VIEWS.keys() - {"figure_tools"}))
def test_many_redraws_leave_no_memory(
    seen: Callable[..., Mounted], hostile: Callable[[int], LanguageModel], name: str
) -> None:
    page = seen(name, alone=True).page
    view = VIEWS[name]
    payloads = [encoded(view.payload(hostile(LONG), turn)) for turn in (0, 1)]
    task = {"payloads": payloads, "touched": view.touched, "times": 12}
    page.evaluate(REDRAWN, task)
    before = memory(page)
    page.evaluate(REDRAWN, task)
    after = memory(page)
    assert after["listeners"] <= before["listeners"] + 8
    assert after["nodes"] <= before["nodes"] + 80
    assert after["heap"] <= before["heap"] + 400_000
