"""`make test-browsers`: every page opens in Firefox and in WebKit, and answers a pointer and keys,
as in Chromium.
"""

from __future__ import annotations

import difflib
import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from itertools import pairwise
from typing import Any

import pytest

from gptviz.ui.menu import PAGES
from gptviz.ui.page import Keys
from tests.browser.machinery import DRAWN, FRAMES, PATIENCE, STANDS, Server
from tests.browser.others import BROWSERS, HEIGHT, PACKAGES, WIDTH, Driven
from tests.browser.test_every_view import VIEWS

pytestmark = pytest.mark.browser

ALL = """const all = (root) => [...root.querySelectorAll('*')].flatMap((one) =>
    [one, ...(one.shadowRoot ? all(one.shadowRoot) : [])]);
    const isSeen = (one) => one.checkVisibility({ opacityProperty: true, visibilityProperty: true });"""
# What the page says to a reader who sees it and to one who hears it, and what has the focus. What
# memory and speed are now is left out.
SAID = f"""(() => {{
    {ALL}
    const told = ['label', 'pressed', 'selected', 'expanded', 'checked', 'current', 'valuetext'].map((name) => `aria-${{name}}`);
    let at = document.activeElement;
    while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
    const others = ['stDataFrame', 'stSidebarCollapseButton', 'stSliderTickBar'].map((name) => `, [data-testid=${{name}}]`);
    const left = `style, script, .hoverlayer${{others.join('')}}`; // what Streamlit and plotly show in their own way
    return all(document.body).filter((one) => isSeen(one) && !one.closest(left)).map((one) => [
        [...one.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data).join(' '),
        ...told.filter((name) => one.hasAttribute(name)).map((name) => `${{name}}=${{one.getAttribute(name)}}`),
        one === at && one !== document.body ? '(has the focus)' : '',
    ].join(' ').replace(/\\s+/g, ' ').trim()).filter((said) => said && !/free on this machine|parameters, about/.test(said));
}})()"""
# What a pointer goes to in a view made by hand: five of these. In a chart it goes to five places.
PARTS = ", ".join(view.touched for view in VIEWS.values() if view.touched != "button")
SPOT = f"""((wanted) => {{
    {ALL}
    const groups = new Map();
    for (const one of all(document.querySelector('[data-testid=stMain]'))) {{
        const host = one.closest('[data-testid=stPlotlyChart]') ?? one.getRootNode().host;
        if (!host || !one.matches('{PARTS}, .nsewdrag, .barlayer .point path') || !isSeen(one)) continue;
        if (one.querySelector('{PARTS}')) continue;
        groups.set(host, [...(groups.get(host) ?? []), one]);
    }}
    // In whole pixels: the browsers differ in parts of them, and bars of one size would come in another order.
    const area = (one) => Math.round(one.getBoundingClientRect().width) * Math.round(one.getBoundingClientRect().height);
    const chosen = [...groups.values()].slice(0, 2).map((parts) => {{
        if (!parts[0].closest('.main-svg')) return parts;
        const bars = parts.filter((one) => !one.matches('.nsewdrag')).sort((one, other) => area(other) - area(one));
        return [bars[0] ?? parts[0]];
    }});
    const spots = chosen.flatMap((parts) => [0, 0.25, 0.5, 0.75, 1].map((share) =>
        parts.length > 1 ? [parts[Math.floor(share * (parts.length - 1))], 0.43, 0.47] : [parts[0], 0.2 + 0.57 * share, 0.43]));
    if (wanted >= spots.length) return null;
    const [one, across, down] = spots[wanted];
    one.scrollIntoView({{ block: 'center', inline: 'center', behavior: 'instant' }});
    // WebKit measures what is enlarged in units that are enlarged too.
    let zoom = 1;
    for (let at = one; at && !('currentCSSZoom' in one); at = at.parentElement) zoom *= Number(getComputedStyle(at).zoom) || 1;
    const [left, top, width, height] = ['left', 'top', 'width', 'height'].map((side) => zoom * one.getBoundingClientRect()[side]);
    return {{ x: Math.round(left + across * width), y: Math.round(top + down * height), isChart: !!one.closest('.main-svg') }};
}})"""
# The Tab stop of a view whose parts are so called gets the focus; whether there is one.
FOCUS = f"""((parts) => {{
    {ALL}
    const seen = all(document.querySelector('[data-testid=stMain]')).filter((one) => one.matches(parts) && isSeen(one));
    const stops = seen.map((one) => one.closest('[tabindex="0"]') ?? one.querySelector('[tabindex="0"], button, input') ?? one);
    stops[0]?.focus({{ focusVisible: true }}); // as the Tab key does
    return stops.length > 0;
}})"""
# Headless Chromium has no bars for scrolling: without them charts are equally wide in all browsers.
NO_BARS = """document.head.append(Object.assign(document.createElement('style'), {
    textContent: '* { scrollbar-width: none }' }))"""
CORNER = WIDTH - 1, HEIGHT - 1
# A button beside the bar of what is being computed: a training that has ended has a bar alone.
STOPS = '[class*="st-key-stop-"]'
STILL = 0.3  # seconds in which nothing changes


def settled(browser: Driven) -> list[str]:
    """What the page says once the server has answered, all is drawn and nothing changes any
    more.
    """
    said = []
    since = time.monotonic()
    end = time.monotonic() + 2 * PATIENCE
    stands = False
    while not stands or time.monotonic() - since < STILL:
        assert time.monotonic() < end, "the page did not come to rest"
        browser.evaluate(FRAMES)
        stands = browser.evaluate(
            f"({STANDS})() && ({DRAWN})() && !document.querySelector('{STOPS}')"
        )
        now = browser.evaluate(SAID)
        if now != said:
            said = now
            since = time.monotonic()
    return said


def aimed(browser: Driven, i: int) -> dict[str, Any] | None:
    """Where spot i lies once the pointer is away, the spot is scrolled into sight and nothing
    moves; None if there are fewer.
    """
    # what the last spot opened may lie over this one; and a list that was scrolled fills itself
    browser.point(*CORNER)
    settled(browser)
    spot = browser.evaluate(f"{SPOT}({i})")
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        # that it was scrolled is told in the next frame, and shuts what a pointer has opened
        browser.evaluate(FRAMES)
        before = spot
        spot = browser.evaluate(f"{SPOT}({i})")
        # Where scrolling ends is rounded: Firefox may come to one of two neighbouring pixels.
        if (
            spot is None
            or before is None
            or all(abs(spot[side] - before[side]) <= 1 for side in "xy")
        ):
            return spot
    raise AssertionError(f"spot {i} does not come to rest: {before}, {spot}")


def met(browser: Driven, server: Server, name: str) -> dict[str, list[str]]:
    """What the page says when it is opened, and after each thing that a reader does there; and what
    went wrong.
    """
    browser.open(f"{server.url}/{'' if name == 'home' else name}")
    browser.evaluate(f"{NO_BARS}, null")
    answers = {"opened": settled(browser)}
    i = 0
    while (spot := aimed(browser, i)) is not None:
        browser.point(spot["x"], spot["y"])
        answers[f"pointer on spot {i}"] = settled(browser)
        # Whether a line or a bar is near a spot depends on how wide a browser writes the numbers
        # beside it: one answer will do.
        if spot["isChart"] and browser.evaluate(
            "!!document.querySelector('.hoverlayer :is(.hovertext, .axistext)')"
        ):
            answers["pointer on a chart"] = ["answered"]
        i += 1
    middle = aimed(browser, 2)
    if middle is not None and not middle["isChart"]:
        browser.point(middle["x"], middle["y"], click=True)
        answers["pointer clicks"] = settled(browser)
    browser.point(*CORNER)  # what is under the pointer would answer as the page moves below it
    settled(browser)
    keys = [
        (VIEWS[part.view].touched, part.keys) for part in PAGES[name].tour if isinstance(part, Keys)
    ]
    for parts, pressed in keys or [(".tools button", ("Enter", "Escape"))]:
        if browser.evaluate(f"{FOCUS}({json.dumps(parts)})"):
            for key in pressed:
                browser.press(key)
                answers[f"key {key} on {parts}"] = settled(browser)
    browser.evaluate("document.activeElement.blur()")
    browser.press("/")
    answers["key /"] = settled(browser)
    exceptions = (
        "[...document.querySelectorAll('[data-testid=stException]')].map((one) => one.textContent)"
    )
    # That sizes are told in the next frame alone is no error, although browsers say it as one.
    answers["troubles"] = browser.evaluate(
        "[...window.heard.filter((said) => !said.startsWith('ResizeObserver loop')), "
        f"...{exceptions}]"
    )
    return answers


@pytest.fixture(scope="session")
def opened() -> Iterator[Callable[[str], Driven]]:
    """Gives a browser by its name, opened once."""
    with ExitStack() as stack:
        running: dict[str, Driven] = {}

        def give(name: str) -> Driven:
            if name not in running:
                try:
                    running[name] = stack.enter_context(BROWSERS[name]())
                except FileNotFoundError:
                    pytest.skip(f"{name} is not here; on Debian: apt-get install {PACKAGES[name]}")
            return running[name]

        yield give


@pytest.fixture(scope="session")
def chromium_met(
    opened: Callable[[str], Driven], server: Server
) -> Callable[[str], dict[str, list[str]]]:
    """What a page says in Chromium, asked once."""
    return cache(lambda name: met(opened("Chromium"), server, name))


@pytest.mark.parametrize("browser_name", PACKAGES)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_opens_and_answers_a_pointer_and_keys_as_in_chromium(
    opened: Callable[[str], Driven],
    chromium_met: Callable[[str], dict[str, list[str]]],
    server: Server,
    name: str,
    browser_name: str,
) -> None:
    browser = opened(browser_name)
    wanted = chromium_met(name)
    steps = list(wanted)
    for device in ("pointer", "key"):
        answered = [
            wanted[step] != wanted[before]
            for before, step in pairwise(steps)
            if step.startswith(device)
        ]
        assert any(answered) or (device == "pointer" and not answered), (
            f"in Chromium no {device} changes anything"
        )
    found = met(browser, server, name)
    assert found["troubles"] == []
    assert found.keys() == wanted.keys()
    differ = {
        step: "\n".join(difflib.unified_diff(wanted[step], found[step], lineterm="", n=0))
        for step in steps
    }
    assert not any(differ.values()), "\n".join(
        f"{step}\n{lines}" for step, lines in differ.items() if lines
    )
