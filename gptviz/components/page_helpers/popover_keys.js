// The keyboard and the popovers of a page ("Share", "?"). Streamlit draws what a popover holds at the end of the page and leaves the
// focus on its button, so that all other controls of the page would come first. Here a popover that a key opens has the focus, Tab
// leads from its button into it, and from its end to what follows the button; it shuts then, so that it covers nothing that has the
// focus. Escape shuts it too: that is Streamlit's, as is the way back to the button.

import { isAlone } from "../kit/keys.js";
import { POPOVER, POPOVER_BUTTON } from "../kit/streamlit.js";

const STOPS = "a[href], button, input, select, textarea, summary, [tabindex]";

/**
 * The stops of the Tab key within a part of the page, also within views made by hand, from first to last.
 *
 * @param {ParentNode} part
 * @returns {HTMLElement[]}
 */
function stopsOf(part) {
  return [...part.querySelectorAll("*")].flatMap((one) => {
    const own = one instanceof HTMLElement && isStop(one) ? [one] : [];
    return one.shadowRoot ? [...own, ...stopsOf(one.shadowRoot)] : own;
  });
}

/** @param {HTMLElement} one */
function isStop(one) {
  if (!one.matches(STOPS) || one.tabIndex < 0 || one.matches(":disabled") || !one.checkVisibility()) return false;
  if (!(one instanceof HTMLInputElement) || one.type !== "radio" || one.checked) return true;
  // Tab passes a round button by where another one of its group is chosen.
  const all = /** @type {ParentNode} */ (one.getRootNode()).querySelectorAll("input[type=radio]:checked");
  return ![...all].some((other) => other instanceof HTMLInputElement && other.name === one.name && other.form === one.form);
}

/** A popover can have the focus, and gets it if a key opened it: what is in it is read aloud. @param {MouseEvent} event */
function clicked(event) {
  if (!(event.target instanceof Element) || !event.target.closest(POPOVER_BUTTON)) return;
  const isKey = event.detail === 0; // a pointer counts its clicks
  requestAnimationFrame(() => {
    const opened = document.querySelector(POPOVER);
    if (!(opened instanceof HTMLElement)) return;
    opened.tabIndex = stopsOf(opened).length ? -1 : 0; // one with only text may have to be scrolled by the arrow keys
    if (isKey) opened.focus({ preventScroll: true });
  });
}

/** @param {KeyboardEvent} event */
function pressed(event) {
  if (event.key !== "Tab" || !isAlone(event) || event.defaultPrevented) return;
  const button = document.querySelector(`${POPOVER_BUTTON}[aria-expanded=true]`),
    opened = document.querySelector(POPOVER);
  if (!(button instanceof HTMLElement) || !(opened instanceof HTMLElement)) return;
  const at = event.composedPath()[0],
    stops = stopsOf(opened);
  if (event.shiftKey) {
    if (at !== opened && at !== stops[0]) return;
    event.preventDefault();
    button.focus();
  } else if (at === button) {
    event.preventDefault();
    (stops[0] ?? opened).focus();
  } else if (at === (stops.at(-1) ?? opened)) {
    // The browser goes on from what has the focus: from the button to what follows it.
    button.focus();
    button.click();
  }
}

/** @param {unknown} _view @param {AbortSignal} signal */
export function popoverKeys(_view, signal) {
  window.addEventListener("keydown", pressed, { signal });
  window.addEventListener("click", clicked, { signal });
}
