"""The cost of what a reader does in the attention explorer, at 12 × 12 heads, and in the logit
lens, at 61 layers, each over 256 tokens: milliseconds of script.

`python -m benchmarks.views [OTHER]`: with the folder of another checkout, its views are measured in
the same run, by turns.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Browser, Page

from gptviz.components import lens_grid
from gptviz.components.attention_explorer import Heads, payload
from gptviz.interp.reading.lens import lens
from tests.browser.machinery import chromium
from tests.browser.mounting import mount
from tests.tiny import scrambled, some_ids, tiny

BLOCKS = 12
HEADS = 12
TOKENS = 256
D_HEAD = 64
POOLED = 64
ROUNDS = 5
SCRIPT_OF = """
from pathlib import Path
from gptviz.components import kit
print(getattr(kit, {what!r})(kit.FOLDER.parent / {view!r}), end="")
"""
ACT = """async (times) => {{
    const root = [...document.body.children].find((one) => one.shadowRoot).shadowRoot;
    const all = (selector) => [...root.querySelectorAll(selector)];
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    const act = {act};
    for (let i = 0; i < times; i++) {{
        act(i);
        await frame();
        await frame();
    }}
}}"""
MOVE = """(i) => {
    const chips = all('.tokens .chip');
    chips[(37 * i) % chips.length].dispatchEvent(new PointerEvent('pointerover', { bubbles: true, composed: true }));
}"""
TURN = "(i) => all(`.tool[data-value=${i % 2 ? 'out' : 'in'}]`)[0].click()"
WALK = (
    "(i) => all('.frame')[0].dispatchEvent(new KeyboardEvent('keydown', { key: i % 40 < 20 ? "
    "'ArrowUp' : 'ArrowDown' }))"
)
ENLARGE = "(i) => all('button').find((one) => one.textContent === 'Large cells').click()"


@dataclass(frozen=True)
class Case:
    """Something that a reader does again and again.

    Attributes:
        name: what it is, in words.
        view: the folder of the view.
        choice: what the address says.
        act: a function of the browser that does it the i-th time.
        times: how often it is done in a round.
    """

    name: str
    view: str
    choice: Mapping[str, Any]
    act: str
    times: int = 40


CASES = (
    Case("a move, one head", "attention_explorer", {"block": 2}, MOVE),
    Case("a move, mean", "attention_explorer", {"block": 2, "heads": "mean"}, MOVE),
    Case("a move, all heads", "attention_explorer", {"block": 2, "heads": "all"}, MOVE),
    Case(
        "a choice, mean of values",
        "attention_explorer",
        {"block": 2, "heads": "mean", "show": "value"},
        TURN,
        20,
    ),
    Case(
        "a choice, all heads' values",
        "attention_explorer",
        {"block": 2, "heads": "all", "show": "value"},
        TURN,
        20,
    ),
    Case("a step, large cells", "lens_grid", {"words": "true"}, WALK),
    Case("large cells, on or off", "lens_grid", {}, ENLARGE, 4),
)


def lens_packed() -> bytes:
    """The lens of a model of 30 blocks, as the server packs it."""
    model = scrambled(tiny(vocab_size=40, context_length=TOKENS, n_layer=30))
    seen = lens(model, some_ids(TOKENS, batch=1, vocab=40)[0].tolist())
    return lens_grid.payload(
        seen, lambda token: f"t{token}", of="x", model="random", vocab_size=40, code=""
    )


def packed() -> bytes:
    """Random heads of the size measured, as the server packs them."""
    random = np.random.default_rng(0)
    blocked = np.triu(np.ones((TOKENS, TOKENS), bool), 1)

    def pattern() -> np.ndarray:
        shares = np.where(blocked, 0, random.random((HEADS, TOKENS, TOKENS), np.float32) ** 8)
        return shares / shares.sum(-1, keepdims=True)

    vectors = random.standard_normal((2, BLOCKS, HEADS, TOKENS, D_HEAD)).astype(np.float32)
    patterns = tuple(pattern() for _ in range(BLOCKS))
    small = (
        np.stack(patterns)
        .reshape(BLOCKS, HEADS, POOLED, TOKENS // POOLED, POOLED, TOKENS // POOLED)
        .max((3, 5))
    )
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


def script_of(checkout: Path, view: str, what: str) -> str:
    """The "script" or the "style" of a view in another checkout."""
    code = SCRIPT_OF.format(what=what, view=view)
    return subprocess.run(
        [sys.executable, "-c", code], cwd=checkout, check=True, capture_output=True, text=True
    ).stdout


def seconds_of_script(page: Page, case: Case) -> float:
    """Seconds of script that one act takes."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")

    def now() -> float:
        return next(
            one["value"]
            for one in session.send("Performance.getMetrics")["metrics"]
            if one["name"] == "ScriptDuration"
        )

    before = now()
    page.evaluate(ACT.format(act=case.act), case.times)
    after = now()
    session.detach()
    return (after - before) / case.times


def measure(browser: Browser, checkouts: dict[str, Path]) -> None:
    """Print the milliseconds of each case."""
    contents = {"attention_explorer": packed(), "lens_grid": lens_packed()}
    for case in CASES:
        pages = {}
        for name, checkout in checkouts.items():
            scripts = {
                "script": script_of(checkout, case.view, "script"),
                "style": script_of(checkout, case.view, "style"),
            }
            pages[name] = mount(
                browser, case.view, contents[case.view], **case.choice, **scripts
            ).page
        spent: dict[str, list[float]] = {name: [] for name in pages}
        for turn in range(ROUNDS + 1):
            for name, page in pages.items():
                seconds = seconds_of_script(page, case)
                if turn:
                    spent[name].append(seconds)
        ours = statistics.median(spent["this"])
        for name, values in spent.items():
            value = statistics.median(values)
            print(
                f"{case.name:<28} {name:<12} {1e3 * value:8.2f} ms of script   "
                f"{value / ours:6.2f} ×",
                flush=True,
            )
        for page in pages.values():
            page.context.close()


if __name__ == "__main__":
    others = {Path(path).name: Path(path) for path in sys.argv[1:]}
    with chromium() as running:
        measure(running, {"this": Path.cwd(), **others})
