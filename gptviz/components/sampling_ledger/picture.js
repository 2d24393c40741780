// The lines in sight and the draw, as a drawing that stands alone.

import { copyOf } from "../kit/copy.js";
import { picture } from "../kit/picture.js";
import { CHOICES, OF_THE_DRAW } from "./choices.js";
import { factsOf } from "./words.js";

/** @typedef {import("./sampling_ledger.js").Ledger} Ledger */

// The lines that a picture has at least, also of a small window.
const FEWEST_LINES = 16;

/** @param {Ledger} ledger */
export function pictureOf(ledger) {
  const { root, heads, list, draw, header, chosen, seeds } = ledger;
  const copy = spread(ledger, () => copyOf([heads.titles, heads.sums, list.element, draw.element]));
  const drawn = Object.entries(CHOICES).filter(([key]) => seeds && OF_THE_DRAW.includes(key));
  const settings = drawn.map(([key, { slider, says }]) => `${slider?.name} ${says(chosen[key])}`);
  const facts = factsOf(ledger).map((fact) => fact.textContent ?? "");
  const all = [...settings, ...facts, ...(chosen.log ? ["log bars"] : [])];
  return picture(root, { title: header.title, prompt: header.prompt, settings: all }, copy);
}

/**
 * The result of `act`, called while the view is laid out for a picture: every lane and name has room, no line is cut, and nothing
 * that only steers is there. The reader does not see it.
 *
 * @template Result
 * @param {Ledger} ledger
 * @param {() => Result} act
 */
function spread(ledger, act) {
  const { root, list } = ledger;
  const { element, line } = list;
  const scrolled = element.scrollTop;
  const lines = Math.min(list.places.length, Math.max(FEWEST_LINES, Math.ceil(element.clientHeight / line)));
  /** @param {boolean} isWhole @param {string} height of the list @param {number} top where it is scrolled to */
  const lay = (isWhole, height, top) => {
    root.classList.toggle("whole", isWhole);
    element.style.height = height;
    element.scrollTop = top;
    ledger.dirty = true; // names fit or do not
    ledger.render();
  };
  lay(true, `${line * lines}px`, line * Math.floor(scrolled / line));
  try {
    return act();
  } finally {
    lay(false, "", scrolled);
  }
}
