// One step in the browser's history for each thing that the visitor did. Streamlit makes a step each time the server writes the
// address. For a link to another page that is up to three times: what the controls of the page before had in the address is taken
// out, the page changes, what the link asks for is put in. A step back would lead to an address that the page never showed.

import { isAppRunning } from "../kit/streamlit.js";

// What a visitor does. A screen reader clicks without pressing.
const DEEDS = ["pointerdown", "keydown", "click", "change", "drop"];
// Where the steps of this window are: its script is read again for every page, and must not be in place twice.
const STEPS = Symbol.for("gptviz history steps");

/** Which changes of the address make a step. */
export class Steps {
  constructor() {
    // Since the last step: whether anything was done, and whether what was done can have changed the address of the page itself.
    this.isDone = this.isMeant = false;
  }

  /**
   * The visitor did something. While the app runs, it still writes the address for what was done before: what is done then makes
   * a step by leading to another page, or by a link.
   *
   * @param {{ isRunning: boolean, isLink: boolean }} deed
   */
  done({ isRunning, isLink }) {
    this.isDone = true;
    this.isMeant ||= isLink || !isRunning;
  }

  /** Whether a change of the address makes a step. @param {boolean} isOtherPage */
  take(isOtherPage) {
    const isStep = isOtherPage ? this.isDone : this.isMeant;
    if (isStep) this.forget();
    return isStep;
  }

  /** The visitor went back or forward: what is written after that belongs to the step that is there. */
  forget() {
    this.isDone = this.isMeant = false;
  }
}

export function historySteps() {
  const page = /** @type {Record<symbol, boolean | undefined>} */ (/** @type {unknown} */ (globalThis));
  if (page[STEPS]) return;
  page[STEPS] = true;
  const steps = new Steps();
  /** @param {Event} event */
  const done = (event) => {
    const isLink = event.composedPath().some((one) => one instanceof Element && one.localName === "a");
    steps.done({ isRunning: isAppRunning(), isLink });
  };
  for (const name of DEEDS) window.addEventListener(name, done, { capture: true });
  window.addEventListener("popstate", () => steps.forget(), { capture: true });
  const push = history.pushState.bind(history);
  history.pushState = (state, unused, address) => {
    const isOtherPage = new URL(address ?? "", location.href).pathname !== location.pathname;
    if (steps.take(isOtherPage)) push(state, unused, address);
    else history.replaceState(state, unused, address);
  };
}
