// The draw: [0, 1) shared among the tokens that were kept, and the random number that falls into it.

import { announce } from "../kit/details.js";
import { button, make, shape } from "../kit/elements.js";
import { USUAL, rem } from "../kit/size.js";
import { count, shortened, spoken } from "../kit/text.js";
import { SEEDS, Slider } from "./choices.js";
import { DRAWS, chiSquared } from "./draws.js";
import { LONGEST_NAME, nameOf } from "./words.js";

// The intervals of neighbours, those that are drawn together, and that of the token drawn, in percent of the colour.
const SHADES = { even: 38, odd: 20, many: 10, drawn: 100 };
// Narrower intervals are drawn together.
const NARROWEST = 0.0008;
// Characters of a token on its interval, and the pixels that one of them takes.
const LONGEST_ON_INTERVAL = 8,
  CHARACTER = 8;

/** The tokens kept, in the vocabulary's order, as [token, start, end]; the drawn one by itself, the narrow ones together (−1). @param {import("./sampling_ledger.js").Ledger} ledger */
function intervalsOf({ stages, drawn }) {
  /** @type {[token: number, start: number, end: number][]} */
  const found = [];
  /** @type {[token: number, start: number, end: number] | null} */
  let gathered = null;
  for (let token = 0; token < stages.size; token++) {
    if (!stages.after[token]) continue;
    const start = stages.start(token),
      end = stages.ends[token];
    if (end - start >= NARROWEST || token === drawn) {
      gathered = null;
      found.push([token, start, end]);
    } else if (gathered) gathered[2] = end;
    else found.push((gathered = [-1, start, end]));
  }
  return found;
}

/** The name of a token on its interval, "" if it does not fit in `pixels` of a page of usual size. @param {number} token @param {number} pixels @param {import("./sampling_ledger.js").Ledger} ledger */
function nameWithin(token, pixels, { header }) {
  const name = token < 0 ? "" : shortened(header.labels[token], LONGEST_ON_INTERVAL);
  return CHARACTER * ([...name].length + 1) <= pixels ? name : "";
}

export class Draw {
  /** @param {import("./sampling_ledger.js").Ledger} ledger */
  constructor(ledger) {
    this.ledger = ledger;
    this.paths = Object.entries(SHADES).map(([kind, shade]) =>
      shape("path", { class: kind, style: `fill: color-mix(in srgb, var(--output) ${shade}%, transparent)` }),
    );
    this.outcome = make("p", "cut outcome");
    const take = (/** @type {MouseEvent} */ event) => ledger.take(ledger.drawn, event);
    this.taking = button("Take it", take, { title: "Add the token that was drawn to the text" });
    this.interval = make("div", "interval");
    this.names = make("div", "small names", undefined, { "aria-hidden": "true" });
    this.fallen = make("div", "fallen", undefined, { "aria-hidden": "true" });
    this.slider = new Slider("seed", "Decides the random number of the draw");
    this.verdict = make("span", "cut verdict");
    const ends = make("div", "faint tiny ends", [make("span", "", "0"), this.verdict, make("span", "", "1")]);
    const look = { viewBox: "0 0 1 1", preserveAspectRatio: "none", "aria-hidden": "true" };
    this.interval.append(shape("svg", look, ...this.paths), this.names, this.fallen);
    this.element = make("section", "draw", [this.buildHead(), this.interval, ends], { "aria-label": "The draw" });
    /** @param {any} event */
    const tokenUnder = (event) => {
      const box = this.interval.getBoundingClientRect();
      return ledger.stages.draw(Math.max(0, Math.min(1 - 1e-12, (event.clientX - box.left) / box.width)));
    };
    for (const kind of ["pointermove", "pointerdown"]) {
      this.interval.addEventListener(kind, (event) => ledger.list.hover(tokenUnder(event)));
    }
    this.interval.addEventListener("pointerleave", () => ledger.list.hover(null));
  }

  buildHead() {
    const { ledger, slider } = this;
    const seed = make("label", "aligned seed", ["seed ", slider.range, slider.value]);
    const another = () => ledger.choose({ seed: (ledger.chosen.seed + 1) % SEEDS }, true);
    const next = button("Next seed", another, { title: "Another random number" });
    const often = "Repeat the same draw with new random numbers: how often does each token come?";
    const many = button(`Draw ${count(DRAWS)}`, () => ledger.drawMany(), { title: often });
    return make("div", "aligned tools drawing", [make("strong", "", "The draw"), seed, next, many, this.outcome, this.taking]);
  }

  // Drawing

  /** Show the draw; the number `falls` where it is a new one. @param {boolean} falls */
  render(falls) {
    const { ledger, interval, outcome } = this;
    const { header, drawn, number } = ledger;
    const intervals = intervalsOf(ledger);
    const paths = ["", "", "", ""]; // neighbours differ in shade
    let odd = 0;
    for (const [token, start, end] of intervals) {
      const kind = token === drawn ? 3 : token < 0 ? 2 : (odd = 1 - odd);
      paths[kind] += `M${start} 0H${end}V1H${start}Z`;
    }
    this.paths.forEach((path, i) => path.setAttribute("d", paths[i]));
    this.renderNames(intervals);
    this.fallen.style.left = `${100 * number}%`;
    outcome.replaceChildren(`${number.toFixed(3)} falls on `, nameOf(drawn, ledger), header.note);
    Object.assign(interval.dataset, { number, drawn });
    this.verdict.textContent = ledger.observed
      ? this.test()
      : "the tokens kept, in the vocabulary’s order; each as wide as its chance";
    if (!falls) return;
    const from = { transform: "translateY(-26px)", opacity: 0.2 };
    if (!matchMedia("(prefers-reduced-motion: reduce)").matches)
      this.fallen.animate([from, { transform: "none", opacity: 1 }], { duration: 420, easing: "cubic-bezier(0.5, 0, 0.9, 0.5)" });
    announce(ledger.root, `${number.toFixed(3)} falls on ${spoken(shortened(header.labels[drawn], LONGEST_NAME))}`);
  }

  /** Says how the 10,000 draws came out. */
  test() {
    const { statistic, freedom } = chiSquared(/** @type {Int32Array} */ (this.ledger.observed), this.ledger.stages);
    Object.assign(this.verdict.dataset, { statistic, freedom });
    if (!freedom) return `◆ ${count(DRAWS)} draws, all of them the only token left: nothing to test`;
    const usual = `${freedom} ± ${Math.sqrt(2 * freedom).toPrecision(2)}`;
    const found = `χ² = ${statistic.toPrecision(3)} with ${freedom} degrees of freedom`;
    return `◆ ${count(DRAWS)} draws: ${found}; by chance about ${usual}`;
  }

  /** @param {ReturnType<typeof intervalsOf>} intervals */
  renderNames(intervals) {
    const { ledger, names } = this;
    const width = (this.interval.clientWidth * USUAL) / rem();
    const named = intervals.filter(([token, start, end]) => nameWithin(token, width * (end - start), ledger));
    while (names.children.length < named.length) names.append(make("span"));
    /** @type {HTMLElement[]} */ ([...names.children]).forEach((place, i) => {
      place.hidden = i >= named.length;
      if (place.hidden) return;
      const [token, start, end] = named[i];
      place.textContent = nameWithin(token, width, ledger);
      place.style.left = `${100 * start}%`;
      place.style.width = `${100 * (end - start)}%`;
      place.classList.toggle("drawn", token === ledger.drawn);
    });
  }
}
