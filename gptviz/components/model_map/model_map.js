// The map of a model: above, all of it from tokens to guesses; below, the block that is open; under both, the box that is open.

import { inAddress, toAddress } from "../kit/address.js";
import { background } from "../kit/colour.js";
import { announce, tools } from "../kit/details.js";
import { make, shape } from "../kit/elements.js";
import { ROLES } from "../kit/roles.js";
import { shortened } from "../kit/text.js";
import { view } from "../kit/view.js";
import { Block } from "./block.js";
import { Boxes, HIGHEST, LOWEST, parametersOf, placed, plural, sizes, sure } from "./boxes.js";
import { Drawing, MONO, SANS, SMALL } from "./drawing.js";
import { Panel } from "./panel.js";
import { GUESSES, TOKENS, Whole } from "./whole.js";

// What the layout is made for, in pixels; on a page of another width all of it is made larger or smaller.
const WIDE = 820,
  WIDEST = 1024;
const LARGEST_ZOOM = 1.6;
const ROW = 146,
  ROW_OF_TWO = 112,
  BETWEEN = 22,
  BLOCK = 224,
  STREAM = 194;
// How the names of an equation are coloured.
const NAMED = {
  q: "query",
  k: "key",
  kᵀ: "key",
  v: "value",
  z: "value",
  scores: "pattern",
  pattern: "pattern",
  mask: "pattern",
  softmax: "pattern",
  up: "mlp",
  neurons: "mlp",
  logits: "output",
  shares: "output",
  number: "output",
  embed: "stream",
  positions: "stream",
  memory: "stream",
  resid_pre: "stream",
  resid_self: "stream",
  resid_mid: "stream",
  resid_post: "stream",
  final_norm: "stream",
  out: "stream",
  gain: "weight",
  bias: "weight",
  slope: "weight",
  R: "weight",
};
const LEGEND = [
  ["query", "query"],
  ["key", "key"],
  ["value", "value"],
  ["pattern", "attention"],
  ["mlp", "MLP"],
  ["stream", "stream"],
  ["output", "output"],
];

// Milliseconds after which a question counts as lost.
const PATIENCE = 5_000;

class ModelMap extends Drawing {
  constructor(root) {
    super();
    this.root = root;
    this.box = null; // the path of the open box
    this.chosen = { stack: "", block: 0 }; // the block that is drawn below
    this.piece = 0;
    this.at = []; // the first index shown along each axis of the tensor
    this.current = null; // the box that the Tab key reaches
    this.patience = 0; // until when nothing more is asked
    this.frame = make("div", "frame");
    this.stage = make("div", "stage");
    this.frame.append(this.stage);
    this.status = make("div", "status note");
    this.panel = make("section", "panel");
    this.panel.hidden = true;
    this.foot = make("div", "foot row");
    root.replaceChildren(this.frame, this.status, this.foot, this.panel);
    this.stage.addEventListener("click", (event) => this.clicked(event));
    this.stage.addEventListener("keydown", (event) => this.key(event));
    this.stage.addEventListener("pointerover", (event) => this.over(event));
    this.stage.addEventListener("pointerleave", () => this.tell(null));
    this.stage.addEventListener("focusin", (event) => this.over(event));
    this.panel.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      this.shut();
    });
    this.watch = new ResizeObserver(() => this.fit());
    this.watch.observe(root);
  }

  close() {
    this.watch.disconnect();
  }

  show(data) {
    const first = this.data === undefined;
    const shown = JSON.stringify([data.text, background(this.root), data.guesses.length]);
    const same = shown === this.shown;
    this.data = data;
    if (JSON.stringify(data.opened) === this.asked) this.patience = 0; // an answer came
    if (!same) {
      this.shown = shown;
      this.boxes = new Boxes(data);
      if (first) this.fromAddress();
      this.keepPossible();
      this.draw();
    }
    if (first && this.box) this.open(this.box, { scroll: false });
    else if (this.box) this.showPanel();
    if (this.box) this.ask();
    this.write();
  }

  // What is open

  fromAddress() {
    const block = /^(encoder\.)?(\d+)$/.exec(inAddress("block") ?? "");
    const last = this.boxes.blocks("");
    // The block in the middle has more to show than the first.
    this.chosen = block
      ? { stack: block[1] ?? "", block: Number(block[2]) }
      : { stack: "", block: Math.min(2, Math.max(0, last - 1)) };
    this.box = inAddress("box");
    this.piece = Number(inAddress("tensor") ?? 0);
    this.head = Number(inAddress("head") ?? 0);
  }

  /** After another model: what it lacks is not open. */
  keepPossible() {
    if (this.box && !this.boxes.get(this.box)) this.box = null;
    if (this.box) {
      const { stack, block } = placed(this.box);
      if (block !== null) this.chosen = { stack, block };
      const pieces = this.boxes.get(this.box).pieces.length;
      if (!(Number.isInteger(this.piece) && this.piece >= 0 && this.piece < pieces)) this.piece = 0;
    }
    let { stack, block } = this.chosen;
    if (!this.boxes.blocks(stack)) stack = this.boxes.blocks("") || !this.boxes.blocks("encoder.") ? "" : "encoder.";
    this.chosen = { stack, block: Math.max(0, Math.min(block, this.boxes.blocks(stack) - 1)) };
    if (!this.box) this.panel.hidden = true;
  }

  write() {
    const { stack, block } = this.chosen;
    const usual = { stack: "", block: Math.min(2, Math.max(0, this.boxes.blocks("") - 1)) };
    const piece = this.box ? this.boxes.get(this.box).pieces[this.piece] : null;
    toAddress({
      box: this.box,
      block:
        this.box || !this.boxes.blocks(stack) || (stack === usual.stack && block === usual.block) ? null : `${stack}${block}`,
      tensor: this.box && this.piece ? this.piece : null,
      head: piece?.axes[0] === "head" && this.at[0] ? this.at[0] : null,
    });
  }

  openBlock(stack, block) {
    this.chosen = { stack, block };
    if (this.box) {
      const { block: of, within } = placed(this.box);
      const alike = `${stack}blocks.${block}.${within}`;
      if (of !== null) this.box = this.boxes.get(alike) ? alike : null;
    }
    this.draw();
    if (this.box) this.open(this.box, { scroll: false });
    else this.panel.hidden = true;
    this.write();
    announce(this.root, `${this.blockName(stack, block)} open`);
  }

  open(path, { head = null, scroll = true } = {}) {
    const other = path !== this.box;
    const { stack, block } = placed(path);
    if (other) this.piece = 0;
    this.box = path;
    const piece = this.boxes.get(path).pieces[this.piece];
    if (other || this.at.length !== (piece?.shape.length ?? 0)) this.at = new Array(piece?.shape.length ?? 0).fill(0);
    const wanted = head ?? this.head ?? null;
    if (wanted !== null && piece?.axes[0] === "head" && wanted > 0 && wanted < piece.shape[0]) this.at[0] = wanted;
    this.head = null;
    if (block !== null && (stack !== this.chosen.stack || block !== this.chosen.block)) {
      this.chosen = { stack, block };
      this.draw();
    } else this.light();
    this.showPanel();
    this.write();
    this.ask();
    if (scroll)
      this.panel.scrollIntoView({
        block: "nearest",
        behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth",
      });
    announce(this.root, `${this.boxes.get(path).name}, ${path}, open below`);
  }

  shut() {
    const path = this.box;
    this.box = null;
    this.panel.hidden = true;
    this.light();
    this.write();
    this.focus(path);
  }

  // Events

  clicked(event) {
    const guess = event.target.closest("[data-guess]");
    if (guess && this.data.takes) return this.take(Number(guess.dataset.guess));
    const block = event.target.closest("[data-block]");
    if (block) {
      this.current = block.dataset.path;
      return this.openBlock(block.dataset.stack, Number(block.dataset.number));
    }
    const box = event.target.closest("[data-box]");
    if (!box) return;
    this.current = box.dataset.path;
    const head = event.target.closest("[data-head]");
    const wanted = head ? Number(head.dataset.head) : null;
    if (this.box === box.dataset.box && wanted === null) this.shut();
    else this.open(box.dataset.box, { head: wanted });
  }

  /** Take a guess: each once, until the text has changed. */
  take(guess) {
    const taken = JSON.stringify({ guess, text: this.data.text });
    if (taken === this.taken) return;
    this.taken = taken;
    this.send("take", taken);
  }

  key(event) {
    const held = event.target.closest("[data-path]");
    if (!held) return;
    const steps = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const up = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    const all = this.walk();
    const here = all.indexOf(held.dataset.path);
    if (steps) this.focus(all[Math.max(0, Math.min(all.length - 1, here + steps))]);
    else if (event.key === "Home") this.focus(all[0]);
    else if (event.key === "End") this.focus(all.at(-1));
    else if (up && held.dataset.guess) this.focus(all[Math.max(0, Math.min(all.length - 1, here + up))]);
    else if (up) this.toBlock(up, held.dataset.path);
    else if ((event.key === "Enter" || event.key === " ") && held.tagName !== "BUTTON") {
      held.dispatchEvent(new MouseEvent("click", { bubbles: true }));
      this.focus(held.dataset.path);
    } else if (event.key === "Escape" && this.box) this.shut();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Open the block before or after the open one; the focus stays on the same part of it. */
  toBlock(step, path) {
    const { stack, block } = this.chosen;
    const to = block + step;
    if (to < 0 || to >= this.boxes.blocks(stack)) return;
    const { block: of, within } = placed(path);
    this.openBlock(stack, to);
    this.focus(of === null ? `${stack}blocks.${to}` : `${stack}blocks.${to}.${within}`);
  }

  /** The boxes on the map in the order of the stream; those of the open block after the block itself. */
  walk() {
    return this.order.filter((path) => this.elements.has(path));
  }

  focus(path) {
    const element = this.elements.get(path);
    if (!element) return;
    this.elements.get(this.current)?.setAttribute("tabindex", -1);
    this.current = path;
    element.setAttribute("tabindex", 0);
    element.focus({ preventScroll: false });
  }

  over(event) {
    this.tell(event.target.closest?.("[data-box],[data-block]")?.dataset.path ?? null);
  }

  /** A line on the box under the pointer; its arrows stand out. */
  tell(path) {
    for (const arrow of this.arrows ?? [])
      arrow.element.classList.toggle("lit", path !== null && (arrow.start === path || arrow.end === path));
    const box = path && this.boxes.get(path);
    if (box) {
      const parameters = parametersOf(box);
      this.status.replaceChildren(
        make("strong", "", `${this.titleOf(box)}: `),
        this.coloured(box.equation),
        make("span", "", parameters ? ` · ${plural(parameters, "parameter")}` : ""),
      );
      return;
    }
    const { stack, block } = path ? placed(`${path}.x`) : {};
    this.status.textContent = path
      ? `${this.blockName(stack, block)}: ${plural(this.data.counts[stack], "parameter")}. Click to open it.`
      : `${this.data.size}. Click a box to open it.`;
  }

  // Drawing

  /** The size of the smallest text: a wide layout is drawn smaller on the page. */
  get small() {
    return (SMALL * this.width) / WIDE;
  }

  get heightOfBlock() {
    return BLOCK + 2 * (this.small - SMALL);
  }

  get heightOfRow() {
    return this.data.sizes[0] ? ROW_OF_TWO : ROW;
  }

  draw() {
    const focused = this.root.getRootNode().activeElement;
    const held = this.stage.contains(focused) ? focused.dataset.path : undefined;
    const { data } = this;
    this.width = data.boxes.some((box) => box.path.includes("cross_attention")) ? WIDEST : WIDE;
    const stacks = data.sizes[0] ? ["encoder.", ""] : [""];
    const rows = stacks.length * this.heightOfRow + (stacks.length - 1) * 8;
    const opens = this.boxes.blocks(this.chosen.stack) > 0;
    this.height = rows + (opens ? BETWEEN + this.heightOfBlock : 0);
    this.elements = new Map();
    this.arrows = [];
    this.order = [];
    this.lens = null;
    this.colours = {
      ground: background(this.root),
      text: getComputedStyle(this.root).getPropertyValue("--st-text-color").trim() || "#1F2933",
    };
    this.svg = shape("svg", {
      width: this.width,
      height: this.height,
      viewBox: `0 0 ${this.width} ${this.height}`,
      class: "drawing",
      "font-family": SANS,
    });
    this.under = shape("g");
    this.svg.append(this.under);
    this.stage.style.width = `${this.width}px`;
    this.stage.style.height = `${this.height}px`;
    this.stage.style.fontSize = `${this.width > WIDE ? 13 : 12}px`;
    this.stage.setAttribute("role", "group");
    this.stage.setAttribute(
      "aria-label",
      `Map of the model ${data.model}: ${data.size}. Arrow keys walk along the stream, Enter opens a box.`,
    );
    this.pictures = [];
    this.columns = [];
    this.canvases = [];
    const whole = new Whole(this);
    stacks.forEach((stack, i) => whole.drawStack(stack, i * (this.heightOfRow + 8)));
    if (opens) this.drawBlock(rows + BETWEEN);
    this.stage.replaceChildren(this.svg, ...this.columns, ...this.canvases);
    // A decoder goes on from the end of its text.
    if (data.kind === "decoder") for (const strip of this.stage.querySelectorAll(".strip")) strip.scrollTop = strip.scrollHeight;
    if (!this.elements.has(this.current)) this.current = this.order.find((path) => this.elements.has(path));
    for (const [path, element] of this.elements) element.setAttribute("tabindex", path === this.current ? 0 : -1);
    this.drawFoot();
    this.tell(null);
    this.light();
    this.fit();
    if (held) this.elements.get(held)?.focus();
  }

  fit() {
    const room = this.root.clientWidth;
    if (!room || !this.width) return;
    this.stage.style.zoom = Math.min(LARGEST_ZOOM, Math.max(room, WIDE) / this.width);
  }

  // The open block

  drawBlock(top) {
    const { stack, block } = this.chosen,
      { width } = this,
      at = `${stack}blocks.${block}.`;
    const faint = this.mix(ROLES.stream, 0.35);
    const { lens } = this;
    if (lens) {
      const glow = shape("path", {
        d: `M${lens.x} ${lens.bottom}h${lens.w}L${width - 1} ${top}H1z`,
        fill: this.mix(ROLES.stream, 0.1),
        stroke: faint,
        "stroke-width": 1,
      });
      this.under.prepend(glow);
    }
    this.under.append(
      shape("rect", {
        x: 1,
        y: top,
        width: width - 2,
        height: this.heightOfBlock - 1,
        rx: 8,
        fill: this.colours.ground,
        stroke: faint,
        "stroke-width": 1,
      }),
    );
    this.under.append(
      this.text(12, top + 19, this.placeOf(stack, block), {
        size: 12.5,
        weight: 650,
        anchor: "start",
      }),
    );
    const y = top + STREAM;
    const paths = new Set(this.boxes.of(stack, block));
    const layout = new Block(this, at, paths, top, y);
    layout.draw();
  }

  /** Which block is open, among which: they are counted from 0, as in the names of their tensors. */
  placeOf(stack, block) {
    const last = this.boxes.blocks(stack) - 1;
    return `${this.blockName(stack, block)}${last ? ` (of 0 to ${last})` : ""}`;
  }

  // The open box

  showPanel() {
    this.panel.hidden = false;
    this.opened ??= new Panel(this);
    this.opened.show(this.boxes.get(this.box));
  }

  /** The rest of the map steps back while a box is open. */
  light() {
    this.svg.classList.toggle("open", this.box !== null);
    for (const [path, element] of this.elements) {
      if (!element.dataset.box) continue;
      element.classList.toggle("open", path === this.box);
      element.setAttribute("aria-expanded", path === this.box);
    }
    for (const canvas of this.canvases)
      canvas.classList.toggle("back", this.box !== null && Boolean(canvas.dataset.of) && canvas.dataset.of !== this.box);
  }

  /** Whether `tensor` holds the numbers that the open box is to show. */
  wants(tensor) {
    return (
      tensor.box === this.box &&
      tensor.piece === this.piece &&
      (tensor.whole || tensor.at.every((index, i) => index === this.at[i]))
    );
  }

  /** Tell the server what is open, and ask for its numbers, unless it knows and they are here.
   *
   *  One question at a time: where runs of the script cut each other short, Streamlit may take a message for known to a browser
   *  that never saw it, and the connection ends. What is wanted by then is asked when the answer has come. */
  ask() {
    const { data, box, piece, at } = this;
    const { pieces } = this.boxes.get(box);
    const isHere = !pieces.length || (data.tensor && this.wants(data.tensor));
    const [known, , place] = data.opened ?? [];
    const isKnown = known === box && (pieces[piece]?.axes[0] !== "head" || place[0] === at[0]);
    const asked = JSON.stringify([box, piece, at]);
    const isAnswered = JSON.stringify(data.opened) === asked; // as well as the server can
    if ((isHere && isKnown) || isAnswered || performance.now() < this.patience) return;
    this.asked = asked;
    this.patience = performance.now() + PATIENCE;
    this.send("look", JSON.stringify({ box, piece, at }));
  }

  // Behind the map

  drawFoot() {
    const legend = make("div", "legend");
    for (const [role, name] of LEGEND) {
      const entry = make("span", "entry");
      const sample = make("span", "sample");
      sample.style.background = this.mix(ROLES[role], 0.22);
      sample.style.borderColor = ROLES[role];
      entry.append(sample, name);
      legend.append(entry);
    }
    const learned = make("span", "entry");
    const sample = make("span", "sample learned", "W");
    sample.style.background = this.mix(ROLES.weight, 0.3);
    sample.style.borderColor = ROLES.weight;
    learned.append(sample, "learned (how many)");
    legend.append(learned);
    const behind = tools(this.root, {
      name: `map-${this.data.model}`,
      numbers: () => this.table(),
      code: () => this.data.code,
      picture: () => this.picture(),
    });
    this.foot.replaceChildren(legend, behind);
  }

  /** A row for every box of the model. */
  table() {
    const rows = [];
    const add = (box) => {
      const listed = (kind) => box.pieces.filter((piece) => (kind === "weight") === (piece.kind === "weight"));
      const weights = listed("weight").map(
        (piece) => `${piece.name}${piece.rows ? `[${piece.rows.join(":")}]` : ""} ${sizes(piece.shape)}`,
      );
      const activations = listed("activation").map((piece) => `${piece.name} ${sizes(piece.shape)}`);
      rows.push([
        box.path,
        this.titleOf(box),
        box.role,
        activations.join("; "),
        weights.join("; "),
        parametersOf(box),
        box.equation,
      ]);
    };
    const stacks = this.data.sizes[0] ? ["encoder.", ""] : [""];
    for (const stack of stacks) {
      const outside = this.data.boxes.filter((box) => placed(box.path).block === null && placed(box.path).stack === stack);
      const isEnd = (box) => ["final_norm", "memory", "head.token", "shares", "logits"].includes(placed(box.path).within);
      if (!stack && stacks.length > 1) add(this.boxes.get("memory"));
      outside.filter((box) => !isEnd(box)).forEach(add);
      for (let block = 0; block < this.boxes.blocks(stack); block++)
        for (const path of this.boxes.of(stack, block)) add(this.boxes.get(path));
      outside.filter((box) => isEnd(box) && !(box.path === "memory")).forEach(add);
    }
    return { columns: ["box", "name", "role", "values (shape)", "weights (shape)", "parameters", "equation"], rows };
  }

  /** The map as a drawing that stands alone. */
  picture() {
    const head = 34,
      width = this.width + 24,
      height = this.height + head + 14;
    const picture = shape("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "font-family": SANS });
    const step = this.data.step === null ? "" : `, step ${this.data.step}`;
    picture.append(shape("rect", { width, height, fill: this.colours.ground }));
    picture.append(this.text(12, 22, `${this.data.model}${step}: ${this.data.size}`, { size: 14, weight: 650, anchor: "start" }));
    picture.append(
      this.text(width - 12, 22, "W: learned, how many; all else is computed for this text", {
        size: 10.5,
        anchor: "end",
        fill: this.ink(0.72),
      }),
    );
    const all = shape("g", { transform: `translate(12 ${head})` });
    for (const part of this.svg.childNodes) all.append(part.cloneNode(true));
    for (const element of all.querySelectorAll("*")) {
      for (const name of element.getAttributeNames())
        if (/^(class|role|tabindex|aria-.*|data-.*)$/.test(name)) element.removeAttribute(name);
    }
    for (const { canvas, ...place } of this.pictures)
      all.append(shape("image", { ...place, href: canvas.toDataURL(), style: "image-rendering: pixelated" }));
    const stacks = this.data.sizes[0] ? [this.data.source, this.data.tokens] : [this.data.tokens];
    stacks.forEach((tokens, i) => all.append(this.written(tokens, 0, i * (this.heightOfRow + 8), TOKENS)));
    const last = (stacks.length - 1) * (this.heightOfRow + 8),
      left = this.width - GUESSES;
    if (this.data.kind === "encoder-decoder") all.append(this.written(this.data.guesses, left, last, GUESSES));
    else
      this.data.guesses.forEach(([label, probability], i) => {
        const y = last + 30 + 15 * i;
        all.append(this.text(left + 2, y, shortened(label, 8), { anchor: "start", size: 12, font: MONO }));
        all.append(
          shape("rect", { x: left + 64, y: y - 8, width: Math.max(0.5, 26 * probability), height: 8, fill: ROLES.output }),
        );
        all.append(this.text(left + GUESSES - 2, y, sure(probability), { anchor: "end", size: 11 }));
      });
    picture.append(all);
    return picture;
  }

  /** Tokens as text in a drawing: as many of the last ones as there is room for. */
  written(tokens, x, top, width) {
    const lines = [[]],
      letter = 7.3;
    let used = 0;
    for (const [label, probability] of tokens) {
      const long = [...label].length * letter + 2;
      if (used + long > width && lines.at(-1).length) {
        lines.push([]);
        used = 0;
      }
      lines.at(-1).push({ label, probability, at: used, long });
      used += long;
    }
    const group = shape("g");
    lines.slice(-7).forEach((line, i) => {
      for (const { label, probability, at, long } of line) {
        const y = top + 32 + 17 * i;
        if (probability !== null)
          group.append(
            shape("rect", {
              x: x + at,
              y: y - 12,
              width: long - 1,
              height: 15,
              rx: 2,
              fill: this.mix(ROLES.output, (LOWEST + (HIGHEST - LOWEST) * probability) / 100),
            }),
          );
        group.append(this.text(x + at + (long - 1) / 2, y, label, { size: 12, font: MONO }));
      }
    });
    return group;
  }

  /** An equation, its names in their colours. */
  coloured(equation) {
    const line = make("span", "equation");
    for (const part of equation.split(/([A-Za-z_]+ᵀ?)/)) {
      const role = NAMED[part] ?? (/^[Wb]_/.test(part) ? "weight" : null);
      if (!role) line.append(part);
      else line.append(make("span", `named ${role}`, part));
    }
    return line;
  }
}

export default view(ModelMap);
