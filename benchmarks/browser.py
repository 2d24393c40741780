"""`python -m benchmarks.browser`: how soon the app answers in a real browser, at a prompt of 256
tokens.

The first screen is timed from the start of the server; a change of head or temperature from the key
press to the changed picture, a token from the pointer's move. Times depend on the machine, so the
work that no page can avoid stands beside them: the start of an empty app, and a change on an empty
page.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Locator, Page

from tests.browser.machinery import Visit, chromium, serve

PROMPT = (
    "To be, or not to be, that is the question:\nWhether 'tis nobler in the mind to suffer\n" * 4
)[-256:]
EMPTY = 'import streamlit as st\nst.title("?")\nst.write(st.slider("Value", 0, 100))\n'
ROUNDS = 8


def changes(page: Page, slider: str, watched: str) -> float:
    """The median seconds from a key press on the slider to a change of what `watched`, a JavaScript
    expression, gives.
    """
    handle = page.get_by_role("slider", name=slider)
    taken = []
    for turn in range(ROUNDS):
        before = page.evaluate(watched)
        handle.focus()
        begun = time.perf_counter()
        handle.press("ArrowLeft" if turn % 2 else "ArrowRight")
        page.wait_for_function(
            f"before => {{ const now = {watched}; return now && now !== before }}",
            arg=before,
            polling="raf",
        )
        taken.append(time.perf_counter() - begun)
        page.wait_for_timeout(1_500)  # all of it is drawn
    return statistics.median(taken)


def answers(
    page: Page, thing: Callable[[int], Locator], told: str, act: Callable[[Locator], None]
) -> float:
    """The median seconds from acting on a thing of a view made by hand (by the turn) to a change of
    the text that is `told`.
    """
    script = """([told, before]) => [...document.querySelectorAll('*')]
        .some((one) => one.shadowRoot?.querySelector(told) && one.shadowRoot.querySelector(told).textContent !== before)"""
    taken = []
    for turn in range(ROUNDS):
        place = thing(turn)
        before = page.locator(told).text_content()
        begun = time.perf_counter()
        act(place)
        page.wait_for_function(script, arg=[told, before], polling="raf")
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken)


def main() -> None:
    """Print seconds, and their ratio to the unavoidable."""
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        empty = Path(folder) / "empty.py"
        empty.write_text(EMPTY)
        begun = time.perf_counter()
        with serve(Path(folder), script=empty) as server:
            page = Visit.begin(browser, server).open()
            base_start = time.perf_counter() - begun
            base_change = changes(
                page, "Value", "document.querySelector('[data-testid=stMarkdown]')?.innerText"
            )
        begun = time.perf_counter()
        with serve(Path(folder)) as server:
            visit = Visit.begin(browser, server)
            page = visit.page
            page.goto(server.url)
            page.locator('[data-guess="0"]').wait_for(timeout=60_000)
            start = time.perf_counter() - begun
            visit.open("attention", prompt=PROMPT)
            page.wait_for_timeout(3_000)
            chips = page.locator(".tokens .chip")
            heads = page.locator(".head")
            token = answers(
                page,
                lambda turn: chips.nth(turn + 1),
                ".readout",
                lambda chip: chip.hover(force=True),
            )
            head = answers(
                page,
                lambda turn: heads.nth(turn + 1),
                ".right .title",
                lambda button: button.press("Enter"),
            )
            visit.open("next_token", prompt=PROMPT)
            page.wait_for_timeout(3_000)
            slider = page.get_by_role("slider", name="Temperature")
            heat = answers(
                page, lambda _: slider, ".sum.hot", lambda handle: handle.press("ArrowRight")
            )
    rows = [
        ("server's start to the first screen", start, base_start),
        ("a token under the pointer to what it reads, T = 256", token, base_change),
        ("change of head to its picture, T = 256", head, base_change),
        ("change of temperature to its bars, T = 256", heat, base_change),
    ]
    for name, seconds, base in rows:
        print(f"{name:<48} {seconds * 1e3:8.0f} ms   {seconds / base:5.2f} × an empty app")


if __name__ == "__main__":
    main()
