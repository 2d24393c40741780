// The logit lens: a row for every layer, a column for every token that was read. Text from a model is a text node.

import { inAddress, toAddress } from "../kit/address.js";
import { colourAt, isDark, paint, sequential } from "../kit/colour.js";
import { copyOf } from "../kit/copy.js";
import { announce, tools } from "../kit/details.js";
import { make, shape } from "../kit/elements.js";
import { picture, textOf } from "../kit/picture.js";
import { ROLES } from "../kit/roles.js";
import { rem } from "../kit/size.js";
import { chip, percent, plural, shortened } from "../kit/text.js";
import { Commands, view } from "../kit/view.js";
import { COLOURS, Cells, saidOf, tableOf } from "./cells.js";
import { REALLY, layoutOf, lettersOf } from "./layout.js";

/** @typedef {import("./cells.js").Cell} Cell @typedef {import("./cells.js").Lens} Lens */

/** @type {Record<string, [number, number]>} */
const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
const STOPS = [0, 0.25, 0.5, 0.65, 0.8, 1];
const commands = new Commands();

export class Grid {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    /** @type {(event: string, value: unknown) => void} */
    this.send = () => {}; // set from outside
    /** @type {Cells} */
    this.cells = /** @type {any} */ (null); // until the first text
    this.colour = "probability";
    this.isReadable = false; // whether cells are large enough for their names
    /** @type {Cell} */
    this.opened = { layer: 0, index: 0 };
    /** @type {Cell | null} */
    this.hover = null;
    /** @type {import("./layout.js").Layout | null} */
    this.layout = null; // until it is drawn
    /** @type {ArrayLike<number>} */
    this.table = []; // the scale of colours
    const about = "What the colours show: strong where the model is sure, or where it ranks the right token high";
    this.colours = make("select", "tool", undefined, { "aria-label": "What the colours show", title: about });
    const help = "Makes every cell large enough for its token; a long text then scrolls sideways";
    this.large = make("button", "tool", "Large cells", { title: help });
    this.legend = make("span", "legend");
    this.readout = make("div", "readout");
    this.box = make("div", "box");
    this.frame = make("div", "frame", undefined, { tabindex: "0", role: "application", "aria-roledescription": "grid" });
    this.canvas = make("canvas", "heat");
    this.marks = shape("svg", { class: "marks", "aria-hidden": "true" });
    // A ring of either ink is seen on any colour.
    this.rings = ["ground", "opened", "hover"].map((name) => shape("rect", { class: name, fill: "none" }));
    this.arrange();
    this.listen();
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.box);
    this.observer.observe(this.legend); // it grows with the space between letters, which the reader may change
  }

  /** Puts the parts of the view in their places. */
  arrange() {
    this.colours.append(...Object.entries(COLOURS).map(([value, { title }]) => make("option", "", title, { value })));
    const choice = make("div", "tools");
    choice.append(this.colours, this.large, this.legend);
    this.frame.append(this.canvas, this.marks);
    this.box.append(this.frame);
    const below = make("div", "row below");
    below.append(
      make("span", "note", "A click, or Enter, opens a cell: its likeliest tokens are followed through all layers below."),
      tools(this.root, {
        name: "logit_lens",
        numbers: () => tableOf(this.cells),
        code: () => this.cells.lens.code,
        picture: () => this.picture(),
      }),
    );
    this.root.replaceChildren(choice, this.readout, this.box, below);
  }

  listen() {
    this.colours.onchange = () => this.choose({ colour: this.colours.value });
    this.large.onclick = () => this.choose({ words: !this.isReadable });
    const { frame } = this;
    frame.addEventListener("pointermove", (event) => event.pointerType !== "touch" && this.look(this.under(event)));
    frame.addEventListener("pointerleave", () => this.look(null));
    frame.addEventListener("blur", () => this.look(null));
    frame.addEventListener("click", (event) => {
      const cell = this.under(event);
      if (cell) this.open(cell);
    });
    frame.addEventListener("keydown", (event) => this.key(event));
  }

  close() {
    this.observer.disconnect();
  }

  // What is shown

  /** @param {Lens} lens */
  show(lens) {
    const before = this.cells?.lens;
    this.cells = new Cells(lens);
    this.root.style.colorScheme = isDark(this.root) ? "dark" : "light";
    this.hover = null;
    const chosen = this.chosen;
    if (!before) this.readAddress();
    else if (before.of !== lens.of) this.opened = this.end;
    const asked = commands.obey(lens, before ? chosen : this.chosen);
    if (asked) this.choose(asked);
    else if (before) this.remember();
    this.draw();
  }

  /** The last cell: the model's own guess after the whole text. */
  get end() {
    return { layer: this.cells.nLayer - 1, index: this.cells.nPosition - 1 };
  }

  /** What is chosen, as the address and commands have it. */
  get chosen() {
    const { lens } = this.cells;
    const { layer, index } = this.opened;
    return { layer: lens.layers[layer]?.name, position: lens.first + index, colour: this.colour, words: this.isReadable };
  }

  readAddress() {
    this.opened = this.cellOf(inAddress("layer"), inAddress("position")) ?? this.end;
    const colour = inAddress("colour");
    if (colour && Object.hasOwn(COLOURS, colour)) this.colour = colour;
    this.isReadable = inAddress("words") === "true";
  }

  /** The cell at a layer and a position; null where there is none. @param {unknown} name @param {unknown} position @returns {Cell | null} */
  cellOf(name, position) {
    const layer = this.cells.layerNamed(name),
      index = /^\d{1,9}$/.test(String(position)) ? Number(position) - this.cells.lens.first : -1;
    return layer >= 0 && index >= 0 && index < this.cells.nPosition ? { layer, index } : null;
  }

  remember() {
    const { layer, position, colour, words } = this.chosen;
    const { end, opened } = this,
      isEnd = opened.layer === end.layer && opened.index === end.index;
    toAddress({
      layer: isEnd ? null : layer,
      position: isEnd ? null : position,
      colour: colour === "probability" ? null : colour,
      words: words ? "true" : null,
    });
  }

  /** Change what is chosen. @param {Record<string, unknown>} changes */
  choose(changes) {
    if (typeof changes.colour === "string" && Object.hasOwn(COLOURS, changes.colour)) this.colour = changes.colour;
    if (typeof changes.words === "boolean") this.isReadable = changes.words;
    const cell = "layer" in changes ? this.cellOf(changes.layer, changes.position) : null;
    if (cell) this.open(cell);
    this.remember();
    this.draw();
  }

  /** @param {Cell} cell */
  open(cell) {
    this.opened = cell;
    this.remember();
    this.send("open", { ...cell, of: this.cells.lens.of });
    this.ring();
    this.say(cell);
  }

  /** @param {Cell | null} cell @param {boolean} [aloud] */
  look(cell, aloud = false) {
    this.hover = cell;
    this.ring();
    this.say(cell ?? this.opened);
    if (cell && aloud) {
      const [[token, probability]] = this.cells.likeliest(cell);
      announce(this.root, `${this.cells.place(cell)}: ${token}, ${percent(probability)}; ${saidOf(this.cells, cell)}`);
    }
  }

  // Drawing

  draw() {
    if (!this.cells || !this.box.clientWidth) return;
    const { cells, frame, canvas, marks } = this;
    const { lens, nLayer, nPosition } = cells;
    const labels = { layers: lens.layers.map(({ short }) => short), tokens: lens.tokens, names: lens.names };
    const spacing = Number.parseFloat(getComputedStyle(this.root).letterSpacing) || 0; // usually "normal"
    const layout = (this.layout = layoutOf(labels, this.box.clientWidth - 1, rem(), this.isReadable, spacing));
    const wide = layout.width * nPosition,
      high = layout.height * nLayer;
    this.table = sequential(ROLES.output, this.root);
    const { strength } = COLOURS[this.colour];
    const place = (/** @type {number} */ layer, /** @type {number} */ index) =>
      strength(cells.numbers({ layer, index }), lens.vocabSize);
    paint(canvas, nLayer, nPosition, place, this.table);
    Object.assign(canvas.style, {
      left: `${layout.left}px`,
      top: `${layout.top}px`,
      width: `${wide}px`,
      height: `${high}px`,
    });
    const width = Math.ceil(layout.left + wide) + 1,
      height = Math.ceil(layout.top + high + layout.bottom) + 1;
    Object.assign(frame.style, { width: `${width}px`, height: `${height}px` });
    marks.setAttribute("width", String(width));
    marks.setAttribute("height", String(height));
    marks.replaceChildren(...this.names(place), ...this.rings);
    const help = "arrow keys walk the cells, Enter opens one";
    frame.setAttribute(
      "aria-label",
      `${plural(nLayer, "layer")} by ${plural(nPosition, "token")}, coloured by ${COLOURS[this.colour].unit}; ${help}`,
    );
    this.colours.value = this.colour;
    this.large.setAttribute("aria-pressed", String(this.isReadable));
    this.drawLegend();
    this.ring();
    this.say(this.hover ?? this.opened);
  }

  drawLegend() {
    const { ends, unit } = COLOURS[this.colour];
    const [low, high] = ends(this.cells.lens.vocabSize);
    const bar = make("span", "scale");
    const stops = STOPS.map((place) => `${colourAt(this.table, place)} ${100 * place}%`);
    bar.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
    this.legend.replaceChildren(make("span", "number", low), bar, make("span", "number", high), make("span", "note", unit));
  }

  /** The names of layers and tokens, and in cells that have room the likeliest token. @param {(layer: number, index: number) => number} place @returns {SVGElement[]} */
  names(place) {
    const { cells, layout, root } = this;
    if (!layout) return [];
    const { lens, nLayer, nPosition } = cells;
    const { left, top, width, height, size, letters, everyToken, everyLayer, turned, bottom } = layout;
    const ink = getComputedStyle(root).color;
    /** @param {string} words @param {Record<string, string | number>} look */
    const text = (words, look) => shape("text", { fill: ink, "font-size": size, "font-family": "monospace", ...look }, words);
    const middle = { "dominant-baseline": "central" },
      centred = { ...middle, "text-anchor": "middle" };
    const drawn = [];
    for (let layer = 0; layer < nLayer; layer += everyLayer) {
      const y = top + (layer + 0.5) * height;
      drawn.push(text(lens.layers[layer].short, { ...middle, x: left - 0.5 * size, y, "text-anchor": "end" }));
    }
    const room = Math.max(1, letters);
    for (let index = 0; index < nPosition; index += everyToken) {
      const x = left + (index + 0.5) * width;
      if (!turned) drawn.push(text(shortened(lens.tokens[index], room), { ...centred, x, y: top - 0.8 * size }));
      else {
        const words = shortened(lens.tokens[index], 12) + (everyToken > 1 ? ` ${lens.first + index}` : "");
        drawn.push(text(words, { ...middle, transform: `translate(${x} ${top - 0.3 * size}) rotate(-90)` }));
      }
    }
    if (bottom) {
      const y = top + nLayer * height + 0.9 * size;
      drawn.push(text(REALLY, { ...middle, x: left - 0.5 * size, y, "text-anchor": "end" }));
      lens.true.forEach((token, index) => {
        if (token !== null) drawn.push(text(shortened(token, room), { ...centred, x: left + (index + 0.5) * width, y }));
      });
    }
    if (!letters) return drawn;
    const inks = inksOf(this.table);
    for (let layer = 0; layer < nLayer; layer++) {
      for (let index = 0; index < nPosition; index++) {
        const name = cells.best({ layer, index }),
          shade = place(layer, index);
        const fill = Number.isNaN(shade) ? ink : inks[Math.round(255 * Math.max(0, Math.min(1, shade)))];
        const at = { x: left + (index + 0.5) * width, y: top + (layer + 0.5) * height, fill };
        if (lettersOf(name) <= letters || letters > 1) drawn.push(text(shortened(name, letters), { ...centred, ...at }));
      }
    }
    return drawn;
  }

  /** Outline the cell that is opened, and the one that is looked at. */
  ring() {
    const { layout } = this;
    if (!layout) return;
    [this.opened, this.opened, this.hover].forEach((cell, i) => {
      const ring = this.rings[i];
      ring.setAttribute("visibility", cell ? "visible" : "hidden");
      if (!cell) return;
      const box = {
        x: layout.left + cell.index * layout.width,
        y: layout.top + cell.layer * layout.height,
        width: Math.max(3, layout.width),
        height: Math.max(3, layout.height),
      };
      for (const [name, value] of Object.entries(box)) ring.setAttribute(name, String(value));
    });
  }

  /** What the cell says. @param {Cell} cell */
  say(cell) {
    const { cells } = this;
    const likely = cells.likeliest(cell).flatMap(([token, probability]) => {
      const one = make("span", "likely");
      one.append(chip(token), make("span", "number", percent(probability)));
      return one;
    });
    const where = make("div", "where", `${cells.place(cell)}${cell === this.opened ? ", opened below" : ""}:`);
    const guesses = make("div", "guesses");
    guesses.append(...likely, make("span", "note", saidOf(cells, cell)));
    this.readout.replaceChildren(where, guesses);
  }

  // What a reader does

  /** The cell under the pointer. @param {MouseEvent} event @returns {Cell | null} */
  under(event) {
    const box = this.canvas.getBoundingClientRect();
    const layer = Math.floor(((event.clientY - box.top) / box.height) * this.cells.nLayer),
      index = Math.floor(((event.clientX - box.left) / box.width) * this.cells.nPosition);
    return layer >= 0 && index >= 0 && layer < this.cells.nLayer && index < this.cells.nPosition ? { layer, index } : null;
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const from = this.hover ?? this.opened;
    const { nLayer, nPosition } = this.cells;
    const walk = ARROWS[event.key];
    if (walk) {
      const layer = Math.max(0, Math.min(nLayer - 1, from.layer + walk[0])),
        index = Math.max(0, Math.min(nPosition - 1, from.index + walk[1]));
      this.look({ layer, index }, true);
      this.bringIntoView();
    } else if (event.key === "Home" || event.key === "End") {
      this.look({ layer: from.layer, index: event.key === "Home" ? 0 : nPosition - 1 }, true);
      this.bringIntoView();
    } else if (event.key === "Enter" || event.key === " ") this.open(from);
    else if (event.key === "Escape") this.look(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Scroll sideways until the cell that is looked at is seen. */
  bringIntoView() {
    const { layout, hover, box } = this;
    if (!layout || !hover) return;
    const from = layout.left + hover.index * layout.width;
    if (from + layout.width > box.scrollLeft + box.clientWidth) box.scrollLeft = from + layout.width - box.clientWidth;
    else if (from - layout.left < box.scrollLeft) box.scrollLeft = from - layout.left;
  }

  picture() {
    const { lens } = this.cells;
    const { ends, unit, title } = COLOURS[this.colour];
    const [low, high] = ends(lens.vocabSize);
    /** @type {[number, string][]} */
    const stops = STOPS.map((place) => [place, colourAt(this.table, place)]);
    const copy = copyOf([this.frame]);
    const heading = {
      title: "Logit lens: the likeliest next token after every layer",
      model: lens.model,
      prompt: textOf(lens.tokens, lens.spaced),
      settings: [`coloured by ${title.toLowerCase()}`],
      scale: { stops, low, high, unit },
    };
    return picture(this.root, heading, copy.drawing, copy);
  }
}

/** For every colour of a scale the ink that is read best on it: one of the two always has a contrast of 4.5. @param {ArrayLike<number>} table */
function inksOf(table) {
  return Array.from({ length: 256 }, (_, i) => {
    const ground = luminance([table[3 * i], table[3 * i + 1], table[3 * i + 2]]);
    return (ground + 0.05) / 0.05 > 1.05 / (ground + 0.05) ? "#000000" : "#FFFFFF";
  });
}

/** How light a colour is (WCAG 2). @param {number[]} colour */
function luminance(colour) {
  const [r, g, b] = colour.map((one) => (one / 255 <= 0.04045 ? one / 255 / 12.92 : ((one / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

export default view(Grid);
