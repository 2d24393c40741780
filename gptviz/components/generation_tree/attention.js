// The attention of the step that chose a token: as tints of the text, and as a list of the most attended tokens.
import { chip, tinted } from "../kit/chips.js";
import { Choices } from "../kit/choices.js";
import { logarithmic } from "../kit/colour.js";
import { button, make } from "../kit/elements.js";
import { count, percent, shortened, spoken } from "../kit/text.js";
import { Buttons } from "./buttons.js";

/** @typedef {import("./nodes.js").Attended} Attended */
/** @typedef {(place: number) => HTMLElement | undefined} ChipAt the chip at a place of the text, if that is shown */

// On the chips of the text: those that the list names, and the one whose line is pointed at.
const LISTED = "listed",
  POINTED = "pointed";

const MOST_LISTED = 6;
const LEAST_TINTED = 0.001;
const LONGEST = 9; // characters of a token

/** The choice of a head, the tints, and the list. */
export class Attention {
  /**
   * @param {object} acts
   * @param {() => void} acts.chosen another head was chosen
   * @param {() => void} acts.again attention that is no longer kept is asked for
   * @param {(chip: HTMLElement) => void} acts.pointed a line of the list was pointed at, whose chip in the text is to be seen
   * @param {() => void} acts.leave Escape was pressed on a line of the list
   */
  constructor({ chosen, again, pointed, leave }) {
    this.pointed = pointed;
    /** @type {HTMLElement[]} */
    this.listed = []; // chips of the text
    /** @type {Choices<{ attended: [block: number, head: number][] | null }>} */
    this.choices = new Choices();
    this.shape = ""; // of the heads that are offered
    this.layers = 0;
    /** @type {HTMLElement[]} */
    this.tinted = [];
    this.select = make("select", "field small heads", undefined, { "aria-label": "Attention of" });
    this.select.onchange = () => {
      this.choices.take({ attended: this.select.value || null });
      this.choices.write();
      chosen();
    };
    this.line = make("div", "aligned attendedline", [make("span", "", "Attended to:"), this.select]);
    this.list = make("div", "wrapped attended", undefined, { role: "group", "aria-label": "What its step attended to most" });
    this.items = new Buttons(this.list, leave);
    this.again = button("Compute it again", again, { title: "This step’s attention is no longer kept" });
  }

  /** Offer the heads of a model. @param {number} layers @param {number} heads of each @param {import("../kit/values.js").Declared} declared what the address may say */
  offer(layers, heads, declared) {
    const shape = `${layers} ${heads}`;
    if (this.shape === shape) return;
    this.shape = shape;
    this.layers = layers;
    /** @param {string} value @param {string} text */
    const option = (value, text) => make("option", "", text, { value });
    const groups = Array.from({ length: layers }, (_, block) => {
      const own = Array.from({ length: heads }, (_h, head) => option(`${block}.${head}`, `block ${block}, head ${head}`));
      return make("optgroup", "", own, { label: `Block ${block}` });
    });
    this.select.replaceChildren(option("", "mean of all heads"), ...groups);
    this.choices.begin(declared);
    this.select.value = this.head;
  }

  /** The chosen head as "block.head", "" for the mean of all heads. */
  get head() {
    return this.choices.written.attended ?? "";
  }

  /** Tint the chips of the text by what was attended to; null takes the tints away. @param {Attended | null} found @param {ChipAt} chipAt */
  tint(found, chipAt) {
    for (const one of this.tinted) {
      one.classList.remove("key");
      one.style.removeProperty("--a");
    }
    this.tinted = [];
    found?.weights.forEach((weight, i) => {
      const one = weight < LEAST_TINTED ? undefined : chipAt(found.start + i);
      if (!one) return;
      one.classList.add("key");
      one.style.setProperty("--a", tinted(logarithmic(weight)));
      this.tinted.push(one);
    });
  }

  /** List the most attended tokens, and mark them in the text. @param {Attended} found @param {ChipAt} chipAt */
  fill(found, chipAt) {
    this.unmark();
    const places = mostAttended(found.weights).map((i) => found.start + i);
    this.listed = places.flatMap((place) => chipAt(place) ?? []);
    for (const one of this.listed) one.classList.add(LISTED);
    this.items.fill(mostAttended(found.weights).map((i) => this.item(found.start + i, found.weights[i], chipAt)));
  }

  /** @param {number} place @param {number} weight @param {ChipAt} chipAt */
  item(place, weight, chipAt) {
    const there = chipAt(place),
      label = there?.textContent ?? "…";
    const name = chip(shortened(label, LONGEST));
    name.classList.add("key");
    name.style.setProperty("--a", tinted(logarithmic(weight)));
    const words = [name, make("span", "place", `at ${count(place)}`), make("span", "number", percent(weight))];
    const item = make("button", "bare item", words, {
      ...{ tabindex: "-1", "data-place": place, "data-weight": weight },
      title: `The token at place ${place} of the text, counted from 0; underlined in the text`,
      "aria-label": `${spoken(label)} at ${count(place)}, ${percent(weight)}`,
    });
    const point = () => {
      if (!there) return;
      there.classList.add(POINTED);
      this.pointed(there);
    };
    const leave = () => there?.classList.remove(POINTED);
    Object.assign(item, { onpointerenter: point, onfocus: point, onclick: point, onpointerleave: leave, onblur: leave });
    return item;
  }

  /** Take the marks of the list out of the text. */
  unmark() {
    for (const one of this.listed) one.classList.remove(LISTED, POINTED);
    this.listed = [];
  }

  /** Say why there is nothing to list. @param {boolean} isPlaying */
  explain(isPlaying) {
    this.unmark();
    const why = !this.layers ? "This model has no attention." : isPlaying ? "Pause to see it." : "";
    this.items.fill([why ? make("span", "note", why) : this.again]);
  }

  clear() {
    this.unmark();
    this.items.fill([]);
  }
}

/** The places of the largest weights, the largest first; of equal ones the later. @param {Float64Array} weights */
export function mostAttended(weights) {
  return [...weights.keys()].sort((a, b) => weights[b] - weights[a] || b - a).slice(0, MOST_LISTED);
}
