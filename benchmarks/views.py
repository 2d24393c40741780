"""What a move of the pointer costs in the attention explorer: milliseconds of script, at 12 × 12 heads and 256 tokens.

`python -m benchmarks.views [OTHER]`: with the folder of another checkout, its explorer is measured in the same run, by turns.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Browser, Page

from gptviz.components.attention_explorer import Heads, payload
from tests.browser.machinery import chromium
from tests.browser.mounting import mount

BLOCKS, HEADS, TOKENS, D_HEAD, POOLED = 12, 12, 256, 64, 64
MOVES, ROUNDS = 100, 5
MODES = {"one head": "one", "mean of the block": "mean", "all heads of the block": "all"}
SCRIPT_OF = """
from pathlib import Path
from gptviz.components import kit
print(getattr(kit, {what!r})(kit.FOLDER.parent / "attention_explorer"), end="")
"""
MOVE = """async (moves) => {
    const root = [...document.body.children].find((one) => one.shadowRoot).shadowRoot;
    const chips = [...root.querySelectorAll('.tokens .chip')];
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    for (let i = 0; i < moves; i++) {
        const chip = chips[(i * 37) % chips.length];
        chip.dispatchEvent(new PointerEvent('pointerover', { bubbles: true, composed: true }));
        await frame();
        await frame();
    }
}"""


def packed() -> bytes:
    """Random heads of the size measured, as the server packs them."""
    random = np.random.default_rng(0)
    blocked = np.triu(np.ones((TOKENS, TOKENS), bool), 1)

    def pattern() -> np.ndarray:
        shares = np.where(blocked, 0, random.random((HEADS, TOKENS, TOKENS), np.float32) ** 8)
        return shares / shares.sum(-1, keepdims=True)

    vectors = random.standard_normal((2, BLOCKS, HEADS, TOKENS, D_HEAD)).astype(np.float32)
    patterns = tuple(pattern() for _ in range(BLOCKS))
    small = np.stack(patterns).reshape(BLOCKS, HEADS, POOLED, TOKENS // POOLED, POOLED, TOKENS // POOLED).max((3, 5))
    heads = Heads(
        patterns=patterns,
        blocked=blocked,
        q=vectors[0],
        k=vectors[1],
        moved=random.random((BLOCKS, HEADS, TOKENS), np.float32),
        position=None,
        rollout=None,
        thumbnails=small,
        facts={"spread": random.random((BLOCKS, HEADS), np.float32)},
        scale=D_HEAD**-0.5,
    )
    labels = [f"w{i}" for i in range(TOKENS)]
    header: dict[str, Any] = {
        "of": "x",
        "model": "random",
        "code": "",
        "queries": labels,
        "keys": labels,
        "alone": True,
        "spaced": False,
        "reads": "Query (reads)",
        "isRead": "Key (is read)",
        "pooling": TOKENS // POOLED,
        "start": {"block": 2, "head": 0},
        "hidden": None,
        "number": 0,
        "asked": None,
    }
    return payload(heads, header)


def script_of(checkout: Path, what: str) -> str:
    """The "script" or the "style" of the explorer in another checkout."""
    code = SCRIPT_OF.format(what=what)
    return subprocess.run([sys.executable, "-c", code], cwd=checkout, check=True, capture_output=True, text=True).stdout


def seconds_of_script(page: Page, moves: int) -> float:
    """Seconds of script that so many moves take."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")

    def now() -> float:
        return next(one["value"] for one in session.send("Performance.getMetrics")["metrics"] if one["name"] == "ScriptDuration")

    before = now()
    page.evaluate(MOVE, moves)
    after = now()
    session.detach()
    return after - before


def measure(browser: Browser, checkouts: dict[str, Path]) -> None:
    """Print milliseconds per move for each way to show heads."""
    content = packed()
    for mode, heads in MODES.items():
        pages = {}
        for name, checkout in checkouts.items():
            scripts = {"script": script_of(checkout, "script"), "style": script_of(checkout, "style")}
            pages[name] = mount(browser, "attention_explorer", content, heads=heads, block=2, **scripts).page
        spent: dict[str, list[float]] = {name: [] for name in pages}
        for turn in range(ROUNDS + 1):
            for name, page in pages.items():
                seconds = seconds_of_script(page, MOVES)
                if turn:
                    spent[name].append(seconds / MOVES)
        ours = statistics.median(spent["this"])
        for name, values in spent.items():
            value = statistics.median(values)
            print(f"{mode:<24} {name:<12} {1e3 * value:8.2f} ms of script a move   {value / ours:6.2f} ×")
        for page in pages.values():
            page.context.close()


if __name__ == "__main__":
    others = {Path(path).name: Path(path) for path in sys.argv[1:]}
    with chromium() as running:
        measure(running, {"this": Path.cwd(), **others})
