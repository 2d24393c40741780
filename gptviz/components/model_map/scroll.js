// Scrolling so that what was opened comes into sight, as far as what it was opened from stays there.

import { boxOf } from "../kit/elements.js";
import { seenOf } from "../kit/streamlit.js";

// Pixels between what is shown and the edge of the window.
const MARGIN = 12;

/** What scrolls down and up with an element in it. @param {Element} element @returns {Element} */
function scrollerOf(element) {
  const root = element.getRootNode();
  const above = element.parentElement ?? (root instanceof ShadowRoot ? root.host : null);
  if (!above) return document.scrollingElement ?? document.documentElement;
  const scrolls = ["auto", "scroll"].includes(getComputedStyle(above).overflowY) && above.scrollHeight > above.clientHeight;
  return scrolls ? above : scrollerOf(above);
}

/**
 * How many pixels to scroll down so that `bottom` comes into sight and `top` stays there.
 *
 * @param {{ top: number, bottom: number }} seen what is in sight
 * @param {number} top of what is to stay
 * @param {number} bottom of what is to be seen
 */
export function distance(seen, top, bottom) {
  const wanted = bottom + MARGIN - seen.bottom,
    possible = top - MARGIN - seen.top;
  return Math.max(0, Math.min(wanted, possible));
}

/** Bring `opened` into sight as far as the top of `kept` stays there. @param {Element} opened @param {Element} kept */
export function reveal(opened, kept) {
  const scroller = scrollerOf(opened);
  const isPage = scroller === document.scrollingElement;
  const seen = isPage ? { top: 0, bottom: innerHeight } : seenOf(scroller);
  const top = distance(seen, boxOf(kept).top, boxOf(opened).bottom);
  const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  scroller.scrollBy({ top, behavior: isCalm ? "auto" : "smooth" });
}
