// The sampling ledger: the next token as a pipeline over the whole vocabulary. The server sends the logits once; every stage is
// computed here, so that no slider waits.

import { Choices } from "../kit/choices.js";
import { isDark } from "../kit/colour.js";
import { announce, tools } from "../kit/details.js";
import { button, make } from "../kit/elements.js";
import { isAlone } from "../kit/keys.js";
import { shortened } from "../kit/text.js";
import { View, view } from "../kit/view.js";
import { CHOICES, ORDERS, VOCABULARY, notches } from "./choices.js";
import { drawnOften } from "./draws.js";
import { Draw } from "./interval.js";
import { Heads } from "./lanes.js";
import { List } from "./list.js";
import { codeOf, columnsOf } from "./numbers.js";
import { pictureOf } from "./picture.js";
import { Stages } from "./stages.js";
import { factsOf, readingOf } from "./words.js";

// Within these milliseconds nobody can have read a new text: a click is then the second half of a double click.
const UNREAD = 400;

// The labels that came last: they are sent once for each vocabulary.
const kept = { vocabulary: "", labels: /** @type {string[]} */ ([]) };

export class Ledger extends View {
  /** @param {HTMLElement} root */
  constructor(root) {
    super(root);
    /** @type {any} */
    this.header = null; // of what is shown
    /** @type {Stages} */
    this.stages = /** @type {any} */ (null); // until the first text
    /** @type {Float64Array} */
    this.seeds = /** @type {any} */ (undefined); // the random number of each; none where nothing is drawn
    /** @type {Int32Array | null} */
    this.observed = null; // how often each token came in many draws
    this.drawn = -1; // the token that the number falls on
    this.lowest = 0; // the least finite logit
    this.arrived = -Infinity; // when the text took the place of another
    /** @type {number | null} */
    this.lost = null; // the text whose labels were asked for
    /** @type {number | null} */
    this.frame = null; // the next one to be drawn
    this.dirty = this.falls = false;
    /** @type {Choices<import("./choices.js").Chosen & Record<string, any>>} */
    this.choices = new Choices();
    this.facts = make("p", "facts");
    this.vain = make("span", "", "", { role: "status" });
    this.orders = make("select", "tool", undefined, { "aria-label": "Order of the tokens" });
    const search = { type: "search", placeholder: "find a token", "aria-label": "Find a token" };
    this.finding = make("input", "tool find", undefined, search);
    const help = "On a logarithmic scale, from 0.1 % up: equal ratios have equal lengths, so that small probabilities show";
    this.logs = button("log bars", () => this.choose({ log: !this.chosen.log }), { title: help });
    this.length = make("span", "faint small length");
    // It stays until it is closed: a note that went by itself would move what is below.
    const close = button("Close", () => (this.asked.hidden = true));
    /** The rejected choices of a link, in words. @type {HTMLElement} */
    this.asked = make("div", "note asked", [this.vain, " ", close], { hidden: "" });
    this.heads = new Heads();
    this.list = new List(this);
    this.reading = make("p", "cut small reading");
    this.draw = new Draw(this);
    this.sliders = [...this.heads.sliders, this.draw.slider];
    root.replaceChildren(
      ...[this.facts, this.asked, this.heads.titles, this.heads.sums],
      ...[this.list.element, this.reading, this.draw.element, this.buildBelow()],
    );
    this.whenResized(() => {
      this.dirty = true; // names fit or do not
      this.ask();
    }, this.list.element);
    this.listen();
  }

  buildBelow() {
    this.orders.append(...Object.entries(ORDERS).map(([value, name]) => make("option", "", name, { value })));
    this.orders.onchange = () => this.choose({ tokens: this.orders.value });
    this.finding.oninput = () => this.arrange();
    const choice = make("div", "tools", [this.orders, this.finding, this.logs, this.length]);
    const details = tools(this.root, {
      name: "next_token",
      numbers: () => columnsOf(this),
      code: () => codeOf(this),
      picture: () => pictureOf(this),
    });
    return make("div", "row below", [choice, details]);
  }

  listen() {
    const { root } = this;
    root.addEventListener("input", (event) => {
      const slider = this.sliders.find(({ range }) => range === event.target);
      if (slider) this.choose({ [slider.key]: slider.chosen }, slider.key === "seed");
    });
    // The page has its own keys, and text that is typed here is not meant for them.
    root.addEventListener("keydown", (event) => {
      if (!isAlone(event)) return;
      if (/** @type {HTMLElement} */ (event.target).matches("input, select, button")) event.stopPropagation();
      if (event.key === "Escape" && event.target === this.finding) this.find("");
    });
  }

  // Showing

  /** @param {any} payload */
  show(payload) {
    const { generation, vocabulary, arrays } = payload;
    if (kept.vocabulary !== vocabulary && arrays.labels) {
      Object.assign(kept, { vocabulary, labels: JSON.parse(new TextDecoder().decode(arrays.labels)) });
    }
    if (kept.vocabulary !== vocabulary) {
      // They are asked for once for each text.
      if (this.lost !== generation) this.send("lost", { generation });
      this.lost = generation;
      return;
    }
    const header = { ...payload, labels: kept.labels };
    const another = generation !== this.header?.generation;
    const first = !this.header;
    this.header = header;
    this.root.style.colorScheme = isDark(this.root) ? "dark" : "light";
    if (another) this.prepare();
    const before = first ? undefined : this.choices.written;
    if (first) this.readAddress();
    else {
      this.choices.fit(header.declared);
      this.choices.write(); // the page or a step back may have changed the address
    }
    const asked = this.choices.asked(header, before);
    if (asked) this.choose(asked, true);
    this.dirty = true;
    if (another) this.arrange(this.chosen.tokens === VOCABULARY); // there every token keeps its place
    this.ask();
  }

  /** Shows a text, perhaps of another model than the one before; `arrived` says when it replaced that one. */
  prepare() {
    const { header } = this;
    this.arrived = this.stages ? performance.now() : -Infinity;
    this.stages = new Stages(header.arrays.logits, header.used);
    this.seeds = header.arrays.numbers;
    this.observed = null;
    this.root.classList.toggle("plain", !this.seeds);
    this.heads.prepare(header.takes);
    this.list.prepare();
    this.sliders.find(({ key }) => key === "top_k")?.offer(notches(this.stages.size));
    this.draw.taking.hidden = !header.takes;
    const { logits, highest } = this.stages;
    this.lowest = logits.reduce((least, z) => (Number.isFinite(z) ? Math.min(least, z) : least), highest);
  }

  get chosen() {
    return this.choices.values;
  }

  /** Begin with the choices in the address, and name those that are impossible. */
  readAddress() {
    const vain = this.choices.begin(this.header.declared).map(([key, said]) => {
      const began = CHOICES[key].says(this.chosen[key]);
      return `${key} = “${shortened(said, 80)}”, which is not available here; the view began with ${began}.`;
    });
    this.asked.hidden = !vain.length;
    this.vain.textContent = vain.length ? `The link asks for ${vain.join(" It asks for ")}` : "";
  }

  /** Change some choices; `falls` lets the random number fall again. @param {Record<string, any>} changes @param {boolean} [falls] */
  choose(changes, falls = false) {
    this.choices.take(changes);
    if ("temperature" in changes || "top_k" in changes || "top_p" in changes) this.observed = null;
    if ("tokens" in changes) this.arrange();
    this.dirty = true;
    this.falls ||= falls;
    this.choices.write();
    this.ask();
  }

  /** @param {boolean} [stays] */
  arrange(stays = false) {
    this.list.arrange(this.finding.value, stays);
    this.ask();
  }

  /** @param {string} text */
  find(text) {
    this.finding.value = text;
    this.arrange();
  }

  // Of the text that is shown

  /** The limit that took a token out of the draw, "" if none did. @param {number} token */
  cut(token) {
    return this.seeds ? this.stages.cut(token) : "";
  }

  /** The random number of the seed. */
  get number() {
    return this.seeds[this.chosen.seed];
  }

  // Drawing, once a frame

  ask() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.render();
    });
  }

  render() {
    if (!this.stages) return;
    if (this.dirty) this.compute();
    this.list.render();
    this.reading.replaceChildren(...readingOf(this.list.at, this));
  }

  /** Computes every stage again, and all that does not depend on where the list is scrolled to. */
  compute() {
    const { stages, chosen } = this;
    this.dirty = false;
    stages.set(chosen);
    this.drawn = this.seeds ? stages.draw(this.number) : -1;
    for (const slider of this.sliders) if (slider.key in chosen) slider.show(chosen[slider.key]);
    this.orders.value = chosen.tokens;
    this.logs.setAttribute("aria-pressed", String(chosen.log));
    this.length.textContent = chosen.log ? "bars: 0.1 to 100 %, logarithmic" : "bars: 0 to 100 %";
    this.heads.render(this);
    this.facts.replaceChildren(...factsOf(this));
    if (this.seeds) this.draw.render(this.falls);
    this.falls = false;
  }

  // Actions of a reader

  drawMany() {
    this.render(); // a slider may just have moved
    this.observed = drawnOften(this.stages);
    this.dirty = true;
    this.ask();
    announce(this.root, this.draw.test());
  }

  /** Take a token: it joins the text. Not at the second half of a double click, under which another text has come. @param {number} token @param {MouseEvent | null} [click] */
  take(token, click = null) {
    const isUnread = click && click.detail > 1 && performance.now() - this.arrived < UNREAD;
    if (isUnread || !this.header.takes || token >= this.header.used) return;
    this.send("take", { token, generation: this.header.generation });
    if (this.finding.value) this.find(""); // found
  }
}

export default view(Ledger);
