"""No two words of a chart lie on each other, and none is cut off, with tokens that are words and
with many blocks.
"""

from __future__ import annotations

import pytest

from gptviz.ui.menu import PAGES
from tests.browser.machinery import WORDS, Visit

pytestmark = pytest.mark.browser

# Pages with charts of a model that guesses the next token.
CHARTS = [
    page
    for page in PAGES.values()
    if page.has_model and "decoder" in page.kinds and page.group != "Your models"
]

# Of every chart in sight: the words that stick out of it, and the pairs that overlap. Words may be
# turned: each is compared as the rectangle that it fills, less the fifth at its upper and lower
# edge that letters hardly use. Names of points may lie on each other, since points lie where they
# lie.
FAULTS = """() => {
    const turned = (text, line) => {
        const box = line === text ? text.getBBox() : null, matrix = text.getScreenCTM();
        const { left, right, top, bottom } = line.getBoundingClientRect();
        if (!box) return [[left, top], [right, top], [right, bottom], [left, bottom]];
        // A line is higher than its letters: how much depends on the fonts of this machine.
        const size = parseFloat(getComputedStyle(text).fontSize), x = box.x + box.width, y = box.y + box.height;
        const less = Math.max(0.2 * Math.min(box.width, box.height), (box.height - 0.7 * size) / 2);
        return [[box.x, box.y + less], [x, box.y + less], [x, y - less], [box.x, y - less]]
            .map(([across, down]) => new DOMPoint(across, down).matrixTransform(matrix)).map((point) => [point.x, point.y]);
    };
    // Two rectangles are apart if a line along a side of one has them on different sides.
    const apart = (one, other) => [one, other].some((corners) => corners.some(([x, y], i) => {
        const [toX, toY] = corners[(i + 1) % 4];
        const [a, b] = [one, other].map((all) => all.map(([px, py]) => px * (toY - y) - py * (toX - x)));
        return Math.max(...a) <= Math.min(...b) + 1 || Math.max(...b) <= Math.min(...a) + 1;
    }));
    const faults = [];
    for (const chart of document.querySelectorAll('[data-testid=stPlotlyChart]')) {
        const edge = chart.querySelector('.main-svg').getBoundingClientRect();
        const words = [...chart.querySelectorAll('svg text')].filter((one) => one.textContent.trim()
            && one.checkVisibility({ opacityProperty: true, visibilityProperty: true })).flatMap((text) => {
            const lines = [...text.querySelectorAll(':scope > .line')].filter((one) => one.textContent.trim());
            const point = !!text.closest('.textpoint');
            return (lines.length ? lines : [text]).map((line) =>
                ({ said: line.textContent, box: line.getBoundingClientRect(), corners: turned(text, line), point }));
        });
        words.forEach(({ said, box, corners, point }, i) => {
            if (box.left < edge.left - 1 || box.right > edge.right + 1 || box.top < edge.top - 1 || box.bottom > edge.bottom + 1)
                faults.push(`cut: ${said}`);
            for (const other of words.slice(i + 1))
                if (!(point && other.point) && !apart(corners, other.corners)) faults.push(`${said} on ${other.said}`);
        });
    }
    return faults;
}"""


# Over training shows the steps of a training, of which the deep model has none.
STATES = [
    (page.name, state) for page in CHARTS for state in page.states if page.name != "over_training"
]


# Pages as they open with this model are among what test_pages.py looks at; with `sentences`,
# test_accessibility.py looks at pages and states.
@pytest.mark.full
@pytest.mark.parametrize(("name", "state"), STATES)
@pytest.mark.usefixtures("deep")
def test_no_word_of_a_chart_lies_on_another_or_is_cut(
    standing: Visit, name: str, state: dict[str, str]
) -> None:
    standing.page.set_viewport_size({"width": 1280, "height": 800})
    standing.go("" if name == "home" else name, **{"model": "deep", "prompt": WORDS} | state)
    assert standing.drawn().evaluate(FAULTS) == []
