// The view that a step of a lesson talks about is in sight when the step opens: on a projector or a phone, the settings of a page
// take the whole window, and its first view would stand below it.

import { isAppRunning, MAIN, VIEWS } from "../kit/streamlit.js";

// A line of tokens is lower than this, in heights of a letter; a column of settings narrower.
const LEAST = { height: 10, width: 7 };
// How much of the window a view may ask for: what stands above it, such as the tokens, is to be seen too.
const SHARE = 0.5;
// The page has come when its first view stays at its place, and as high as it is, for so long. A chart may come later still and be
// the first view then, such as one that the server computes for half a minute: only a page that has stayed as it is for the
// longest time is no longer watched.
const [STILL, LOOK, LONGEST] = [600, 100, 60_000]; // milliseconds
const DEEDS = ["wheel", "touchmove", "pointerdown", "keydown"];

/**
 * How far to scroll down, in pixels, until enough of a view is seen.
 *
 * @param {{ top: number, bottom: number }} box of the view
 * @param {{ top: number, bottom: number }} frame of what is seen
 */
export function wayDown(box, frame) {
  const enough = Math.min(box.bottom - box.top, SHARE * (frame.bottom - frame.top));
  return Math.max(0, Math.ceil(box.top + enough - frame.bottom));
}

/** The box of the first large view. @param {Element} main @returns {DOMRect | undefined} */
function firstView(main) {
  const letter = parseFloat(getComputedStyle(document.documentElement).fontSize);
  return [...main.querySelectorAll(VIEWS)]
    .map((one) => one.getBoundingClientRect())
    .find((box) => box.height >= LEAST.height * letter && box.width >= LEAST.width * letter);
}

/** Watches the page of a step until somebody scrolls, types or points. */
export class StepInSight {
  /** @param {AbortSignal} signal */
  constructor(signal) {
    /** @type {string | null} */
    this.step = null; // before the first
    /** How far down the page has to be scrolled for its first view, and how far it last was; NaN if there is none. */
    this.way = this.shown = NaN;
    this.since = this.changed = 0; // when the way, and when anything, last changed
    this.stop = () => {
      clearInterval(this.timer);
      for (const name of DEEDS) window.removeEventListener(name, this.stop, { capture: true });
    };
    signal.addEventListener("abort", this.stop);
  }

  /** @param {{ step: string }} asked */
  show({ step }) {
    if (step === this.step) return;
    this.step = step;
    this.stop();
    for (const name of DEEDS) window.addEventListener(name, this.stop, { capture: true, passive: true });
    this.since = this.changed = performance.now();
    this.way = this.shown = NaN;
    this.timer = setInterval(() => this.look(), LOOK);
  }

  look() {
    const main = document.querySelector(MAIN);
    const now = performance.now();
    const box = main ? firstView(main) : undefined;
    const way =
      main && box
        ? wayDown({ top: box.top + main.scrollTop, bottom: box.bottom + main.scrollTop }, main.getBoundingClientRect())
        : NaN;
    const isRunning = isAppRunning();
    if (!Object.is(way, this.way)) [this.way, this.since, this.changed] = [way, now, now];
    if (isRunning) this.changed = now;
    if (main && box && !isRunning && now - this.since >= STILL && way !== this.shown) {
      main.scrollTop = way;
      this.shown = main.scrollTop; // less where what stands below has not come yet
    }
    if (now - this.changed > LONGEST) this.stop();
  }
}
