"""Whether a picture that a view saves can be read: its texts are large enough, within it, and apart
from each other.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from PIL import ImageColor
from playwright.sync_api import Locator, Page

from tests.browser.files import tool

# The smallest type, in pixels.
SMALLEST = 12
# How far, in pixels, boxes of texts may reach into each other: they are higher than their letters.
TOUCHING = 3
# A paint of SVG 1.1 that is neither the name of a colour nor a reference.
PAINT = re.compile(r"none|#(?:[\da-fA-F]{3}){1,2}|rgb\((?:\d{1,3}%?, ?){2}\d{1,3}%?\)")
# Every text that is seen in the drawing: its words, its size and its box on the screen; and the box
# of the drawing.
MEASURE = """(drawn) => {
    const holder = document.createElement('div');
    holder.style.cssText = 'position: absolute; left: 0; top: 0';
    holder.innerHTML = drawn;
    document.body.append(holder);
    const svg = holder.firstElementChild;
    const place = ({ left, top, right, bottom }) => ({ left, top, right, bottom });
    const texts = [...svg.querySelectorAll('text')]
        .filter((text) => text.textContent.trim() && getComputedStyle(text).visibility === 'visible')
        .map((text) => {
            const { a, b } = text.getScreenCTM();
            const size = parseFloat(getComputedStyle(text).fontSize) * Math.hypot(a, b);
            const box = place(text.getBoundingClientRect());
            // Some fonts of this machine have much higher lines than others, for letters of the same height.
            const [first, last] = Math.abs(b) > Math.abs(a) ? ['left', 'right'] : ['top', 'bottom'];
            const more = Math.max(0, (box[last] - box[first] - 1.15 * size) / 2);
            box[first] += more;
            box[last] -= more;
            // What is cut off is not seen.
            for (let cut = text.parentElement.closest('svg'); cut !== svg; cut = cut.parentElement.closest('svg')) {
                if (getComputedStyle(cut).overflow === 'visible') continue;
                const edge = cut.getBoundingClientRect();
                box.left = Math.max(box.left, edge.left);
                box.right = Math.min(box.right, edge.right);
                box.top = Math.max(box.top, edge.top);
                box.bottom = Math.min(box.bottom, edge.bottom);
            }
            return { words: text.textContent, size, box };
        });
    const measured = { texts, whole: place(svg.getBoundingClientRect()) };
    holder.remove();
    return measured;
}"""
# Every text of a view that is seen and smaller than `smallest`, its size as it is on the screen.
SMALL = """(smallest) => {
    const roots = [...document.querySelectorAll('*')].flatMap((one) => one.shadowRoot ?? []);
    const texts = roots.flatMap((root) => [...root.querySelectorAll('.root *')]).filter((one) =>
        [...one.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim()) && one.checkVisibility());
    const size = (one) => {
        const own = parseFloat(getComputedStyle(one).fontSize), matrix = one.getScreenCTM?.();
        return own * (matrix ? Math.hypot(matrix.a, matrix.b) : one.currentCSSZoom ?? 1);
    };
    const isSmall = (one) => !one.closest('.aloud, [hidden]') && size(one) < smallest;
    return texts.filter(isSmall).map((one) => `${size(one).toFixed(1)} px: “${one.textContent}”`);
}"""


def keep_drawing(page: Page) -> None:
    """Let the browser draw for some seconds: one that has nothing to draw makes a PNG of a canvas
    only after a second.
    """
    page.evaluate(
        "() => { let left = 300; const draw = () => left-- && requestAnimationFrame(draw); "
        "draw(); }"
    )


def small(page: Page, smallest: float = SMALLEST) -> list[str]:
    """The texts of a view on a page that are smaller than type should be, with their sizes."""
    return page.evaluate(SMALL, smallest - 0.1)


def saved(page: Page, where: Locator | None = None) -> str:
    """The drawing that "SVG" saves; `where` as in `tool`."""
    with page.expect_download() as waiting:
        tool(page, "SVG", where).click()
    return Path(waiting.value.path()).read_text(encoding="utf-8")


def words(drawn: str) -> list[str]:
    """All texts of a drawing."""
    return [
        "".join(one.itertext())
        for one in ElementTree.fromstring(drawn).iter()
        if one.tag.endswith("}text")
    ]


def names(drawn: str) -> set[str]:
    """The names of the parts of a drawing: two in one document must not share any."""
    return {one.attrib["id"] for one in ElementTree.fromstring(drawn).iter() if "id" in one.attrib}


def unknown_to_svg_1_1(drawn: str) -> list[str]:
    """The colours, pictures and references of a drawing that a program does not show which knows
    SVG 1.1 alone.
    """
    found = []
    there = names(drawn)
    for one in ElementTree.fromstring(drawn).iter():
        looks = [part.partition(":")[::2] for part in one.attrib.get("style", "").split(";")]
        for name, value in [
            *one.attrib.items(),
            *((name.strip(), value.strip()) for name, value in looks),
        ]:
            reference = re.fullmatch(r"url\(#([\w-]+)\)", value)
            if name in ("fill", "stroke") or name.endswith("color"):
                is_known = (
                    PAINT.fullmatch(value)
                    or value in ImageColor.colormap
                    or (reference and reference[1] in there)
                )
            else:
                is_known = name != "href" and (
                    "url(" not in value or (reference and reference[1] in there)
                )
            found += [] if is_known else [f"{name}: {value:.80}"]
    return found


def faults(page: Page, drawn: str) -> list[str]:
    """What is wrong with the texts of a drawing, in words; `page` is any that a browser shows."""
    measured = page.evaluate(MEASURE, drawn)
    texts = measured["texts"]
    whole = measured["whole"]
    assert texts, "there is no text"
    found = unknown_to_svg_1_1(drawn)
    for i, one in enumerate(texts):
        if one["size"] < SMALLEST - 0.1:
            found.append(f"“{one['words']}” is {one['size']:.1f} px high")
        if _outside(one["box"], whole):
            found.append(f"“{one['words']}” reaches out of the picture")
        found += [
            f"“{one['words']}” lies on “{other['words']}”"
            for other in texts[:i]
            if _overlap(one["box"], other["box"])
        ]
    return found


def _outside(box: dict[str, Any], whole: dict[str, Any]) -> bool:
    return bool(
        box["left"] < whole["left"] - 1
        or box["right"] > whole["right"] + 1
        or box["top"] < whole["top"] - 1
        or box["bottom"] > whole["bottom"] + 1
    )


def _overlap(one: dict[str, Any], other: dict[str, Any]) -> bool:
    across = min(one["right"], other["right"]) - max(one["left"], other["left"])
    down = min(one["bottom"], other["bottom"]) - max(one["top"], other["top"])
    return bool(across > TOUCHING and down > TOUCHING)
