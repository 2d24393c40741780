// What a step of a lesson talks about is in sight when the step opens: on a projector or a phone, the settings of a page take the
// whole window, and its first view would stand below it.

import { make } from "../kit/elements.js";
import { view } from "../kit/view.js";

const MAIN = "[data-testid=stMain]";
const VIEWS = ".stBidiComponent, [data-testid=stDataFrame], [data-testid=stPlotlyChart]";
// A line of tokens is lower than this, in heights of a letter; a column of settings narrower.
const LEAST = { height: 10, width: 7 };
// How much of the window a view may ask for: what stands above it, such as the tokens, is to be seen too.
const SHARE = 0.5;
// The page has come when its first view stays at its place for so long; after the longest time nothing is moved any more.
const [STILL, LOOK, LONGEST] = [600, 100, 30_000]; // milliseconds
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

class StepInSight {
  /** @param {HTMLElement} root */
  constructor(root) {
    root.replaceChildren(make("span")); // a view that is empty has not come yet
    this.stop = () => {
      clearInterval(this.timer);
      for (const name of DEEDS) window.removeEventListener(name, this.stop, { capture: true });
    };
  }

  /** @param {{ step: string }} payload */
  show({ step }) {
    if (step === this.step) return;
    this.step = step;
    this.stop();
    for (const name of DEEDS) window.addEventListener(name, this.stop, { capture: true, passive: true });
    this.since = this.begun = performance.now();
    this.place = NaN;
    this.timer = setInterval(() => this.look(), LOOK);
  }

  look() {
    const main = document.querySelector(MAIN);
    const app = document.querySelector("[data-testid=stApp]");
    const now = performance.now();
    if (now - this.begun > LONGEST) this.stop();
    const box = main && firstView(main);
    const place = main && box ? box.top + main.scrollTop : NaN;
    const isRunning = app instanceof HTMLElement && app.dataset.testScriptState === "running";
    if (place !== this.place || isRunning) [this.place, this.since] = [place, now];
    if (!main || !box || now - this.since < STILL) return;
    this.stop();
    main.scrollTop += wayDown(box, main.getBoundingClientRect());
  }

  close() {
    this.stop();
  }
}

export default view(StepInSight);
