"""`python -m tests.browser.screenshots FOLDER`: the pictures of pages that the README shows, light or dark as it names them."""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from gptviz.ui.pages import PAGES
from tests.browser.machinery import ROOT, Visit, chromium, serve

# Pixels; a picture that is cut at the usual height is higher.
HEIGHT, HIGHER = 800, {"circuit": 1250}


def shown() -> list[tuple[str, str]]:
    """The pages whose pictures the README shows, each with "light" or "dark"."""
    return re.findall(r"\(docs/(\w+)-(light|dark)\.png\)", (ROOT / "README.md").read_text(encoding="utf-8"))


def main(folder: Path) -> None:
    """Write `FOLDER/<page>-<light or dark>.png`, 1280 pixels wide."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home, serve(Path(home)) as server, chromium() as browser:
        for name, look in shown():
            visit = Visit.begin(browser, server, dark=look == "dark", height=HIGHER.get(name, HEIGHT))
            page = visit.open("" if name == "home" else name, **PAGES[name].pictured)
            page.wait_for_timeout(2_500)  # charts draw, transitions end
            visit.settle()
            page.screenshot(path=folder / f"{name}-{look}.png")
            wrong = visit.wrong()
            visit.close()
            if wrong:
                sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"))
