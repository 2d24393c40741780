// The lines of the ledger, one a token: however large the vocabulary, only those in sight exist.

import { closest, focusedBeside, make, setAttributes } from "../kit/elements.js";
import { along, DOWN, onKeys } from "../kit/keys.js";
import { rem } from "../kit/size.js";
import { SPOKEN, count, percent, shortened, spoken } from "../kit/text.js";
import { VOCABULARY } from "./choices.js";
import { DRAWS } from "./draws.js";
import { LANES, lanesOf, lengthOf } from "./lanes.js";
import { LONGEST_NAME, cutInWords } from "./words.js";

const ROW = 1.25; // rem, as in the style sheet
// Without a scroll the list shows the tokens that have at least this probability and `MORE` others, at least `FEWEST`.
const SEEN = 0.001,
  MORE = 3,
  FEWEST = 8;

export class List {
  /** @param {import("./sampling_ledger.js").Ledger} ledger */
  constructor(ledger) {
    this.ledger = ledger;
    /** @type {ReturnType<List["row"]>[]} */
    this.rows = [];
    /** @type {Uint32Array} */
    this.places = new Uint32Array(); // the tokens in the list
    this.current = 0; // the place in it that the keyboard is at
    this.ranked = true; // the likeliest first, and all of them
    /** @type {number | null} */
    this.hovered = null; // the token under the pointer
    /** @type {number | null} */
    this.touched = null; // the token that a second tap takes
    this.space = make("div", "space", undefined, { role: "presentation" });
    this.element = make("div", "list", [this.space], { role: "listbox", tabindex: "0" });
    this.listen();
  }

  listen() {
    const { element, ledger } = this;
    onKeys(element, (event) => this.key(event));
    element.addEventListener("scroll", () => ledger.ask(), { passive: true });
    for (const kind of ["focus", "blur"]) element.addEventListener(kind, () => ledger.ask());
    element.addEventListener("pointermove", (event) => this.hover(this.tokenAt(event)));
    element.addEventListener("pointerleave", () => this.hover(null));
    element.addEventListener("click", (event) => this.clicked(event));
  }

  /** Another text. */
  prepare() {
    const {
      element,
      ledger: { header, stages },
    } = this;
    this.hovered = this.touched = null;
    element.classList.toggle("takes", header.takes);
    element.setAttribute("aria-label", `${header.title}. ${count(stages.size)} tokens`);
  }

  /** Which tokens stand in the list, and in which order; it `stays` where it is scrolled to, or begins again. @param {string} sought @param {boolean} [stays] */
  arrange(sought, stays = false) {
    const { stages, header, chosen } = this.ledger;
    const byVocabulary = chosen.tokens === VOCABULARY;
    const wanted = sought.replaceAll(" ", "␣").toLowerCase();
    const ordered = byVocabulary ? stages.order.slice().sort() : stages.order;
    this.places = wanted ? ordered.filter((token) => header.labels[token].toLowerCase().includes(wanted)) : ordered;
    this.ranked = !wanted && !byVocabulary;
    this.space.style.height = `${ROW * this.places.length}rem`;
    const seen = Math.max(FEWEST, stages.before.filter((share) => share >= SEEN).length + MORE);
    this.element.style.setProperty("--lines", `${ROW * Math.min(seen, stages.size)}rem`);
    if (!stays) this.element.scrollTop = this.current = 0;
  }

  /** The height of a line in pixels. */
  get line() {
    return ROW * rem();
  }

  /** The token that the reader looks at, undefined if none is found. */
  get at() {
    return this.hovered ?? this.places[this.current];
  }

  // Drawing

  /** The rows in sight, and one more. */
  render() {
    const { element, rows, places, ledger } = this;
    const { top_p } = ledger.chosen;
    element.style.setProperty("--limit", String(top_p === 1 ? 2 : top_p));
    const { line } = this;
    const first = Math.floor(element.scrollTop / line);
    const seen = Math.min(places.length - first, Math.ceil(element.clientHeight / line) + 1);
    this.current = Math.max(0, Math.min(this.current, places.length - 1));
    while (rows.length < seen) {
      const row = this.row();
      rows.push(row);
      this.space.append(row.element);
    }
    rows.forEach((row, i) => {
      row.element.hidden = i >= seen;
      if (i < seen) this.fill(row, first + i);
    });
    const isSeen = this.current >= first && this.current < first + seen;
    if (isSeen) element.setAttribute("aria-activedescendant", `row${this.current}`);
    else element.removeAttribute("aria-activedescendant");
  }

  row() {
    const label = make("span", "chip"),
      mark = make("span", "mark"),
      seen = make("span", "seen");
    /** @type {Record<string, { cell: HTMLElement, bar: HTMLElement, text: HTMLElement }>} */
    const lanes = {};
    for (const lane of Object.keys(LANES).slice(1)) {
      const bar = make("span", "bar"),
        text = make("span", "number");
      lanes[lane] = { cell: make("span", `lane ${lane}`, [bar, text]), bar, text };
    }
    lanes.after.cell.append(seen);
    const cells = [make("span", "name", [label, mark]), ...Object.values(lanes).map(({ cell }) => cell)];
    const element = make("div", "lanes token-row", cells, { role: "option" });
    return { element, label, mark, lanes, seen };
  }

  /** @param {ReturnType<List["row"]>} row @param {number} place */
  fill({ element, label, mark, lanes, seen }, place) {
    const { ledger } = this;
    const { header, observed } = ledger;
    const token = this.places[place],
      name = header.labels[token];
    element.id = `row${place}`;
    element.style.top = `${ROW * place}rem`;
    const { stages, drawn } = ledger,
      rank = stages.rank[token];
    Object.assign(element.dataset, { token, cut: ledger.cut(token), after: stages.after[token] });
    const looks = {
      current: place === this.current && focusedBeside(element) === this.element,
      drawn: token === drawn,
      touched: token === this.touched,
      "end-of-k": this.ranked && rank === stages.inTopK - 1 && stages.inTopK < stages.used,
      "end-of-p": this.ranked && rank === stages.kept - 1 && stages.kept < stages.inTopK,
    };
    for (const [look, has] of Object.entries(looks)) element.classList.toggle(look, has);
    setAttributes(element, {
      ...{ "aria-posinset": place + 1, "aria-setsize": this.places.length },
      ...{ "aria-selected": token === drawn, "aria-label": this.said(token) },
    });
    label.textContent = shortened(name, LONGEST_NAME);
    label.classList.toggle("blank", name in SPOKEN);
    mark.textContent = token === header.true ? "▲" : "";
    for (const [lane, [from, to, number]] of Object.entries(lanesOf(token, ledger))) {
      const { bar, text } = lanes[lane];
      bar.style.setProperty("--from", String(from));
      bar.style.setProperty("--to", String(to));
      text.textContent = number;
    }
    const often = observed && ledger.cut(token) === "" ? observed[token] : null;
    seen.hidden = often === null;
    if (often !== null) seen.style.setProperty("--at", String(lengthOf(often / DRAWS, ledger)));
  }

  /** A line as it is read aloud. @param {number} token */
  said(token) {
    const { stages, header, seeds, drawn } = this.ledger;
    const cut = this.ledger.cut(token);
    const parts = [spoken(shortened(header.labels[token], LONGEST_NAME)), `the model says ${percent(stages.before[token])}`];
    if (seeds) parts.push(cut ? cutInWords(cut) : `drawn with ${percent(stages.after[token])}`);
    if (token === drawn) parts.push("drawn with this seed");
    if (token === header.true) parts.push(header.trueName);
    return parts.join(", ");
  }

  // Actions of a reader

  /** @param {Event} event */
  tokenAt(event) {
    const row = closest(event, ".token-row");
    return row && Number(row.dataset.token);
  }

  /** @param {number | null} token */
  hover(token) {
    if (token === this.hovered) return;
    this.hovered = token;
    this.ledger.ask();
  }

  /** A click takes a token. With a finger the second tap does: the first does what hovering does. @param {any} event */
  clicked(event) {
    const token = this.tokenAt(event);
    if (token === null) return;
    this.current = this.places.indexOf(token);
    if (event.pointerType !== "touch" || token === this.touched) this.ledger.take(token, event);
    this.touched = token;
    this.hovered = token;
    this.ledger.ask();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const { places, current } = this;
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.line) - 1);
    const to = along(event.key, current, places.length, { ...DOWN, PageDown: page, PageUp: -page });
    if (to !== null) {
      const { element, line } = this;
      this.current = to;
      this.hovered = null;
      if (line * to < element.scrollTop) element.scrollTop = line * to;
      else element.scrollTop = Math.max(element.scrollTop, line * (to + 1) - element.clientHeight);
      this.ledger.ask();
    } else if (event.key !== "Enter" && event.key !== " ") return false;
    else if (places.length && !event.repeat) this.ledger.take(places[current]); // a key held down takes once
    return true;
  }
}
