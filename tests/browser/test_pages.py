"""Every page in a real browser, as a stranger opens it."""

from __future__ import annotations

import re
import socket
from typing import Literal
from urllib.parse import urlparse

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from gptviz.runs import checkpoints
from gptviz.text import WordTokenizer
from gptviz.ui.menu import PAGES as RECORDS
from gptviz.ui.shell.frame import default_model
from tests.browser.machinery import PAGES, WORDS, Server, Visit, box_of, check_width, visiting
from tests.browser.test_words_of_charts import CHARTS, FAULTS
from tests.tiny import scrambled, tiny

pytestmark = pytest.mark.browser

PHONE: ViewportSize = {"width": 390, "height": 844}
LAPTOP: ViewportSize = {"width": 1280, "height": 800}
HOSTILE = "<img src=x onerror=\"document.title='pwned'\"> **bold** $x$ \u202eolleh\u200b"
# All text in sight but what stands in a box for text: that of the page and of the views made by
# hand.
TEXT = """() => {
    const roots = [...document.querySelectorAll('*')].map((one) => one.shadowRoot).filter((root) => root);
    return [document.querySelector('[data-testid=stMain]').innerText, ...roots.map((root) => root.textContent)].join(' ');
}"""

# What a page is about is chosen above its answer, and what plays a text stands there.
ABOUT_WHAT = {"View", "Model watched", "Chart", "Temperature"} | {
    *("Second text", "Right answer", "Wrong answer"),
}
# The labels of a page's own controls that stand above the sentence which answers its title.
CONTROLS_ABOVE_ANSWER = """() => {
    const top = (one) => one.getBoundingClientRect().top;
    const answer = top(document.querySelector("[class*=st-key-answer-]"));
    const subject = ".st-key-page-head, .st-key-one-line-subject, .st-key-about-the-model";
    return [...document.querySelectorAll("[data-testid=stMain] [data-testid=stWidgetLabel]")]
        .filter((one) => one.checkVisibility() && !one.closest(subject) && top(one) < answer)
        .map((one) => one.innerText);
}"""


def check_frame(page: Page, path: str) -> None:
    """The menu of the app, a question as the title, a model to choose: whatever the address the app
    was opened by.
    """
    sidebar = page.get_by_test_id("stSidebar")
    expect(
        sidebar.get_by_role("link", name=list(RECORDS.values())[-1].title, exact=True)
    ).to_be_visible()
    links = re.findall(r'- link "(.*)"', sidebar.aria_snapshot())
    assert {one.title for one in RECORDS.values()} <= set(links)
    expect(page.get_by_role("heading", level=1)).to_contain_text("?")
    if RECORDS[path or "home"].has_model:
        expect(page.get_by_role("combobox", name=re.compile(r"Model\b"))).to_be_visible()
    expect(page.get_by_test_id("stSidebarNav")).to_have_count(0)


# Each file of browser tests starts a server and opens another page first; these differ in what they
# import and compute first.
@pytest.mark.full
@pytest.mark.parametrize("path", ["", "next_token", "classify", "train", "lens", "open_model"])
def test_a_deep_link_on_a_cold_server_opens_the_page_in_its_frame(
    browser: Browser, cold_server: Server, path: str
) -> None:
    with visiting(browser, cold_server) as visit:
        check_frame(visit.open(path), path)


@pytest.mark.full
def test_a_typed_prompt_of_any_length_follows_to_other_pages_and_comes_back(visit: Visit) -> None:
    page = visit.open("next_token", prompt="O Romeo")
    box = page.get_by_role("textbox", name=re.compile("Prompt"))
    for text, address in (
        ("My kingdom for a hors", "prompt=My"),
        ("Быть или не быть " * 4_200, "prompt=kept-"),
    ):
        box.fill(text)
        box.press("Control+Enter")
        page.wait_for_url(re.compile(address))
        visit.settle()
        for title in ("Embeddings", "Next token"):
            page.mouse.move(0, 0)  # away from the last link, whose help lies over the next one
            page.get_by_test_id("stSidebar").get_by_role("link", name=title, exact=True).click()
            expect(page).to_have_title(f"{title} · gptviz")
            expect(box).to_have_value(text)
            expect(page).to_have_url(re.compile(address))
            visit.settle()
    page.reload()
    visit.settle()
    expect(box).to_have_value(text)
    page.go_back()
    expect(page).to_have_title("Embeddings · gptviz")
    expect(box).to_have_value(text)


@pytest.mark.full
def test_two_browsers_do_not_disturb_each_other(browser: Browser, server: Server) -> None:
    with visiting(browser, server) as one, visiting(browser, server) as other:
        first = one.open("next_token", prompt="one")
        second = other.open("next_token", prompt="other")
        box = first.get_by_role("textbox", name=re.compile("Prompt"))
        box.fill("one more")
        box.press("Control+Enter")
        first.wait_for_url(re.compile("prompt=one\\+more"))
        one.settle()
        expect(second.get_by_role("textbox", name=re.compile("Prompt"))).to_have_value("other")
        expect(box).to_have_value("one more")


def test_a_link_reopens_what_is_on_screen(standing: Visit) -> None:
    page = standing.go("attention", prompt="O Romeo", block=1, head=3, log="true")
    chosen = page.locator(".head[aria-pressed=true]")
    expect(chosen).to_have_attribute("aria-label", re.compile("block 1, head 3"))
    chosen.press("ArrowLeft")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("head=2|attention(?!.*head=)"))
    standing.settle()
    address = page.url
    page.goto(address)
    standing.settle()
    expect(chosen).to_have_attribute("aria-label", re.compile("block 1, head 2"))
    expect(page.get_by_role("button", name="Log colours")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("textbox", name=re.compile("Prompt"))).to_have_value("O Romeo")


# The top of the first large view of a page, as a step of a lesson finds it
# (components/page_helpers).
TOP = """(what) => {
    const letter = parseFloat(getComputedStyle(document.documentElement).fontSize);
    const main = document.querySelector('[data-testid=stMain]');
    const views = main.querySelectorAll(what);
    const boxes = [...views].map((one) => one.getBoundingClientRect());
    const large = boxes.filter((box) => box.height >= 10 * letter && box.width >= 7 * letter);
    return large.length ? Math.min(...large.map((box) => box.top)) : null;
}"""
CHART = "[data-testid=stPlotlyChart]"
# Pages without a picture begin with links. The picture of Runs
# is the chart beside its table.
UNPICTURED: dict[str, Literal["link", "textbox"]] = {"lessons": "link", "open_model": "textbox"}


def check_text_is_text(page: Page) -> None:
    """No markup in the prompt was obeyed."""
    assert page.title() != "pwned"
    assert page.locator("img[src=x]").count() == 0


# One look at each page holds it to all of this: opening it is what takes time.
@pytest.mark.parametrize("path", PAGES)
def test_a_page_opens_in_its_frame_its_picture_high_on_the_page_its_words_apart_and_fits_a_phone_whatever_the_prompt(
    deep: Server, standing: Visit, path: str
) -> None:
    record = RECORDS[path or "home"]
    has_charts = record in CHARTS
    subject = (
        {"model": "deep", "prompt": WORDS}
        if has_charts
        else {"model": default_model(record)}
        if record.has_model
        else {}
    )
    # that model has neither steps of a training nor a dictionary
    if path in ("over_training", "features"):
        subject = {"model": default_model(record)}
    standing.page.set_viewport_size(LAPTOP)
    page = standing.go(path, **subject)
    check_frame(page, path)
    standing.drawn()
    if path in UNPICTURED:
        top = box_of(page.get_by_test_id("stMain").get_by_role(UNPICTURED[path]).first)["y"]
    else:
        what = CHART if path == "runs" else f".stBidiComponent, [data-testid=stDataFrame], {CHART}"
        top = page.evaluate(TOP, what)
    assert top is not None
    assert top <= 0.42 * 800
    # what every page has above its own first control, from the first line of its title
    if (bar_of_model := page.locator(".st-key-about-the-model")).count():
        bar = box_of(bar_of_model)
        title = box_of(page.get_by_role("heading", level=1))
        assert bar["y"] + bar["height"] - title["y"] <= 110
    if has_charts:
        assert page.evaluate(FAULTS) == []
    page.set_viewport_size(PHONE)
    standing.drawn()
    check_width(page)
    # the answer to the title stands above the controls of the page
    if page.locator("[class*=st-key-answer-]").count():
        assert set(page.evaluate(CONTROLS_ABOVE_ANSWER)) <= ABOUT_WHAT
    prompt = page.get_by_test_id("stMain").get_by_role("textbox", name=re.compile("Prompt"))
    if prompt.count():
        prompt.fill(HOSTILE)
        prompt.press("Control+Enter")
        standing.drawn()
        check_text_is_text(page)
        check_width(page)


def test_what_the_heads_of_a_model_from_elsewhere_may_read_stands_in_one_line_above_a_picture_high_on_the_page(
    server: Server, standing: Visit
) -> None:
    tokenizer = WordTokenizer(WORDS.split())
    model = scrambled(tiny(vocab_size=tokenizer.vocab_size, n_layer=12, context_length=32))
    checkpoints.save(
        "elsewhere", model, tokenizer, {"imported_from": "elsewhere"}, root=server.checkpoints
    )
    standing.page.set_viewport_size(LAPTOP)
    standing.go("heads", model="elsewhere", prompt=WORDS)
    assert standing.drawn().evaluate(TOP, ".stBidiComponent") <= 0.42 * 800


# A byte-pair encoding has tokens for every text: it is on the page, and not in the box for the
# prompt alone.
def test_a_hostile_prompt_stays_text_where_its_tokens_are_shown(standing: Visit) -> None:
    page = standing.page
    for path in ("", "generate", "attention", "next_token"):
        page.set_viewport_size(LAPTOP)
        standing.go(path, prompt=HOSTILE, model="bpe")
        standing.drawn()
        assert "img" in page.evaluate(TEXT)
        check_text_is_text(page)
        page.set_viewport_size(PHONE)
        standing.drawn()
        check_width(page)


def test_model_step_and_prompt_stay_in_sight_and_the_prompt_unfolds(standing: Visit) -> None:
    standing.page.set_viewport_size(LAPTOP)
    page = standing.go("next_token", model="generator")
    model = page.get_by_role("combobox", name=re.compile(r"Model\b"))
    step = page.get_by_role("slider", name="Training step")
    box = page.get_by_role("textbox", name=re.compile("Prompt"))
    line = box_of(box)
    box.focus()
    unfolded = box_of(box)
    assert unfolded["height"] > line["height"] + 20, "several lines are seen while it is edited"
    page.evaluate("document.querySelector('[data-testid=stMain]').scrollTop = 400")
    for control, line in ((model, 60), (box, 60), (step, 100)):
        place = box_of(control)
        assert 0 <= place["y"] < line
    # Nothing lies over it.
    assert page.evaluate(
        "y => document.elementFromPoint(640, y).closest('.st-key-one-line-subject') !== null",
        box_of(model)["y"] + box_of(model)["height"] / 2,
    )


def test_a_prompt_that_is_not_edited_shows_its_line_breaks_and_is_whole_in_its_tooltip(
    standing: Visit,
) -> None:
    prompt = "O Romeo,\n" + "and Juliet " * 30
    page = standing.go("next_token", model="generator", prompt=prompt)
    box = page.get_by_role("textbox", name=re.compile("Prompt"))
    expect(box).to_have_attribute("title", prompt)
    line = (
        "e => { const a = getComputedStyle(e.parentElement, '::after'); return [a.content, "
        "a.textOverflow]; }"
    )
    content, overflow = box.evaluate(line)
    assert content.startswith('"O Romeo, ⏎ and Juliet')
    assert overflow == "ellipsis"
    box.focus()
    assert box.evaluate(line)[0] == "none", "while it is edited the text itself is seen"


def test_a_menu_that_is_shut_is_a_rail_of_icons_and_a_folded_group_stays_folded(
    standing: Visit,
) -> None:
    page = standing.go("gradients")
    sidebar = page.get_by_test_id("stSidebar")
    main = page.get_by_test_id("stMain")
    sidebar.get_by_text("From outside").click()
    standing.settle()
    expect(sidebar.get_by_role("link", name="Home")).to_be_hidden()
    sidebar.get_by_role("link", name="Embeddings").click()
    expect(page).to_have_title("Embeddings · gptviz")
    standing.settle()
    expect(sidebar.get_by_role("link", name="Home")).to_be_hidden()
    sidebar.hover()
    page.get_by_test_id("stSidebarCollapseButton").get_by_role("button").click()
    page.mouse.move(640, 400)
    expect(page.get_by_test_id("stExpandSidebarButton")).to_be_in_viewport()
    page.wait_for_function(
        "document.querySelector('[data-testid=stMain]').getBoundingClientRect().left < 60"
    )
    left = box_of(main)
    link = sidebar.get_by_role("link", name="Attention")
    place = box_of(link)
    assert place["x"] < left["x"], "its icon is in sight"
    link.focus()
    content = box_of(page.get_by_test_id("stSidebarContent"))
    assert content["width"] > 200, "with the focus it unfolds"
    assert box_of(main) == left, "over the page, which stays as it is"
    page.keyboard.press("Enter")
    expect(page).to_have_title("Attention · gptviz")
    standing.settle()
    page.get_by_test_id("stExpandSidebarButton").click()
    sidebar.get_by_text("From outside").click()
    expect(sidebar.get_by_role("link", name="Home")).to_be_visible()
    standing.settle()


# All pages are made narrow in a test above, and their states in test_accessibility.py; these have
# views that lay themselves out as they open, or are not in sight there.
NARROW: list[tuple[str, dict[str, str]]] = [
    *(
        (path, {})
        for path in ("generate", "lens", "", "attention", "next_token", "circuit", "patching")
    ),
    ("translate", {"view": "Next token", "prompt": "may the 3rd " * 8}),
    ("embeddings", {"model": "generator", "step": "0", "trail": "true"}),
]


@pytest.mark.parametrize(
    ("path", "query"),
    [*NARROW[:2], *(pytest.param(*one, marks=pytest.mark.full) for one in NARROW[2:])],
)
def test_nothing_sticks_out_on_a_phone(standing: Visit, path: str, query: dict[str, str]) -> None:
    standing.page.set_viewport_size(PHONE)
    standing.go(path, **query)
    check_width(standing.drawn())


def reaches(host: str, port: int) -> bool:
    """Whether something answers there."""
    with socket.socket() as probe:
        probe.settimeout(5)
        return probe.connect_ex((host, port)) == 0


def test_the_server_answers_on_this_machine_alone(server: Server) -> None:
    # 127.0.0.2 is another address of the same machine: what listens for other machines as well
    # answers there too.
    with socket.create_server(("0.0.0.0", 0)) as open_to_all:
        if not reaches("127.0.0.2", open_to_all.getsockname()[1]):
            pytest.skip("this system has one loopback address")
    port = urlparse(server.url).port
    assert port is not None
    assert reaches("127.0.0.1", port)
    assert not reaches("127.0.0.2", port)
