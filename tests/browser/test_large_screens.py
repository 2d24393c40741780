"""On a large screen a page is drawn larger as a whole: its type, its views and its figures."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.machinery import PATIENCE, Visit, box_of

pytestmark = pytest.mark.browser

# The pixels of the smallest type of the figures of a page, and the height of the first.
OF_FIGURES = """() => {
    const texts = [...document.querySelectorAll('.js-plotly-plot text')].filter((one) => one.textContent);
    const figure = document.querySelector('.js-plotly-plot .main-svg');
    return [Math.min(...texts.map((one) => parseFloat(getComputedStyle(one).fontSize))), figure.getBoundingClientRect().height];
}"""


@pytest.mark.full
@pytest.mark.parametrize(("width", "height", "times"), [(1280, 720, 1), (3840, 2160, 2.25)])
def test_figures_are_as_large_as_the_page(
    standing: Visit, width: int, height: int, times: float
) -> None:
    standing.page.set_viewport_size({"width": width, "height": height})
    standing.go("positions")
    page = standing.drawn()
    smallest = f"({OF_FIGURES})()[0] >= {12 * times - 0.1}"
    page.wait_for_function(smallest, timeout=1_000 * PATIENCE)
    standing.settle()
    size = page.evaluate("parseFloat(getComputedStyle(document.documentElement).fontSize)")
    assert size == pytest.approx(16 * times, rel=0.03)
    assert page.evaluate(OF_FIGURES)[1] >= 200 * times
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= width
    expect(page.get_by_test_id("stException")).to_have_count(0)


@pytest.mark.parametrize(
    ("width", "height"), [pytest.param(390, 800, marks=pytest.mark.full), (3840, 2160)]
)
def test_suggestions_stand_in_one_line_with_whole_titles(
    standing: Visit, width: int, height: int
) -> None:
    standing.page.set_viewport_size({"width": width, "height": height})
    page = standing.go("attention")  # a page without any figure
    # Streamlit draws each twice: one of them for a phone
    buttons = page.locator(".st-key-suggestions button:visible")
    expect(buttons.first).to_be_visible()
    standing.settle()
    tops = buttons.evaluate_all("all => all.map((one) => one.getBoundingClientRect().top)")
    assert len(set(tops)) == 1
    for button in buttons.all():
        assert button.evaluate(
            "e => [e, ...e.querySelectorAll('*')].every((one) => one.scrollWidth <= "
            "one.clientWidth + 1)"
        )


def test_the_strength_of_an_adapter_and_edits_stand_in_the_line_of_the_model(
    standing: Visit,
) -> None:
    page = standing.go(
        "attention", model="finetune-lora", edits="adapter=0.5,blocks.0.attention.head.1=zero"
    )
    bar = page.locator(".st-key-one-line-subject")
    expect(bar.get_by_role("button", name="Take all away")).to_be_visible()
    assert box_of(bar)["height"] < 64, "one line"
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth <= innerWidth")
    prompt = box_of(page.locator(".st-key-prompt textarea"))
    assert prompt["width"] > 160, "some words of the prompt can be read"
