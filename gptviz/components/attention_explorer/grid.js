// All heads at a glance.

import { logarithmic } from "../kit/colour.js";
import { TabStop, bringIntoView, closest, make } from "../kit/elements.js";
import { Floating, beside } from "../kit/floating.js";
import { paint, paintAs } from "../kit/heatmap.js";
import { ACROSS, DOWN, along, onKeys, walked } from "../kit/keys.js";
import { rem } from "../kit/size.js";
import { brief, percent } from "../kit/text.js";
import { FACTS, MEAN, clamp, same } from "./settings.js";

// The dots along a side of the large picture of a head, in pixels.
const CARD_DOTS = 256;
// In rem, except for the smallest, which is in pixels; left of and above the thumbnails are their numbers and the axes' names.
const LARGEST_THUMBNAIL = 9,
  SORTED_THUMBNAIL = 4,
  SCROLLED_THUMBNAIL = 2,
  SMALLEST_THUMBNAIL = 12,
  HEIGHT_ON_A_PHONE = 16,
  BESIDE = 2.9,
  ABOVE = 2.4;

/**
 * @typedef {object} Thumbnail
 * @property {[block: number, head: number]} at
 * @property {HTMLButtonElement} button
 * @property {HTMLCanvasElement} canvas
 * @property {HTMLElement} value where the fact stands that heads are ordered by
 * @property {string} mark the colour that it is marked with; empty where it is not chosen
 */

/** The thumbnails of all heads, in their places or in an order; hovering one enlarges it. */
export class Grid {
  /** @param {import("./attention_explorer.js").Explorer} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    this.select = make("select", "field", undefined, { "aria-label": "Order of the heads" });
    this.order = make("label", "aligned small order", [make("span", "", "Order"), this.select]);
    this.range = make("input", "", undefined, { type: "range", "aria-label": "Hide heads below" });
    this.limit = make("output", "number");
    this.filter = make("label", "aligned small filter", [this.range, this.limit]);
    this.box = make("div", "heads", undefined, { role: "group", "aria-label": "All heads: blocks downwards, heads across" });
    this.pooled = make("p", "note tiny pooled");
    this.picture = make("canvas", "picture");
    this.words = make("div", "note");
    this.name = make("strong");
    this.card = new Floating();
    this.card.element.append(this.name, this.picture, this.words);
    this.element = make("div", "left", [this.order, this.filter, this.box, this.pooled, this.card.element]);
    /** By "block head". @type {Map<string, Thumbnail>} */
    this.thumbnails = new Map();
    this.stop = new TabStop();
    /** @type {[number, number] | null} */
    this.current = null;

    this.select.onchange = () => explorer.choose({ sort: this.select.value || null, least: null });
    this.range.oninput = () => explorer.choose({ least: Number(this.range.value) });
    this.box.addEventListener("pointerover", (event) => this.over(event));
    this.box.addEventListener("pointerleave", () => this.shut());
    this.box.addEventListener("focusin", (event) => this.over(event));
    this.box.addEventListener("focusout", () => this.shut());
    this.box.addEventListener("click", (event) => {
      const at = this.at(event);
      if (!at) return;
      if (event.shiftKey || Array.isArray(explorer.choice.heads)) explorer.compare(at);
      else explorer.choose({ block: at[0], head: at[1], ...(explorer.choice.heads === MEAN ? { heads: "one" } : {}) });
    });
    onKeys(this.box, (event) => this.key(event));
  }

  /** The head of a thumbnail. @param {Event} event @returns {[number, number] | null} */
  at(event) {
    const button = closest(event, ".head");
    return button && [Number(button.dataset.block), Number(button.dataset.head)];
  }

  /** @param {import("./settings.js").Head} at a head, not the mean of all */
  of(at) {
    return /** @type {Thumbnail} */ (this.thumbnails.get(at.join(" ")));
  }

  /** Draws everything again: there are other numbers. */
  build() {
    const { numbers } = this.explorer;
    const orders = numbers.facts.map((name) => make("option", "", `by ${FACTS[name].name}`, { value: name }));
    this.select.replaceChildren(make("option", "", "by place", { value: "" }), ...orders);
    this.order.hidden = !numbers.facts.length;
    const notes = [
      numbers.pooling > 1 ? `Small pictures: a cell is the largest of ${numbers.pooling} × ${numbers.pooling}.` : "",
      numbers.sharing > 1 ? "Heads under one line share their keys and values (grouped-query attention)." : "",
      numbers.windows?.some(Boolean) ? "A block marked ◧ has a window: its tokens read only the nearest before them." : "",
    ].filter(Boolean);
    this.pooled.hidden = !notes.length;
    this.pooled.textContent = notes.join(" ");
    this.thumbnails.clear();
    for (let block = 0; block < numbers.n_block; block++) {
      for (let head = 0; head < numbers.n_head; head++) {
        const label = `block ${block}, ${numbers.headName(block, head)}. ${numbers.average([block, head])}`;
        const canvas = make("canvas"),
          value = make("span", "value");
        const look = { "data-block": block, "data-head": head, "aria-label": label, tabindex: -1 };
        const button = make("button", "bare tiny head", [canvas, value], look);
        this.thumbnails.set(`${block} ${head}`, { at: [block, head], button, canvas, value, mark: "" });
      }
    }
    this.colours();
  }

  /** Paint every thumbnail: once, and again where the scale changes. */
  colours() {
    const { numbers, choice, palettes } = this.explorer;
    const thumbnails = numbers.arrays[choice.show === "rest" ? "without first" : "thumbnails"];
    const [, n_head, down, across] = thumbnails.shape;
    /** @type {(value: number) => number} */
    const share = choice.log ? logarithmic : (value) => value;
    for (const { at, canvas } of this.thumbnails.values()) {
      const start = (at[0] * n_head + at[1]) * down * across;
      paint(canvas, down, across, (row, column) => share(thumbnails[start + row * across + column]), palettes.pattern);
    }
  }

  /** The heads that are shown, in their order. */
  listed() {
    const { numbers, choice } = this.explorer;
    const { sort, least } = choice;
    const all = [...this.thumbnails.values()];
    if (!sort) return all;
    const { fewest } = FACTS[sort];
    /** @param {Thumbnail} one */
    const value = ({ at }) => numbers.fact(sort, ...at);
    /** @param {Thumbnail} one */
    const passes = (one) => least === null || (fewest ? value(one) <= least : 100 * value(one) >= least);
    return all.filter(passes).sort((a, b) => (fewest ? value(a) - value(b) : value(b) - value(a)));
  }

  /** Put the thumbnails where they belong. */
  arrange() {
    const { numbers, choice } = this.explorer;
    const { sort, least } = choice;
    this.select.value = sort ?? "";
    this.filter.hidden = !sort;
    if (sort) {
      const { fewest } = FACTS[sort];
      const most = fewest ? Math.ceil(numbers.nKey) : 100;
      Object.assign(this.range, { min: fewest ? 1 : 0, max: most, step: 1 });
      this.range.value = String(least ?? (fewest ? most : 0));
      this.limit.textContent = fewest ? `≤ ${this.range.value} tokens` : `≥ ${this.range.value} %`;
    }
    const listed = this.listed(),
      shown = listed.map(({ button }) => button);
    this.box.classList.toggle("sorted", Boolean(sort));
    if (sort) {
      for (const { at, button, value } of listed) {
        const fact = numbers.fact(sort, ...at);
        button.style.gridArea = "";
        value.replaceChildren(
          make("span", "of", `block ${at[0]} head ${at[1]}`),
          make("b", "", FACTS[sort].fewest ? `${brief(fact)} tokens` : percent(fact)),
        );
      }
      this.box.style.gridTemplate = "";
      this.box.replaceChildren(...(shown.length ? shown : [make("p", "note", "No head reaches this value.")]));
    } else {
      const { n_block, n_head } = numbers;
      const cells = [make("span", "faint tiny axis across", "head"), make("span", "faint tiny axis down", "block")];
      /** @param {string} name @param {string} area */
      const tick = (name, area) => {
        const one = make("span", "faint tiny tick", name);
        one.style.gridArea = area;
        cells.push(one);
        return one;
      };
      for (let head = 0; head < n_head; head++) tick(String(head), `2 / ${head + 3}`);
      for (let block = 0; block < n_block; block++) {
        const sentence = numbers.windowed(block);
        tick(sentence ? `${block}◧` : String(block), `${block + 3} / 2`).title = sentence;
      }
      for (let head = 0; numbers.sharing > 1 && head < n_head; head += numbers.sharing) {
        const group = make("span", "sharing", undefined, { title: numbers.shared(head), "aria-hidden": "true" });
        group.style.gridArea = `2 / ${head + 3} / 3 / ${head + 3 + numbers.sharing}`;
        cells.push(group);
      }
      for (const { at, button, value } of listed) {
        value.replaceChildren();
        button.style.gridArea = `${at[0] + 3} / ${at[1] + 3}`;
      }
      const columns = `0.9rem minmax(1.1rem, max-content) repeat(${n_head}, max-content)`;
      this.box.style.gridTemplate = `repeat(${n_block + 2}, max-content) / ${columns}`;
      this.box.replaceChildren(...cells, ...shown);
    }
    this.resize();
  }

  /** As large as there is room. */
  resize() {
    const { numbers, choice, narrow, isWhole } = this.explorer;
    const unit = rem();
    const others = this.order.offsetHeight + this.filter.offsetHeight + this.pooled.offsetHeight + 2 * unit;
    const width = this.element.clientWidth - BESIDE * unit;
    // A picture is as high as it needs to be.
    const room = isWhole ? Infinity : narrow ? HEIGHT_ON_A_PHONE * unit : this.element.clientHeight - others;
    const height = room - ABOVE * unit;
    const [, , down, across] = numbers.arrays.thumbnails.shape;
    const wide = Math.floor(width / numbers.n_head - 3),
      high = Math.floor(height / numbers.n_block - 3);
    // Where the blocks do not fit below each other, the heads scroll: then they need not be small.
    const fitting = high < SMALLEST_THUMBNAIL ? Math.min(wide, SCROLLED_THUMBNAIL * unit) : Math.min(wide, high);
    const size = clamp(choice.sort ? SORTED_THUMBNAIL * unit : fitting, SMALLEST_THUMBNAIL, LARGEST_THUMBNAIL * unit);
    this.box.style.setProperty("--across", `${Math.round(size * Math.min(1, across / down))}px`);
    this.box.style.setProperty("--down", `${Math.round(size * Math.min(1, down / across))}px`);
    this.reveal();
  }

  /** Where the heads scroll, the one that is chosen is seen. */
  reveal() {
    const own = this.of(this.explorer.selection.chosen).button;
    if (own.isConnected) bringIntoView(own, this.box, this.box.clientHeight / 4);
  }

  /** Mark what is chosen; only buttons that change are touched. */
  mark() {
    const { heads, marked, colours, chosen } = this.explorer.selection;
    const marks = new Map(marked.map((at, which) => [at.join(" "), heads.length > 1 ? colours[which] : "var(--st-text-color)"]));
    for (const [name, thumbnail] of this.thumbnails) {
      const { button } = thumbnail,
        colour = marks.get(name) ?? "";
      if (thumbnail.mark === colour) continue;
      thumbnail.mark = colour;
      button.setAttribute("aria-pressed", String(colour !== ""));
      button.classList.toggle("chosen", colour !== "");
      button.style.setProperty("--mark", colour);
    }
    const own = this.of(chosen).button;
    this.stop.reach(own.isConnected ? own : /** @type {HTMLElement | null} */ (this.box.querySelector(".head")));
  }

  /** @param {PointerEvent | FocusEvent} event */
  over(event) {
    const at = this.at(event);
    if (!at) return this.shut();
    // A finger needs none: the head that it chooses is shown large next to the grid.
    const isWanted = event instanceof PointerEvent ? event.pointerType !== "touch" : closest(event, ":focus-visible");
    if (isWanted) this.open(at);
  }

  /** Show a head larger, next to its thumbnail. @param {[number, number]} at */
  open(at) {
    const { explorer } = this;
    if (this.current && same(at, this.current)) return;
    this.current = at;
    const { numbers } = explorer;
    this.name.textContent = `Block ${at[0]}, ${numbers.headName(...at)}`;
    this.words.textContent = numbers.average(at);
    const { button, canvas } = this.of(at);
    if (!numbers.has(at[0])) paintAs(this.picture, canvas);
    else {
      const dots = CARD_DOTS * (globalThis.devicePixelRatio || 1);
      const show = explorer.choice.show === "rest" ? "rest" : "pattern"; // as its thumbnail
      explorer.paint(this.picture, at, show, Math.ceil(Math.max(numbers.nQuery, numbers.nKey) / dots));
    }
    // Beside all heads, so that the others stay in sight.
    const edge = explorer.narrow ? undefined : this.box.getBoundingClientRect().right;
    this.card.open(button, beside, { edge });
  }

  shut() {
    this.current = null;
    this.card.close();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const at = this.at(event);
    if (!at) return false;
    const to = this.walked(event.key, at);
    if (to) {
      this.stop.focus(this.of(to).button, this.box);
      this.open(to); // WebKit does not count this as a focus that a key gave, if the last one was given by a click
    } else if (event.key === "+") this.explorer.compare(at);
    else if (event.key === "Escape") this.shut();
    else return false;
    return true;
  }

  /** The head that a key leads to; null for another key. @param {string} key @param {[number, number]} at @returns {[number, number] | null} */
  walked(key, at) {
    const { numbers, choice } = this.explorer;
    if (choice.sort) {
      const list = this.listed();
      const from = list.findIndex((other) => same(other.at, at));
      const place = along(key, from, list.length, { ...ACROSS, ...DOWN });
      return place === null ? null : list[place].at;
    }
    const to = walked({ row: at[0], column: at[1] }, key, numbers.n_block, numbers.n_head);
    return to && [to.row, to.column];
  }
}
