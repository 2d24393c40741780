"""`python -m tests.browser.screenshots FOLDER`: a picture of every page, light and dark, for the README."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.browser.machinery import PAGES, Visit, chromium, serve


def main(folder: Path) -> None:
    """Write `FOLDER/<page>-<light or dark>.png`, 1280 × 800."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home, serve(Path(home)) as server, chromium() as browser:
        for dark in (False, True):
            for path in PAGES:
                visit = Visit.begin(browser, server, dark=dark, height=800)
                page = visit.open(path)
                page.wait_for_timeout(2_500)  # charts draw, transitions end
                page.screenshot(path=folder / f"{path or 'home'}-{'dark' if dark else 'light'}.png")
                wrong = visit.wrong()
                visit.close()
                if wrong:
                    sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"))
