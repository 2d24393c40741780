"""No page has a serious finding of axe-core, light and dark, the views made by hand and all that is
folded included.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Browser

from gptviz.components.token_strip import Token, payload
from gptviz.ui.menu import PAGES as RECORDS
from tests.browser.axe import COLOURS, darken, everywhere, findings
from tests.browser.machinery import PAGES, Server, Visit, check_width, going_on, visiting
from tests.browser.mounting import Mounted
from tests.browser.test_words_of_charts import CHARTS, FAULTS
from tests.examples import quick

pytestmark = pytest.mark.browser

# The page that `make test` opens.
QUICK = "next_token"
# What a popover with one of these names holds is the same on every page about the same kind of
# model, but for the address of the page: it is opened on one page of each kind, and where a page
# has something else under such a name.
SHARED = re.compile("Share|All")
SHOWN_ON = ("", "classify", "translate", "train", "runs")
# Where popovers are opened in the dark too. These pages have those of all pages, and all that are
# of one page alone.
DARK_POPOVERS = ("train", "runs")
# What pages show but do not open with.
OPENED: list[tuple[str, dict[str, Any]]] = [
    *((page.name, dict(state)) for page in RECORDS.values() for state in page.states),
    ("positions", {"model": "ladder-8", "lesson": "06-positions", "lesson_step": 2}),
    ("attention", {"present": 1}),
    ("next_token", {"model": "../no such model", "top_k": "many"}),
    ("lens", {"model": "bpe", "prompt": "\x00 "}),
]


def of_model(path: str) -> dict[str, str]:
    """The model, of words, that a page with charts of a model is opened with: the words of its
    charts are looked at too.
    """
    return {"model": "sentences"} if RECORDS[path or "home"] in CHARTS else {}


@pytest.mark.parametrize("path", quick(PAGES, QUICK))
def test_no_page_has_a_serious_finding(standing: Visit, path: str) -> None:
    left_out = None if path in SHOWN_ON else SHARED
    standing.page.set_viewport_size({"width": 1280, "height": 800})
    standing.go(path, **of_model(path))
    found = standing.drawn().evaluate(FAULTS) if of_model(path) else []
    found += everywhere(standing, left_out)
    darken(standing)
    found += (
        everywhere(standing, only=COLOURS)
        if path in DARK_POPOVERS
        else findings(standing.page, only=COLOURS)
    )
    assert not found, "\n\n".join(found)


@pytest.mark.full
@pytest.mark.parametrize(("path", "query"), OPENED)
def test_nothing_that_is_opened_has_one_and_it_fits_a_phone(
    browser: Browser, server: Server, path: str, query: dict[str, Any]
) -> None:
    # A lesson and the view for a class stay with the session: one of its own ends with them.
    begun = visiting if query.keys() & {"lesson", "present"} else going_on
    with begun(browser, server) as visit:
        visit.page.set_viewport_size({"width": 1280, "height": 800})
        page = visit.go(path, **of_model(path) | query)
        found = findings(visit.drawn())
        if of_model(path):
            found += page.evaluate(FAULTS)
        darken(visit)
        found += findings(page, only=COLOURS)
        assert not found, "\n\n".join(found)
        page.set_viewport_size({"width": 390, "height": 844})
        visit.drawn()
        check_width(page)


@pytest.mark.full
@pytest.mark.parametrize(
    ("path", "query", "painted"),
    [
        ("switch_off", {}, "[role=radio][aria-checked=true]"),
        ("switch_off", {}, "[data-testid=stSlider] [data-rac]:has(> div > input)"),
        (
            "lens",
            {"log": "true"},
            "[data-testid=stCheckbox] [data-selected] > div:not([data-testid])",
        ),
    ],
)
def test_what_streamlit_paints_is_seen_where_the_system_chooses_the_colours(
    visit: Visit, path: str, query: dict[str, str], painted: str
) -> None:
    page = visit.open(path, **query)
    page.emulate_media(forced_colors="active")
    ground = "one => getComputedStyle(one).backgroundColor"
    plain = page.locator("body").evaluate(ground)
    grounds = [one.evaluate(ground) for one in page.locator(painted).all()]
    assert grounds
    assert plain not in grounds
    assert not any(one.endswith(", 0)") for one in grounds), "nothing is painted"


def test_a_fault_in_a_view_is_found(mounted: Callable[..., Mounted]) -> None:
    usual = {
        "generation": 1,
        "colour": "#CC3311",
        "selected": None,
        "picks": True,
        "label": "Tokens",
        "legend": "probability",
    }
    usual |= {"height": None, "bars": False, "spaced": False, "kinds": {}}
    page = mounted("token_strip", payload([Token("a", 0.5)], usual)).page
    page.evaluate("document.documentElement.lang = 'en'")
    assert not findings(page)
    page.locator(".chip").evaluate(
        "chip => { chip.setAttribute('aria-label', ''); chip.textContent = ''; }"
    )
    assert [one.split(" ")[0] for one in findings(page)] == ["button-name"]
