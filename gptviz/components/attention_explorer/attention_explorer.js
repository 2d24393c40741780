// Who reads whom: all heads at a glance, tokens with lines and shades, one head as a heatmap, and the arithmetic of a cell.
// Everything on screen is computed here from the numbers in the payload; the page's address holds what was chosen.

import { inAddress, toAddress } from "../kit/address.js";
import { background, diverging, logarithmic, paint, sequential } from "../kit/colour.js";
import { announce, tools } from "../kit/details.js";
import { make } from "../kit/elements.js";
import { ROLES } from "../kit/roles.js";
import { brief, chip, percent, shortened } from "../kit/text.js";
import { view } from "../kit/view.js";
import { Cell } from "./cell.js";
import { Grid } from "./grid.js";
import { Heat } from "./heat.js";
import { Numbers } from "./numbers.js";
import { drawing } from "./picture.js";
import { MEAN, SHOWS, SIDES, clamp, same } from "./settings.js";
import { Tokens, strongest } from "./tokens.js";

const DEFAULTS = { heads: "one", show: "pattern", direction: "out", query: null, key: null, sort: null, least: null, log: false };
// Colours of heads side by side, those of Tol's sets that read well on white and on black; their order says it too.
const OF_HEADS = [
  ...["#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377"],
  ...["#EE8866", "#44BB99", "#997700", "#99AABB", "#BB5566", "#77AADD"],
];
// So many heads have their strongest token in words.
const HEADS_TOLD = 5;

/** The number of the last command obeyed, for as long as this page of the browser lives: a view that
 *  comes anew obeys none of before. */
const OBEYED = Symbol.for("gptviz attention command");

function nameOf([block, head]) {
  return `Block ${block}, ${head === MEAN ? "mean of all heads" : `head ${head}`}`;
}

class Explorer {
  constructor(root) {
    this.root = root;
    this.hover = {};
    this.notices = make("div", "notices", undefined, { role: "status" });
    this.grid = new Grid(this);
    this.tokens = new Tokens(this);
    this.heat = new Heat(this);
    this.cell = new Cell(this);
    this.bar = make("div", "bar");
    this.readout = make("div", "readout");
    const middle = make("div", "middle");
    middle.append(this.readout, this.tokens.element, this.cell.element);
    this.body = make("div", "body");
    this.body.append(this.grid.element, middle, this.heat.element);
    const foot = make("div", "row foot");
    const hint = "A click holds a token; a click on another one then opens the arithmetic of the two. Escape goes back.";
    const behind = { numbers: () => this.table(), code: () => this.code(), picture: () => drawing(this) };
    foot.append(make("span", "note", hint), tools(root, { name: "attention", ...behind }));
    root.replaceChildren(this.notices, this.bar, this.body, foot);
    this.controls();
    this.observer = new ResizeObserver(() => this.resized());
    this.observer.observe(root);
  }

  close() {
    this.observer.disconnect();
    cancelAnimationFrame(this.frame);
    this.grid.shut();
  }

  // What is shown

  show(data) {
    const before = this.numbers;
    const isNew = before?.of !== data.of,
      isFirst = !before;
    const colours = `${background(this.root)} ${getComputedStyle(this.root).color}`;
    this.numbers = new Numbers(data);
    if (isFirst) this.begin();
    else if (isNew) this.fit();
    const isObeyed = this.obey(data),
      isRepainted = isNew || colours !== this.coloured;
    if (isRepainted) {
      this.coloured = colours;
      this.scales();
      this.grid.build();
      this.grid.arrange();
      if (isNew) this.tokens.build();
      this.resized();
    }
    if (isRepainted || isObeyed || before.first !== data.first) {
      this.hover = {};
      this.chosenChanged();
    }
  }

  /** What the address asks for, and a line on what it asks for in vain. */
  begin() {
    const keys = ["block", "head", ...Object.keys(DEFAULTS)];
    const asked = Object.fromEntries(keys.map((key) => [key, inAddress(key)]).filter(([, value]) => value !== null));
    this.choice = this.defaults();
    const refused = this.take(asked);
    this.notices.replaceChildren(
      ...refused.map(([key, value]) => {
        const why = `The link asks for ${key} = “${shortened(value, 80)}”, which is not to be had here`;
        return make("p", "notice", `${why}; showing ${this.said(key)}.`);
      }),
    );
  }

  said(key) {
    const value = this.choice[key];
    return value === null ? "none" : `“${value}”`;
  }

  defaults() {
    const { n_block, n_head, start } = this.numbers;
    return { ...DEFAULTS, ...start, block: Math.min(start.block, n_block - 1), head: Math.min(start.head, n_head - 1) };
  }

  /** Take over the values that are possible; the others are given back. */
  take(asked) {
    const { numbers } = this;
    const whole = (value, count) => (/^\d{1,6}$/.test(String(value)) && Number(value) < count ? Number(value) : undefined);
    const readers = {
      block: (value) => whole(value, numbers.n_block),
      head: (value) => whole(value, numbers.n_head),
      heads: (value) => this.headsOf(value),
      show: (value) => (this.shows().includes(value) ? value : undefined),
      direction: (value) => (["out", "in"].includes(value) ? value : undefined),
      query: (value) => whole(value, numbers.nQuery),
      key: (value) => whole(value, numbers.nKey),
      sort: (value) => (numbers.facts.includes(value) ? value : undefined),
      least: (value) => (/^\d{1,4}$/.test(String(value)) ? Number(value) : undefined),
      log: (value) => ({ true: true, false: false })[String(value).toLowerCase()],
    };
    const refused = [];
    for (const [key, value] of Object.entries(asked)) {
      if (!(key in readers)) continue;
      const taken = value === null ? this.defaults()[key] : readers[key](value);
      if (taken === undefined) refused.push([key, String(value)]);
      else this.choice[key] = taken;
    }
    const { query, key } = this.choice;
    if (query !== null && key !== null && numbers.place(query, key) < 0) {
      refused.push(["key", String(key)]);
      this.choice.key = null;
    }
    return refused;
  }

  /** Heads to compare, "1.2 0.3"; "one", the "mean" or "all" of the block. */
  headsOf(value) {
    if (["one", MEAN, "all"].includes(value)) return value;
    const heads = String(value)
      .split(" ")
      .map((one) =>
        one
          .match(/^(\d{1,4})\.(\d{1,4})$/)
          ?.slice(1)
          .map(Number),
      );
    const { n_block, n_head } = this.numbers;
    return heads.every((at) => at && at[0] < n_block && at[1] < n_head) ? heads : undefined;
  }

  /** Another text or model: what was chosen stays where it is still possible. */
  fit() {
    const kept = this.choice;
    this.notices.replaceChildren();
    this.choice = this.defaults();
    const { heads, ...rest } = kept;
    this.take(Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== null)));
    if (heads) this.take({ heads: Array.isArray(heads) ? heads.map((at) => at.join(".")).join(" ") : heads });
  }

  obey({ asked, number }) {
    if (!asked || number <= (globalThis[OBEYED] ?? 0)) return false;
    globalThis[OBEYED] = number;
    this.take(asked);
    this.notices.replaceChildren();
    return true;
  }

  shows() {
    return Object.keys(SHOWS).filter((name) => name !== "rollout" || this.numbers.arrays.rollout);
  }

  get chosen() {
    return [this.choice.block, this.choice.head];
  }

  get isMean() {
    return this.choice.heads === MEAN && this.choice.show !== "rollout";
  }

  /** What the heatmap shows: the chosen head, or in its place the mean of its block. */
  get large() {
    return this.isMean ? [this.choice.block, MEAN] : this.chosen;
  }

  /** The head whose arithmetic is opened: the chosen one; of a mean, which has none, the one that reads most there. */
  get opened() {
    const { block, query, key } = this.choice;
    if (!this.isMean) return this.chosen;
    const shares = Array.from({ length: this.numbers.n_head }, (_, head) => this.numbers.pattern(block, head, query, key));
    return [block, strongest(shares, 1)[0]];
  }

  get isOpen() {
    const { query, key } = this.choice;
    return query !== null && key !== null && this.numbers.has(this.choice.block) && this.numbers.isVisible(query, key);
  }

  /** The heads that are drawn: the chosen one, those compared, the mean or all of its block. */
  heads() {
    const { heads, block, show } = this.choice;
    if (show === "rollout") return [this.chosen];
    if (heads === "all") return Array.from({ length: this.numbers.n_head }, (_, head) => [block, head]);
    return Array.isArray(heads) ? heads : [this.large];
  }

  /** Those whose thumbnails are marked: of a mean, all it is made of. */
  marked() {
    const { heads, block } = this.choice;
    return heads === MEAN ? Array.from({ length: this.numbers.n_head }, (_, head) => [block, head]) : this.heads();
  }

  /** Those of them whose numbers are here. */
  loaded() {
    return this.heads().filter(([block]) => this.numbers.has(block));
  }

  colourOf(which) {
    return this.heads().length > 1 ? OF_HEADS[which % OF_HEADS.length] : ROLES[SHOWS[this.choice.show].role];
  }

  named() {
    const { block, show } = this.choice;
    return show === "rollout" ? `Rollout up to block ${block}` : nameOf(this.large);
  }

  // Choices

  choose(changes) {
    Object.assign(this.choice, changes);
    this.chosenChanged(changes);
  }

  chosenChanged(changes = null) {
    const touches = (...keys) => !changes || keys.some((key) => key in changes);
    if (touches("log")) this.grid.colours();
    if (touches("sort", "least")) this.grid.arrange();
    this.load();
    if (touches("block", "head", "heads", "show")) {
      this.largest = this.numbers.largest(this.choice.show, this.loaded());
      this.grid.mark();
    }
    if (touches("block", "head", "heads", "show", "log")) this.heat.draw();
    this.pressed();
    this.remember();
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
      this.asking = block;
      this.send("block", { block, of: numbers.of });
    }
  }

  /** Add a head to those compared, or take it out; the last one stays. */
  compare(at) {
    const before = Array.isArray(this.choice.heads) ? this.choice.heads : [this.chosen];
    const without = before.filter((other) => !same(other, at));
    const heads = without.length < before.length ? without : [...before, at];
    if (heads.length > OF_HEADS.length) announce(this.root, `No more than ${OF_HEADS.length} heads can be compared`);
    if (!heads.length || heads.length > OF_HEADS.length) return;
    const [block, head] = heads.some((other) => same(other, at)) ? at : heads.at(-1);
    this.choose({ heads, block, head });
  }

  /** Hold a token, or let it go; with one of the other side held, open the cell of the two. */
  fix(side, index) {
    const other = this.choice[SIDES[side]];
    if (other !== null) {
      const [query, key] = side === "query" ? [index, other] : [other, index];
      if (this.numbers.isVisible(query, key)) this.choose({ query, key });
      return;
    }
    this.choose({ [side]: this.choice[side] === index ? null : index });
    announce(this.root, this.readout.textContent);
  }

  open(query, key) {
    if (this.choice.query === query && this.choice.key === key) this.free();
    else this.choose({ query, key });
  }

  /** From a cell back to its token, from a token back to none. */
  free() {
    const { query, key, direction } = this.choice;
    this.hover = {};
    if (query !== null && key !== null) this.choose({ [direction === "out" ? "key" : "query"]: null });
    else this.choose({ query: null, key: null });
  }

  look(at, aloud = false) {
    if (at.query === this.hover.query && at.key === this.hover.key) return;
    this.hover = at;
    this.later(aloud);
  }

  /** What is looked at: {side, index, partner}, null for nothing in particular. */
  aim() {
    const { choice, hover, numbers } = this;
    const side = choice.direction === "out" ? "query" : "key";
    const pair = (at) => ({ side, index: at[side], partner: at[SIDES[side]] });
    const { query = null, key = null } = hover;
    if (query !== null && key !== null) return pair(hover);
    if (query !== null || key !== null) {
      const over = query !== null ? "query" : "key",
        held = choice[SIDES[over]];
      if (held === null) return { side: over, index: hover[over], partner: null };
      return { side: SIDES[over], index: held, partner: hover[over] };
    }
    if (choice.query !== null && choice.key !== null) return pair(choice);
    if (choice.query !== null || choice.key !== null) {
      const held = choice.query !== null ? "query" : "key";
      return { side: held, index: choice[held], partner: null };
    }
    if (this.tokens.inColumns) return null;
    return { side, index: side === "query" && numbers.alone ? numbers.nQuery - 1 : 0, partner: null };
  }

  /** The values of a row or column in one head. */
  row({ side, index }, [block, head]) {
    const { numbers } = this;
    const value = numbers[this.choice.show].bind(numbers);
    const count = side === "query" ? numbers.nKey : numbers.nQuery;
    const at = side === "query" ? (other) => value(block, head, index, other) : (other) => value(block, head, other, index);
    return Array.from({ length: count }, (_, other) => at(other));
  }

  scaled(value, largest) {
    return this.choice.log ? clamp(logarithmic(value / largest), 0, 1) : value / largest;
  }

  told(value) {
    return this.choice.show === "value" ? brief(value) : percent(value);
  }

  ends() {
    const { show, log } = this.choice;
    const high = show === "value" ? brief(this.largest) : "100 %";
    return [log ? (show === "value" ? `≤ ${brief(this.largest / 1000)}` : "≤ 0.1 %") : show === "value" ? "0" : "0 %", high];
  }

  /** The scales of colour, on this page's background. */
  scales() {
    this.signed = diverging(this.root);
    this.palettes = Object.fromEntries(["pattern", "value"].map((role) => [role, sequential(ROLES[role], this.root)]));
  }

  /** What the numbers shown are, and on which scale. */
  get unit() {
    return SHOWS[this.choice.show].unit + (this.choice.log ? ", log colours" : "");
  }

  get palette() {
    return this.palettes[SHOWS[this.choice.show].role];
  }

  /** A head in all its cells. */
  paint(canvas, [block, head], show) {
    const { numbers } = this;
    const value = numbers[show].bind(numbers);
    const largest = show === "value" ? this.largest : 1;
    const place = (query, key) => this.scaled(value(block, head, query, key), largest);
    paint(canvas, numbers.nQuery, numbers.nKey, place, this.palettes[SHOWS[show].role]);
  }

  // Controls, and what is on screen

  controls() {
    this.groups = [];
    const add = (label, options, now, choose) => {
      const row = make("div", "group", undefined, { role: "group", "aria-label": label });
      const buttons = options.map(([value, name, help]) => {
        const button = make("button", "tool", name, { title: help, "data-value": value });
        button.onclick = () => choose(value);
        row.append(button);
        return button;
      });
      this.groups.push({ buttons, now });
      this.bar.append(row);
    };
    const shows = Object.entries(SHOWS).map(([value, { name, help }]) => [value, name, help]);
    add(
      "Quantity",
      shows,
      () => this.choice.show,
      (show) => this.choose({ show }),
    );
    const ways = [
      ["out", "What it reads", "A token as query: its row of the pattern"],
      ["in", "Who reads it", "A token as key: its column of the pattern"],
    ];
    add(
      "Direction",
      ways,
      () => this.choice.direction,
      (direction) => this.choose({ direction }),
    );
    const counts = [
      [MEAN, "Mean", "The mean of all heads of the block"],
      ["one", "One head", "A click on a thumbnail chooses it"],
      ["some", "Compare", "A click on a thumbnail adds it, in a colour of its own, or takes it out; so do Shift-click and +"],
      ["all", "All of the block", "Every head of the block, in a colour each"],
    ];
    const some = () => (this.choice.heads === MEAN ? [this.chosen] : this.heads());
    const set = (value) => this.choose({ heads: value === "some" ? some() : value });
    add("Heads", counts, () => (Array.isArray(this.choice.heads) ? "some" : this.choice.heads), set);
    const log = [["log", "Log colours", "Equal ratios, equal steps of colour, down to 0.1 %: small shares show"]];
    add(
      "Colours",
      log,
      () => (this.choice.log ? "log" : ""),
      () => this.choose({ log: !this.choice.log }),
    );
  }

  pressed() {
    for (const { buttons, now } of this.groups) {
      for (const button of buttons) button.setAttribute("aria-pressed", button.dataset.value === now());
    }
    this.groups[0].buttons.forEach((button) => (button.hidden = !this.shows().includes(button.dataset.value)));
    this.root.style.setProperty("--shown", ROLES[SHOWS[this.choice.show].role]);
  }

  resized() {
    const width = this.root.clientWidth;
    if (!this.numbers || !width) return;
    this.narrow = width < 640;
    this.root.classList.toggle("narrow", this.narrow);
    this.grid.resize();
    this.tokens.resize();
    this.heat.resize();
    this.later();
  }

  /** Draw with the next frame, once however much has changed by then. */
  later(aloud = false) {
    this.aloud ||= aloud;
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.draw();
    });
  }

  draw() {
    const { query, key } = this.choice;
    const isOpen = this.isOpen;
    const cell = isOpen ? [this.numbers.of, this.numbers.first, ...this.opened, query, key, this.coloured].join(" ") : "";
    if (cell !== this.drawn) {
      const had = this.root.getRootNode().activeElement;
      this.drawn = cell;
      this.tokens.element.hidden = this.readout.hidden = isOpen;
      this.cell.draw();
      // The chip or button that had the focus is gone.
      if (isOpen && this.tokens.element.contains(had)) this.cell.element.focus({ preventScroll: true });
      else if (!isOpen && this.cell.element.contains(had)) this.tokens.reached.focus({ preventScroll: true });
      if (isOpen) announce(this.root, this.cell.said());
      else this.tokens.resize();
    }
    const aim = this.aim();
    if (!isOpen) {
      this.tokens.draw();
      this.say(aim);
    }
    this.heat.point(aim);
    if (this.aloud) announce(this.root, this.readout.textContent);
    this.aloud = false;
    this.root.dataset.drawn = Number(this.root.dataset.drawn ?? 0) + 1;
  }

  /** The line above the tokens: what is looked at, in words and numbers. */
  say(aim) {
    const { numbers, choice } = this;
    if (!numbers.has(choice.block)) {
      const why = "all blocks together are too many to send at once";
      return this.readout.replaceChildren(`The numbers of block ${choice.block} are on their way: ${why}.`);
    }
    if (!aim) {
      const what = this.heads().length > 1 ? "Several heads" : this.named();
      return this.readout.replaceChildren(`${what}: all tokens at once. Hover one to see it alone; a click holds it.`);
    }
    const heads = this.loaded(),
      target = SIDES[aim.side];
    const verb = aim.side === "query" ? " reads " : " is read by ";
    const parts = [this.token(aim.side, aim.index), verb];
    this.readout.classList.toggle("many", heads.length > 1);
    heads.slice(0, heads.length > 1 ? HEADS_TOLD : 1).forEach((at, which) => {
      const values = this.row(aim, at);
      const told = aim.partner === null ? strongest(values, heads.length > 1 ? 1 : 4) : [aim.partner];
      if (heads.length > 1) parts.push(this.headName(at, which), " ");
      for (const other of told) {
        parts.push(
          this.token(target, other),
          make("b", "number", this.told(values[other]), { "data-value": values[other] }),
          " ",
        );
      }
    });
    if (heads.length > HEADS_TOLD) parts.push(`and ${heads.length - HEADS_TOLD} more`);
    this.readout.replaceChildren(...parts);
  }

  token(side, at) {
    const both = make("span", "named");
    const one = chip(shortened(this.numbers.label(side, at), 12));
    one.classList.add(`of-${side}`);
    both.append(one, make("sub", "", String(at)));
    return both;
  }

  headName([block, head], which) {
    const name = make("span", "head-name", `${block}.${head}`);
    name.style.setProperty("--mark", this.colourOf(which));
    return name;
  }

  /** Keep the choice in the address. */
  remember() {
    const usual = this.defaults();
    const written = Object.entries(this.choice).map(([key, value]) => {
      if (value === usual[key]) return [key, null];
      return [key, Array.isArray(value) ? value.map((at) => at.join(".")).join(" ") : String(value)];
    });
    toAddress(Object.fromEntries(written));
  }

  // Numbers, code, picture

  /** Every visible cell of the heads shown. */
  table() {
    const { numbers, choice } = this;
    const rows = [],
      ofHeads = choice.show !== "rollout";
    for (const [block, head] of this.loaded()) {
      for (let query = 0; query < numbers.nQuery; query++) {
        for (let key = 0; key < numbers.nKey; key++) {
          const value = numbers[choice.show](block, head, query, key);
          if (Number.isNaN(value)) continue;
          rows.push([block, ...(ofHeads ? [head] : []), query, numbers.queries[query], key, numbers.keys[key], value]);
        }
      }
    }
    const places = ["query position", "query", "key position", "key"];
    return { columns: ["block", ...(ofHeads ? ["head"] : []), ...places, SHOWS[choice.show].unit], rows };
  }

  code() {
    const { block, query, key, show } = this.choice;
    const heads = this.heads().map(([of, head]) => [of, head === MEAN ? "None" : head]);
    const calls = {
      pattern: (at) => `found.pattern(${at})`,
      value: (at) => `found.value_weighted(${at})`,
      rollout: () => `found.rollout(${block})`,
    };
    const ask = calls[show];
    const lines = [this.numbers.code];
    if (heads.length > 1) {
      lines.push(`heads = [${heads.map((at) => `(${at.join(", ")})`).join(", ")}]`);
      lines.push(`shown = {(block, head): ${ask("block, head")} for block, head in heads}  # [query, key] each`);
    } else lines.push(`shown = ${ask(heads[0].join(", "))}  # [query, key]`);
    if (this.isOpen) {
      const [, head] = this.opened;
      lines.push(
        "",
        `products = found.q[${block}, ${head}, ${query}] * found.k[${block}, ${head}, ${key}]  # their sum is q · k`,
        `score = found.scores(${block}, ${head})[${query}, ${key}]`,
        `share = found.pattern(${block}, ${head})[${query}, ${key}]`,
      );
    }
    return lines.join("\n");
  }
}

export default view(Explorer);
