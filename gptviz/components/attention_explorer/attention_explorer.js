// Which token reads which: all heads at a glance, tokens with lines and shades, one head as a heatmap, and the arithmetic of a cell.
// Everything on screen is computed here from the numbers in the payload; the page's address holds what was chosen.

import { inAddress } from "../kit/address.js";
import { Choices } from "../kit/choices.js";
import { background, diverging, sequential } from "../kit/colour.js";
import { announce, tools } from "../kit/details.js";
import { focusedBeside, make } from "../kit/elements.js";
import { paint, pooled } from "../kit/heatmap.js";
import { walked } from "../kit/keys.js";
import { ROLES } from "../kit/roles.js";
import { rem } from "../kit/size.js";
import { shortened } from "../kit/text.js";
import { View, view } from "../kit/view.js";
import { Cell } from "./cell.js";
import { Controls } from "./controls.js";
import { codeOfHeads, tableOfHeads } from "./export.js";
import { Grid } from "./grid.js";
import { Heat } from "./heat.js";
import { Numbers } from "./numbers.js";
import { drawing } from "./picture.js";
import { readOut } from "./readout.js";
import { OF_HEADS, Selection } from "./selection.js";
import { SHOWS, SIDES } from "./settings.js";
import { Tokens } from "./tokens.js";

/** @typedef {import("./settings.js").Side} Side @typedef {import("./numbers.js").Payload} Payload */

const HINT_OF_WORDS =
  "Click a word to keep it selected; then click another one to see the share between the two. Escape goes back.";
const HINT = "Click a token to keep it selected; then click another one to see the arithmetic between the two. Escape goes back.";

// Where the view has less room (in rem), its parts stand one below the other.
const NARROWEST = 40;
// Room (in rem) that stays free below the heatmap for what a head does on average.
const ABOUT = 3.8;
// A picture names all tokens up to this number.
const MOST_NAMED = 100;

/** @typedef {import("./settings.js").Choice} Choice */

/** Joins the parts: it holds the choice and what is under the pointer, and tells each part when to draw. */
export class Explorer extends View {
  /** @param {HTMLElement} root */
  constructor(root) {
    super(root);
    /** @type {{ query?: number, key?: number }} */
    this.hover = {};
    this.isWhole = false;
    this.isHeadChosen = false; // by the reader, or by the link
    /** @type {Choices<Choice>} */
    this.choices = new Choices(({ query, key }) => (this.numbers.isCell(query, key) ? null : "key"));
    this.notices = make("div", "notices", undefined, { role: "status" });
    this.controls = new Controls(this);
    this.grid = new Grid(this);
    this.readout = make("div", "readout");
    this.tokens = new Tokens(this);
    this.cell = new Cell(this);
    this.heat = new Heat(this);
    const middle = make("div", "middle", [this.readout, this.tokens.element, this.cell.element]);
    this.body = make("div", "body", [this.grid.element, middle, this.heat.element]);
    const details = {
      name: "attention",
      numbers: () => tableOfHeads(this.selection),
      code: () => codeOfHeads(this.selection),
      picture: () => drawing(this),
    };
    this.note = make("span", "note");
    const foot = make("div", "row foot", [this.note, tools(root, details)]);
    root.replaceChildren(this.notices, this.controls.element, this.body, foot);
    this.whenResized(() => this.resized(), root);
  }

  // What is shown

  /** @param {Payload} payload */
  show(payload) {
    const before = this.payload;
    const isNew = before?.of !== payload.of,
      isFirst = !before;
    const colours = `${background(this.root)} ${getComputedStyle(this.root).color}`;
    // What was chosen before a command brought other numbers: it is chosen again where the command is taken back.
    const chosen = isFirst ? undefined : this.choices.written;
    if (payload !== before) {
      /** @type {Payload | undefined} */
      this.payload = payload;
      /** @type {Numbers} */
      this.numbers = new Numbers(payload);
      this.choices.declared = payload.declared;
    }
    if (isFirst) this.begin();
    else if (isNew) {
      this.notices.replaceChildren();
      this.choices.fit(payload.declared);
    }
    // What a command of the page asks for ("Try this").
    const asked = this.choices.asked(payload, chosen),
      isRepainted = isNew || colours !== this.coloured;
    if (asked) {
      this.choices.take(asked);
      this.notices.replaceChildren();
    }
    this.select();
    if (isRepainted) {
      /** @type {string | undefined} */
      this.coloured = colours;
      this.scales();
      this.grid.build();
      this.grid.arrange();
      if (isNew) this.tokens.build();
      this.resized();
    }
    if (isRepainted || asked || before?.first !== payload.first) {
      this.hover = {};
      this.chosenChanged();
    }
  }

  /** Take the choices of the address, and name those that are impossible. */
  begin() {
    const refused = this.choices.begin(this.choices.declared);
    // A head that the address names stays in it: which head is the usual one depends on the text and on the model.
    this.isHeadChosen = ["block", "head"].some((key) => inAddress(key) !== null && !refused.some(([other]) => other === key));
    this.notices.replaceChildren(
      ...refused.map(([key, value]) => {
        const why = `The link asks for ${key} = “${shortened(value, 80)}”, which is not available here`;
        const shown = this.choices.written[key];
        return make("p", "notice", `${why}; showing ${shown === null ? "none" : `“${shown}”`}.`);
      }),
    );
  }

  // Choices

  get choice() {
    return this.choices.values;
  }

  /** @param {Partial<Choice>} changes */
  choose(changes) {
    this.isHeadChosen ||= changes.head !== undefined;
    Object.assign(this.choice, changes);
    this.chosenChanged(changes);
  }

  select() {
    /** @type {Selection} */
    this.selection = new Selection(this.numbers, this.choice);
  }

  /** @param {object | null} [changes] */
  chosenChanged(changes = null) {
    /** @param {string[]} keys */
    const touches = (...keys) => !changes || keys.some((key) => key in changes);
    this.load();
    this.select();
    if (touches("log", "show")) this.grid.colours();
    if (touches("sort", "least")) this.grid.arrange();
    if (touches("block", "head", "heads", "show")) this.grid.mark();
    if (touches("block", "head", "heads", "show", "log")) this.heat.draw();
    this.controls.draw();
    this.choices.write(this.isHeadChosen ? ["block", "head"] : []);
    this.later();
  }

  /** Ask for the numbers of the chosen block where they are not here. */
  load() {
    const { numbers, choice } = this;
    const { block } = choice;
    // Heads of blocks that are not here together cannot be compared.
    const isPart = numbers.count < numbers.n_block;
    if (isPart && Array.isArray(choice.heads)) choice.heads = choice.heads.filter(([other]) => other === block);
    if (numbers.has(block)) this.asking = null;
    else if (this.asking !== block) {
      /** @type {number | null | undefined} */
      this.asking = block;
      this.send("block", { block, of: numbers.of });
    }
  }

  /** What the button switches off: block and head, or null for the head where the mean of all is shown. @returns {[number, number | null]} */
  get switched() {
    const { block, head } = this.choice;
    return [block, this.selection.isMean ? null : head];
  }

  /** Ask for the model without what is chosen, or with it again. */
  switch() {
    const [block, head] = this.switched;
    this.send("switch", { block, head, of: this.numbers.of });
  }

  /** Add a head to those compared, or take it out; the last one stays. @param {[number, number]} at */
  compare(at) {
    const changes = this.selection.compared(at);
    if (changes) this.choose(changes);
    else if (this.selection.heads.length >= OF_HEADS.length)
      announce(this.root, `No more than ${OF_HEADS.length} heads can be compared`);
  }

  /**
   * Hold a token, or let it go; with one of the other side held, open the cell of the two.
   *
   * @param {Side} side
   * @param {number} index
   */
  fix(side, index) {
    const other = this.choice[SIDES[side]];
    if (other !== null) {
      const [query, key] = side === "query" ? [index, other] : [other, index];
      if (this.isVisible(query, key)) this.choose({ query, key });
      return;
    }
    this.choose({ [side]: this.choice[side] === index ? null : index });
    announce(this.root, this.readout.textContent);
  }

  /** @param {number} query @param {number} key */
  open(query, key) {
    if (this.choice.query === query && this.choice.key === key) this.free();
    else this.choose({ query, key });
  }

  /** Whether a query may read a key in what is shown. @param {number} query @param {number} key */
  isVisible(query, key) {
    return this.numbers.isVisible(query, key, this.choice.block, this.choice.show);
  }

  /**
   * The cell that a key leads to from another one, among those that are visible; null for a key that does not walk.
   *
   * @param {string} pressed
   * @param {{ query: number, key: number }} from
   */
  walked(pressed, { query, key }) {
    const { nQuery, nKey } = this.numbers;
    const to = walked({ row: query, column: key }, pressed, nQuery, nKey, ({ row, column }) => this.isVisible(row, column));
    return to && { query: to.row, key: to.column };
  }

  /** From a cell back to its token, from a token back to none. */
  free() {
    const { query, key, direction } = this.choice;
    this.hover = {};
    if (query !== null && key !== null) this.choose({ [direction === "out" ? "key" : "query"]: null });
    else this.choose({ query: null, key: null });
  }

  /**
   * The pointer or the focus is over a query, a key, both or nothing.
   *
   * @param {{ query?: number, key?: number }} at
   * @param {boolean} [aloud]
   */
  look(at, aloud = false) {
    if (at.query === this.hover.query && at.key === this.hover.key) return;
    this.hover = at;
    this.later(aloud);
  }

  // Colours

  /** The scales of colour, on this page's background. */
  scales() {
    /** @type {ArrayLike<number>} */
    this.signed = diverging(this.root);
    /** @type {Record<string, ArrayLike<number>>} */
    this.palettes = { pattern: sequential(ROLES.pattern, this.root), value: sequential(ROLES.value, this.root) };
  }

  /**
   * A head in all its cells; of `pool` × `pool` cells together the largest.
   *
   * @param {HTMLCanvasElement} canvas
   * @param {import("./settings.js").Head} at
   * @param {import("./settings.js").Quantity} show
   * @param {number} [pool]
   */
  paint(canvas, [block, head], show, pool = 1) {
    const { numbers, selection } = this,
      { nQuery, nKey } = numbers;
    const largest = show === "value" ? selection.largest : 1;
    /** @param {number} query @param {number} key */
    const value = (query, key) => numbers[show](block, head, query, key);
    const most = pooled(value, nQuery, nKey, pool);
    /** @param {number} row @param {number} column */
    const place = (row, column) => selection.scaled(most(row, column), largest);
    paint(canvas, Math.ceil(nQuery / pool), Math.ceil(nKey / pool), place, this.palettes[SHOWS[show].role]);
  }

  // What is on screen

  resized() {
    const width = this.root.clientWidth;
    if (!this.numbers || !width) return;
    this.narrow = width < NARROWEST * rem();
    this.root.classList.toggle("narrow", this.narrow);
    this.grid.resize();
    this.tokens.resize();
    this.heat.resize();
    this.later();
  }

  /** The room of the heatmap, in pixels: what the parts above and below it leave, in a picture as much as its names need. @param {Heat} heat */
  heatRoom({ element, title, legend }) {
    const unit = rem();
    const width = element.clientWidth || 17 * unit;
    if (this.isWhole) {
      const longest = Math.max(this.numbers.nQuery, this.numbers.nKey);
      const named = (longest <= MOST_NAMED ? longest + 8 : MOST_NAMED) * 0.8 * unit;
      return { width: Math.max(width, named), height: Math.max(width, named) };
    }
    if (this.narrow) return { width, height: width };
    const height = element.clientHeight - title.offsetHeight - legend.offsetHeight - ABOUT * unit;
    return { width, height: Math.max(height, 10 * unit) };
  }

  /** Draw with the next frame, once for all changes until then. */
  later(aloud = false) {
    this.aloud ||= aloud;
    this.frame ??= requestAnimationFrame(() => {
      /** @type {number | null | undefined} */
      this.frame = null;
      this.draw();
    });
  }

  /**
   * The result of `act`, called while the view is laid out for a picture: nothing scrolls, nothing is cut off. The reader does not see it.
   *
   * @template Result
   * @param {() => Result} act
   */
  whole(act) {
    /** @param {boolean} isWhole */
    const lay = (isWhole) => {
      this.isWhole = isWhole;
      this.root.classList.toggle("whole", isWhole);
      this.resized();
      this.draw();
    };
    lay(true);
    try {
      return act();
    } finally {
      lay(false);
    }
  }

  draw() {
    const { selection, readout } = this;
    const { isOpen } = selection;
    this.drawCell(isOpen);
    this.note.textContent = this.numbers.dHead ? HINT : HINT_OF_WORDS;
    const aim = selection.aim(this.hover, !this.tokens.inColumns);
    if (!isOpen) {
      this.tokens.draw(aim);
      readOut(readout, selection, aim);
    }
    this.heat.point(aim);
    if (this.aloud) announce(this.root, readout.textContent);
    this.aloud = false;
    this.root.dataset.drawn = String(Number(this.root.dataset.drawn ?? 0) + 1);
  }

  /** Open the arithmetic of a cell, another one, or close it; the focus is not lost. @param {boolean} isOpen */
  drawCell(isOpen) {
    const { numbers, choice, selection } = this;
    const places = [numbers.of, numbers.first, choice.query, choice.key, this.coloured];
    const cell = isOpen ? [...places, ...selection.opened].join(" ") : "";
    if (cell === this.drawn) return;
    const had = focusedBeside(this.root);
    /** @type {string | undefined} */
    this.drawn = cell;
    this.tokens.element.hidden = this.readout.hidden = isOpen;
    this.cell.draw();
    // The chip or button that had the focus is gone.
    if (isOpen && this.tokens.element.contains(had)) this.cell.element.focus({ preventScroll: true });
    else if (!isOpen && this.cell.element.contains(had))
      /** @type {HTMLElement} */ (this.tokens.stop.element).focus({ preventScroll: true });
    if (isOpen) announce(this.root, this.cell.said());
    else this.tokens.resize();
  }
}

export default view(Explorer);
