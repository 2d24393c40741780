"""Printing: the sheet has what the page shows, as wide as the sheet, and nothing that waits for a
click.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from gptviz.lessons.library import SHIPPED, library
from gptviz.takehome.page import read_page
from gptviz.takehome.page_file import as_html
from gptviz.ui.views.one_unit import MOST_ROWS
from tests.browser.machinery import PATIENCE, Visit, box_of

pytestmark = pytest.mark.browser

# Pixels of an A4 sheet between margins of 1 cm.
SHEET = 718
# Figures and views that are seen: their boxes, and what of each is cut by a box around it or
# reaches out of the sheet.
LARGE = """(sheet) => {
    const views = [...document.querySelectorAll('*')].map((one) => one.shadowRoot?.querySelector('.root'));
    const drawn = [...document.querySelectorAll('.svg-container'), ...views].filter((one) => one?.checkVisibility())
        .filter((one) => one.getBoundingClientRect().height > 20);
    const boxes = drawn.map((one) => one.getBoundingClientRect());
    const meet = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2
        && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2;
    return {
        count: boxes.length,
        widest: Math.max(...boxes.map((box) => box.width)),
        beyond: boxes.filter((box) => box.left < -1 || box.right > sheet + 1),
        meeting: boxes.flatMap((box, i) => boxes.slice(0, i).filter((other) => meet(box, other))),
    };
}"""

# On a busy machine the last figures of a file come after the first.
FIGURES_ARE_DRAWN = (
    "[...document.querySelectorAll('.figure')].every((one) => one.querySelector('.svg-container'))"
)


# What is told of a new size is told no more once the page stands on paper.
UNHEARD = """
const Observer = globalThis.ResizeObserver;
globalThis.ResizeObserver = class extends Observer {
    constructor(tell) {
        super((...sizes) => globalThis.onPaper || tell(...sizes));
    }
};
addEventListener(
    'resize', (event) => globalThis.onPaper && event.stopImmediatePropagation(), { capture: true }
);
"""


def print_on_a4(page: Page) -> None:
    """Print the page, which notes how large it is drawn, and show it as it is on the sheet.

    A sheet is no smaller window: figures are not told that the size has changed, as they are not
    told of a printer's. The page was opened with `UNHEARD`.
    """
    page.wait_for_function(FIGURES_ARE_DRAWN)
    page.evaluate("globalThis.onPaper = true")
    page.pdf(format="A4")
    page.emulate_media(media="print")
    page.set_viewport_size({"width": SHEET, "height": 1047})
    page.evaluate(
        "new Promise((laidOut) => requestAnimationFrame(() => requestAnimationFrame(laidOut)))"
    )


def check_sheet(page: Page) -> None:
    """Figures and views fill the sheet, do not run out of it, and do not lie on each other."""
    drawn = page.evaluate(LARGE, SHEET)
    assert drawn["count"]
    assert drawn["widest"] > SHEET / 2
    assert drawn["beyond"] == []
    assert drawn["meeting"] == []


@pytest.mark.parametrize("window", [1280, pytest.param(2560, marks=pytest.mark.full)])
@pytest.mark.parametrize("name", ["attention", "attribution"])
def test_a_page_of_the_app_fits_the_sheet_and_leaves_the_menu_away(
    visit: Visit, name: str, window: int
) -> None:
    visit.page.add_init_script(UNHEARD)
    visit.page.set_viewport_size({"width": window, "height": window * 9 // 16})
    page = visit.open(
        name, model="sentences", prompt="When Mary and John went to the shop, John gave a book to"
    )
    visit.drawn()
    print_on_a4(page)
    check_sheet(page)
    for away in ("stSidebar", "stHeader", "stButton", "stPopover", "stTooltipIcon"):
        assert not any(one.is_visible() for one in page.get_by_test_id(away).all())
    assert not any(one.is_visible() for one in page.locator(".tool").all())
    assert not page.get_by_text("Try this").is_visible()
    prompt = page.locator(".st-key-prompt textarea")
    assert prompt.evaluate(
        "one => one.scrollWidth <= one.clientWidth && one.scrollHeight <= one.clientHeight"
    )


def test_a_step_of_a_lesson_is_printed_with_its_text_its_question_and_its_page(
    visit: Visit,
) -> None:
    visit.page.add_init_script(UNHEARD)
    visit.page.set_viewport_size({"width": 1280, "height": 800})
    page = visit.open("positions", model="ladder-8", lesson="06-positions", lesson_step=1)
    visit.drawn()
    print_on_a4(page)
    check_sheet(page)
    step = library(SHIPPED).lessons["06-positions"].steps[0]
    title = page.get_by_role("heading", name=step.title)
    question = page.locator(".st-key-question-0")
    expect(title).to_be_visible()
    expect(question).to_be_visible()
    main = box_of(page.get_by_test_id("stMain"))
    lesson = box_of(page.locator(".st-key-lesson"))
    assert lesson["width"] > SHEET * 0.8
    assert lesson["y"] + lesson["height"] <= main["y"] + 1, "above its page, whole"
    expect(page.get_by_role("link", name="Next", exact=True)).not_to_be_visible()


def test_a_table_that_scrolls_on_a_page_of_the_app_is_printed_whole(visit: Visit) -> None:
    visit.page.add_init_script(UNHEARD)
    page = visit.open("runs")
    visit.drawn()
    grid = page.get_by_test_id("stDataFrame").first
    whole = page.locator(".on-paper").first
    assert grid.is_visible()
    assert not whole.is_visible()
    print_on_a4(page)
    assert not grid.is_visible()
    assert whole.is_visible()
    names = whole.locator("tbody td:first-child").all_inner_texts()
    assert {"shakespeare", "sentences", "ladder-8"} <= set(names)
    bottom = whole.evaluate("one => one.getBoundingClientRect().bottom")
    assert (
        page.get_by_role("figure", name=re.compile("Validation loss")).evaluate(
            "one => one.getBoundingClientRect().top"
        )
        >= bottom
    )
    check_sheet(page)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The page Neurons as a file: figures, views, and a table that scrolls."""
    path = tmp_path / "neurons.html"
    path.write_text(as_html(read_page("neurons", {"model": "shakespeare"})), "utf-8")
    return path


def test_a_file_fits_the_sheet_with_all_rows_of_its_tables_in_light_colours(
    browser: Browser, file: Path
) -> None:
    context = browser.new_context(
        offline=True, viewport={"width": 1280, "height": 900}, color_scheme="dark"
    )
    page = context.new_page()
    page.set_default_timeout(1_000 * PATIENCE)
    page.add_init_script(UNHEARD)
    page.goto(file.as_uri())
    page.locator(".figure .main-svg").first.wait_for()
    page.wait_for_function(
        "document.querySelectorAll('[data-view]:not([data-shown])').length === 0"
    )
    print_on_a4(page)
    check_sheet(page)
    table = page.locator(".table")
    assert table.evaluate(
        "one => one.scrollHeight <= one.clientHeight && one.scrollWidth <= one.clientWidth"
    )
    assert table.locator("tbody tr").count() == MOST_ROWS
    assert not any(one.is_visible() for one in page.locator("details").all())
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    context.close()
