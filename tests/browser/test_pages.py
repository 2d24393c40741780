"""Every page in a real browser, as a stranger opens it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.machinery import PAGES, Server, Visit, check_on_a_phone

pytestmark = pytest.mark.browser

READING = ("Home", "Generate", "Attention", "Next token", "Positions", "Embeddings")
MENU = (*READING, "Classify", "Translate", "Gradients", "Train", "Runs")
# The pages that read the prompt with one model.
READERS = [path for path in PAGES if path not in ("train", "runs", "gradients")]
HOSTILE = "<img src=x onerror=\"document.title='pwned'\"> **bold** $x$ \u202eolleh\u200b"


@pytest.mark.parametrize("path", PAGES)
def test_a_deep_link_on_a_cold_server_opens_the_page_in_its_frame(browser: Browser, cold_server: Server, path: str) -> None:
    visit = Visit.begin(browser, cold_server)
    page = visit.open(path)
    sidebar = page.get_by_test_id("stSidebar")
    for title in MENU:
        expect(sidebar.get_by_role("link", name=title, exact=True)).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_contain_text("?")
    if path != "gradients":  # which makes models of its own
        expect(page.get_by_role("combobox", name=re.compile("Model"))).to_be_visible()
    expect(page.get_by_test_id("stSidebarNav")).to_have_count(0)
    wrong = visit.wrong()
    visit.close()
    assert not wrong, "\n".join(wrong)


def test_a_typed_prompt_reaches_the_url_and_follows_to_every_page(visit: Visit) -> None:
    page = visit.open("next_token")
    box = page.get_by_role("textbox", name=re.compile("Prompt"))
    box.fill("My kingdom for a hors")
    box.press("Control+Enter")
    page.wait_for_url(re.compile("prompt=My"))
    visit.settle()
    for title in READING:
        page.get_by_test_id("stSidebar").get_by_role("link", name=title, exact=True).click()
        expect(page).to_have_title(f"{title} · gptviz")
        expect(page.get_by_role("textbox", name=re.compile("Prompt"))).to_have_value("My kingdom for a hors")
        expect(page).to_have_url(re.compile("prompt=My"))
        visit.settle()


def test_generation_steps_undoes_and_plays(visit: Visit) -> None:
    page = visit.open("generate", prompt="ROMEO:")
    chips = page.locator(".run.strong button.chip")
    expect(page.locator(".stage .chip.current")).to_be_visible()
    count = chips.count()
    assert count > 1
    page.get_by_role("button", name="Step").click()
    expect(chips).to_have_count(count + 1)
    page.get_by_role("button", name="Undo").click()
    expect(chips).to_have_count(count)
    page.get_by_role("button", name="Play", exact=True).click()
    expect(chips).not_to_have_count(count)
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()


def test_a_guess_on_home_joins_the_prompt(visit: Visit) -> None:
    page = visit.open("", prompt="ROMEO")
    guess = page.locator('[data-guess="0"]')
    token = guess.inner_text().strip()[0]
    guess.click()
    expect(page.get_by_role("textbox", name=re.compile("Prompt"))).not_to_have_value("ROMEO")
    assert page.get_by_role("textbox", name=re.compile("Prompt")).input_value().startswith("ROMEO" + token.replace("␣", " "))


def test_a_link_reopens_what_is_on_screen(visit: Visit) -> None:
    page = visit.open("attention", prompt="O Romeo", block=1, head=3, log="true")
    chosen = page.locator(".head[aria-pressed=true]")
    expect(chosen).to_have_attribute("aria-label", re.compile("block 1, head 3"))
    chosen.press("ArrowLeft")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("head=2|attention(?!.*head=)"))
    visit.settle()
    address = page.url
    page.goto(address)
    visit.settle()
    expect(chosen).to_have_attribute("aria-label", re.compile("block 1, head 2"))
    expect(page.get_by_role("button", name="Log colours")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("textbox", name=re.compile("Prompt"))).to_have_value("O Romeo")


def test_a_link_with_an_impossible_model_says_so_and_shows_another(visit: Visit) -> None:
    page = visit.open("attention", model="../../etc/passwd", block=99)
    expect(page.get_by_text("The link asks for model")).to_be_visible()
    expect(page.get_by_text("The link asks for block")).to_be_visible()
    expect(page.get_by_role("combobox", name=re.compile("Model"))).to_be_visible()


@pytest.mark.parametrize("path", PAGES)
def test_a_hostile_prompt_stays_text(visit: Visit, path: str) -> None:
    page = visit.open(path, prompt=HOSTILE)
    page.wait_for_timeout(500)
    assert page.title() != "pwned"
    assert page.locator("img[src=x]").count() == 0


@pytest.mark.parametrize("path", READERS)
@pytest.mark.parametrize("prompt", ["", "🙂", "שלום עולם", "x" * 600])
def test_an_odd_prompt_gets_a_message_and_the_page_stays(visit: Visit, path: str, prompt: str) -> None:
    # An empty value in the address is the default, so the empty prompt is typed.
    page = visit.open(path, prompt=prompt or "x")
    if not prompt:
        box = page.get_by_role("textbox", name=re.compile("Prompt"))
        box.fill("")
        box.press("Control+Enter")
        visit.settle()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    if path not in ("positions", "embeddings"):
        expect(page.get_by_test_id("stAlert").first).to_be_visible()


@pytest.mark.parametrize("path", PAGES)
def test_nothing_sticks_out_on_a_phone(browser: Browser, server: Server, path: str) -> None:
    check_on_a_phone(browser, server, path)


def test_two_browsers_do_not_disturb_each_other(browser: Browser, server: Server) -> None:
    one, other = Visit.begin(browser, server), Visit.begin(browser, server)
    first, second = one.open("next_token", prompt="one"), other.open("next_token", prompt="other")
    box = first.get_by_role("textbox", name=re.compile("Prompt"))
    box.fill("one more")
    box.press("Control+Enter")
    one.settle()
    expect(second.get_by_role("textbox", name=re.compile("Prompt"))).to_have_value("other")
    expect(box).to_have_value("one more")
    wrong = one.wrong() + other.wrong()
    one.close()
    other.close()
    assert not wrong, "\n".join(wrong)


def test_the_server_answers_on_this_machine_alone(server: Server) -> None:
    from streamlit import config

    assert server.url.startswith("http://127.0.0.1:")
    assert config.get_option("server.address") == "127.0.0.1"
