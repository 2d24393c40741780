// The keys of a speaker: Page Down and Page Up (as a presenter's remote control sends them) follow the links to the next step of a
// lesson and back; L turns a spot of light on and off, which follows the pointer and the arrow keys; Escape turns it off.

import { isTyping, make } from "../kit/elements.js";
import { ARROWS, isAlone } from "../kit/keys.js";

const SIZE = 28; // pixels
// How far an arrow key moves the spot, in pixels.
const STEP = 32;

/** Which step a key asks for: 1 the next, -1 the one before, 0 none. @param {string} key */
export function stepOf(key) {
  return key === "PageDown" ? 1 : key === "PageUp" ? -1 : 0;
}

/** @param {unknown} _view @param {AbortSignal} signal */
export function presenter(_view, signal) {
  const spot = make("div", "", undefined, { "aria-hidden": "true" });
  Object.assign(spot.style, {
    background: "radial-gradient(circle, #ff2d2dee 0 35%, #ff2d2d55 45%, transparent 70%)",
    display: "none",
    height: `${SIZE}px`,
    left: "0",
    pointerEvents: "none",
    position: "fixed",
    top: "0",
    width: `${SIZE}px`,
    zIndex: "1000000",
  });
  document.body.append(spot);
  signal.addEventListener("abort", () => spot.remove());
  let x = 0,
    y = 0; // of its middle, in pixels
  /** Put the middle of the spot there, or at the nearest place in the window. @param {number} across @param {number} down */
  const move = (across, down) => {
    x = Math.max(0, Math.min(window.innerWidth, across));
    y = Math.max(0, Math.min(window.innerHeight, down));
    spot.style.transform = `translate(${x - SIZE / 2}px, ${y - SIZE / 2}px)`;
  };
  move(window.innerWidth / 2, window.innerHeight / 2);
  /** @param {KeyboardEvent} event */
  const pressed = (event) => {
    if (isTyping(event.composedPath()[0] ?? event.target) || !isAlone(event)) return;
    const step = stepOf(event.key),
      isLit = spot.style.display !== "none";
    const link = document.querySelector(step > 0 ? ".lesson-ways [rel=next]" : ".lesson-ways [rel=prev]");
    if (step && link instanceof HTMLElement) {
      event.preventDefault();
      link.click();
    } else if (event.key === "l" || event.key === "L") spot.style.display = isLit ? "none" : "block";
    else if (event.key === "Escape") spot.style.display = "none";
    // On a slider or a view the arrow keys are its own.
    else if (isLit && ARROWS[event.key] && event.composedPath()[0] === document.body) {
      const [down, across] = ARROWS[event.key];
      move(x + STEP * across, y + STEP * down);
      event.preventDefault();
    }
  };
  window.addEventListener("keydown", pressed, { signal });
  window.addEventListener("pointermove", (event) => move(event.clientX, event.clientY), { signal });
}
