"""How well text can be read: its contrast to what lies behind it, as WCAG 2.2 measures it."""

from __future__ import annotations

from playwright.sync_api import Page

# The least that WCAG 2.2 asks of text of normal size (level AA).
LEAST = 4.5
# The contrast of every text below `least` that stands in an open shadow root, with its class and
# its words.
FAINT = """({ least, without }) => {
    const context = Object.assign(document.createElement('canvas'), { width: 1, height: 1 })
        .getContext('2d', { willReadFrequently: true });
    const read = (colour) => {
        context.clearRect(0, 0, 1, 1);
        context.fillStyle = colour;
        context.fillRect(0, 0, 1, 1);
        const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
        return [r, g, b, a / 255];
    };
    const over = ([r, g, b, a], ground) => [r, g, b].map((c, i) => a * c + (1 - a) * ground[i]);
    const mixed = (front, back, share) => front.map((c, i) => share * c + (1 - share) * back[i]);
    const above = (one) => one.parentElement ?? one.getRootNode().host;
    const roots = [...document.querySelectorAll('*')].flatMap((one) => one.shadowRoot ?? []);
    // What is filled in drawings, in the order in which it is painted.
    const shapes = roots.flatMap((root) => [...root.querySelectorAll('svg :is(rect, path, circle)')])
        .filter((one) => one.checkVisibility() && getComputedStyle(one).fill !== 'none')
        .map((one) => [one, one.getBoundingClientRect(), one.getScreenCTM().inverse()]);
    const middle = (one) => {
        const range = document.createRange();
        range.selectNodeContents(one);
        const { left, top, width, height } = range.getBoundingClientRect();
        return new DOMPoint(left + width / 2, top + height / 2);
    };
    const filledBehind = (text) => {
        const at = middle(text);
        return shapes.filter(([one, { left, right, top, bottom }, inverse]) =>
            left <= at.x && at.x <= right && top <= at.y && at.y <= bottom
            && one.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING
            && one.isPointInFill(at.matrixTransform(inverse))).map(([one]) => one);
    };
    // The colours of a text and of what lies behind it: the grounds of what it stands in, and what is drawn there before it.
    const seen = (one) => {
        const chain = [], filled = filledBehind(one);
        for (let at = one; at; at = above(at)) chain.unshift(at);
        let ground = [255, 255, 255], behind = [];
        chain.forEach((at, i) => {
            const style = getComputedStyle(at);
            behind.push([ground, Number(style.opacity)]);
            ground = over(read(style.backgroundColor), ground);
            for (const shape of filled) {
                if (!at.contains(shape) || chain[i + 1]?.contains(shape)) continue;
                const { fill, fillOpacity } = getComputedStyle(shape), [r, g, b, a] = read(fill);
                ground = over([r, g, b, a * fillOpacity], ground);
            }
        });
        const style = getComputedStyle(one);
        let text = over(read(one instanceof SVGElement ? style.fill : style.color), ground);
        for (const [back, opacity] of behind.reverse()) {
            [text, ground] = [mixed(text, back, opacity), mixed(ground, back, opacity)];
        }
        return [text, ground];
    };
    const light = (colour) => {
        const [r, g, b] = colour.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const contrast = (one) => {
        const [lower, upper] = seen(one).map(light).sort((a, b) => a - b);
        return (upper + 0.05) / (lower + 0.05);
    };
    const hasText = (one) => [...one.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.textContent.trim());
    const texts = roots.flatMap((root) => [...root.querySelectorAll('.root :not(title)')]);
    const shown = texts.filter((one) => hasText(one) && one.checkVisibility() && !(without && one.closest(without)));
    if (!shown.length) throw new Error('there is no text');
    return shown.map((one) => [contrast(one), one])
        .filter(([ratio]) => ratio < least)
        .map(([ratio, one]) => `${ratio.toFixed(2)} ${one.getAttribute('class') ?? one.localName} “${one.textContent}”`);
}"""


def faint(page: Page, without: str = ":disabled", least: float = LEAST) -> list[str]:
    """The texts of a view that are hard to read: the contrast of each, its class and its words.

    `without` is a selector of what may be faint.
    """
    return page.evaluate(FAINT, {"least": least, "without": without})
