"""`python -m tests.browser.screenshots FOLDER`: the pictures of README.md and docs/, light or dark
as these name them.

One of them moves: `moving.png`, which shows a text being written and a pointer that moves over
tokens.
"""

from __future__ import annotations

import io
import re
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser

from gptviz.ui.menu import PAGES
from tests.browser.machinery import ROOT, Server, Visit, chromium, serve

# Pixels; a picture that is cut at the usual height is higher.
HEIGHT = 800
HIGHER = {"circuit": 1250}
# The picture that moves: the size of the window, how wide the picture is, milliseconds for a frame,
# and for the last of a page.
WINDOW = (1180, 700)
MOVING_WIDTH = 880
FRAME = 300
LAST = 1_500
STEPS = 12
HOVERED = range(2, 12)


def shown() -> list[tuple[str, str]]:
    """The pages whose pictures are shown, each with "light" or "dark"."""
    texts = [
        file.read_text(encoding="utf-8")
        for file in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))
    ]
    return sorted(set(re.findall(r"pictures/(\w+)-(light|dark)\.png\)", "\n".join(texts))))


def moving(browser: Browser, server: Server, file: Path) -> None:
    """Write the picture that moves: Generate replays its text, then a pointer moves over the tokens
    of Attention.
    """
    frames: list[Image.Image] = []
    durations: list[int] = []

    def take(visit: Visit) -> None:
        taken = Image.open(io.BytesIO(visit.page.screenshot())).convert("RGB")
        frames.append(
            taken.resize(
                (MOVING_WIDTH, MOVING_WIDTH * taken.height // taken.width), Image.Resampling.LANCZOS
            )
        )
        durations.append(FRAME)

    visit = Visit.begin(browser, server, width=WINDOW[0], height=WINDOW[1])
    page = visit.open("generate", **PAGES["generate"].pictured)
    visit.drawn()
    page.get_by_role("button", name="Replay the path").click()
    # stands still: each frame is one token further
    page.get_by_role("button", name="Replay the path").click()
    for _ in range(STEPS):
        take(visit)
        page.get_by_role("button", name="Replay: a token forward").click()
        visit.settle()
    durations[-1] = LAST
    page = visit.open("attention", **PAGES["attention"].pictured)
    visit.drawn()
    for token in HOVERED:
        page.locator(".tokens .chip:is([data-side=query], [data-side=both])").nth(token).hover()
        visit.settle()
        take(visit)
    durations[-1] = LAST
    visit.close()
    # One palette for all frames, so that what stands still is the same in each and costs nothing.
    both = Image.new("RGB", (2 * MOVING_WIDTH, frames[0].height))
    both.paste(frames[STEPS - 1], (0, 0))
    both.paste(frames[-1], (MOVING_WIDTH, 0))
    palette = both.quantize(128)
    few = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    few[0].save(
        file, save_all=True, append_images=few[1:], duration=durations, loop=0, optimize=True
    )


def main(folder: Path) -> None:
    """Write `FOLDER/<page>-<light or dark>.png`, 1280 pixels wide."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home, serve(Path(home)) as server, chromium() as browser:
        for name, look in shown():
            visit = Visit.begin(
                browser, server, dark=look == "dark", height=HIGHER.get(name, HEIGHT)
            )
            page = visit.open("" if name == "home" else name, **PAGES[name].pictured)
            page.wait_for_timeout(2_500)  # charts draw, transitions end
            visit.settle()
            page.screenshot(path=folder / f"{name}-{look}.png")
            wrong = visit.wrong()
            visit.close()
            if wrong:
                sys.exit("\n".join(wrong))
        moving(browser, server, folder / "moving.png")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/pictures"))
