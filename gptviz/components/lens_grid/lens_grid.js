// The logit lens: a row for every layer, a column for every token that was read. Text from a model is a text node.

import { inAddress } from "../kit/address.js";
import { chip } from "../kit/chips.js";
import { Choices } from "../kit/choices.js";
import { colourAt, inkOn, isDark, sequential } from "../kit/colour.js";
import { copyOf } from "../kit/copy.js";
import { announce, tools } from "../kit/details.js";
import { make, setAttributes, shape } from "../kit/elements.js";
import { Heatmap, Words, coloursOf, legendOf, paint } from "../kit/heatmap.js";
import { onKeys, walked } from "../kit/keys.js";
import { picture, textOf } from "../kit/picture.js";
import { ROLES } from "../kit/roles.js";
import { rem } from "../kit/size.js";
import { percent, plural, shortened } from "../kit/text.js";
import { View, view } from "../kit/view.js";
import { COLOURS, Cells, saidOf, tableOf } from "./cells.js";
import { REALLY, layoutOf, lettersOf } from "./layout.js";

/** @typedef {import("./cells.js").Cell} Cell @typedef {import("./cells.js").Lens} Lens */

export class Grid extends View {
  /** @param {HTMLElement} root */
  constructor(root) {
    super(root);
    /** `words`: whether cells are large enough for their names. @type {Choices<{ layer: string, position: number, colour: string, words: boolean }>} */
    this.choices = new Choices();
    /** @type {Cells} */
    this.cells = /** @type {any} */ (undefined); // until the first payload
    /** @type {Cell} */
    this.opened = { layer: 0, index: 0 };
    /** @type {Cell | null} */
    this.hover = null;
    /** @type {import("./layout.js").Layout | null} */
    this.layout = null; // until it is drawn
    /** @type {ArrayLike<number>} */
    this.table = []; // the scale of colours
    const about = "What the colours show: strong where the model is sure, or where it ranks the right token high";
    const kinds = Object.entries(COLOURS).map(([value, { title }]) => make("option", "", title, { value }));
    this.colours = make("select", "tool", kinds, { "aria-label": "What the colours show", title: about });
    const help = "Makes every cell large enough for its token; a long text then scrolls sideways";
    this.large = make("button", "tool", "Large cells", { title: help });
    this.legend = make("span", "small legend");
    this.readout = make("div", "readout");
    this.box = make("div", "box");
    this.heatmap = new Heatmap("grid");
    this.words = new Words(this.heatmap, this.box);
    // A ring of either ink is seen on any colour.
    const rings = () => ["ground", "opened", "hover"].map((name) => shape("rect", { class: name, fill: "none" }));
    this.rings = rings();
    this.ringsBelow = rings();
    // Where rows scroll, these stay in sight: the tokens above them, and below the last row, the model's own guess.
    this.head = shape("svg", { class: "stays head", "aria-hidden": "true" });
    this.foot = shape("svg", { class: "stays foot", "aria-hidden": "true" });
    this.arrange();
    this.listen();
    this.closing.signal.addEventListener("abort", () => this.words.close());
    this.whenResized(() => this.draw(), this.box, this.legend); // the legend grows with the reader's own space between letters
  }

  /** Puts the parts of the view in their places. */
  arrange() {
    this.heatmap.frame.append(this.head, this.foot);
    this.box.append(this.heatmap.frame);
    const help = "A click, or Enter, opens a cell: its likeliest tokens are followed through all layers below.";
    const below = tools(this.root, {
      name: "logit_lens",
      numbers: () => tableOf(this.cells),
      code: () => this.cells.lens.code,
      picture: () => this.picture(),
    });
    this.root.replaceChildren(
      make("div", "tools", [this.colours, this.large, this.legend]),
      ...[this.readout, this.box, make("div", "row below", [make("span", "note", help), below])],
    );
  }

  listen() {
    this.colours.onchange = () => this.choose({ colour: this.colours.value });
    this.large.onclick = () => this.choose({ words: !this.choices.values.words });
    const { frame } = this.heatmap;
    frame.addEventListener("pointermove", (event) => event.pointerType !== "touch" && this.look(this.under(event)));
    frame.addEventListener("pointerleave", () => this.look(null));
    frame.addEventListener("blur", () => this.look(null));
    frame.addEventListener("click", (event) => {
      const cell = this.under(event);
      if (cell) this.open(cell);
    });
    onKeys(frame, (event) => this.key(event));
  }

  // What is shown

  /** @param {Lens} lens */
  show(lens) {
    const before = this.cells?.lens;
    this.cells = new Cells(lens);
    this.root.style.colorScheme = isDark(this.root) ? "dark" : "light";
    this.hover = null;
    const chosen = before && this.choices.written;
    if (!before) {
      // Only a cell of which the address has both the layer and the position is opened.
      const refused = this.choices.begin(lens.declared).map(([key]) => key);
      this.opened = this.chosen;
      if (["layer", "position"].some((key) => inAddress(key) === null || refused.includes(key))) this.openEnd();
    } else if (before.of === lens.of) this.choices.declared = lens.declared;
    else {
      this.choices.fit(lens.declared);
      this.openEnd();
    }
    const asked = this.choices.asked(lens, chosen);
    if (asked) this.choose(asked);
    else if (before) this.remember();
    this.draw();
    if (before && !asked) return;
    if (this.opened.layer === this.end.layer)
      this.box.scrollTop = this.box.scrollHeight; // where the guess comes about
    else this.bringIntoView(this.opened);
  }

  /** The last cell: the model's own guess after the whole text. */
  get end() {
    return { layer: this.cells.nLayer - 1, index: this.cells.nPosition - 1 };
  }

  /** Open the last cell, as before anybody chooses. */
  openEnd() {
    this.choices.take({ layer: null, position: null });
    this.opened = this.end;
  }

  /** The cell that is chosen. */
  get chosen() {
    const { layer, position } = this.choices.values;
    return { layer: this.cells.layerNamed(layer), index: position - this.cells.lens.first };
  }

  remember() {
    const { end, opened } = this;
    this.choices.write(opened.layer === end.layer && opened.index === end.index ? [] : ["layer", "position"]);
  }

  /** Change what is chosen. @param {Record<string, unknown>} changes */
  choose(changes) {
    this.choices.take(changes);
    if ("layer" in changes && "position" in changes) this.open(this.chosen);
    this.remember();
    this.draw();
  }

  /** @param {Cell} cell */
  open(cell) {
    const { lens } = this.cells;
    this.opened = cell;
    Object.assign(this.choices.values, { layer: lens.layers[cell.layer].name, position: lens.first + cell.index });
    this.remember();
    this.send("open", { ...cell, of: lens.of });
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
    const { cells, heatmap } = this;
    const { lens, nLayer, nPosition } = cells;
    const labels = { layers: lens.layers.map(({ short }) => short), tokens: lens.tokens, names: lens.names };
    const { letterSpacing, wordSpacing } = getComputedStyle(this.root);
    const spacing = Number.parseFloat(letterSpacing) || 0; // usually "normal"
    const layout = (this.layout = layoutOf(labels, this.box.clientWidth - 1, rem(), this.choices.values.words, spacing));
    this.table = sequential(ROLES.output, this.root);
    paint(heatmap.canvas, nLayer, nPosition, (layer, index) => this.place({ layer, index }), this.table);
    const width = Math.ceil(layout.left + layout.width * nPosition) + 1,
      height = Math.ceil(layout.top + layout.height * nLayer + layout.bottom) + 1;
    heatmap.lay(nLayer, nPosition, layout, { width, height });
    heatmap.marks.replaceChildren(...this.names(layout), ...this.rings);
    this.keepInSight(layout, width);
    const type = { size: layout.size, letterSpacing: `${spacing}px`, wordSpacing };
    this.words.show((from, to) => this.guesses(layout, from, to), type);
    const { ends, unit } = COLOURS[this.choices.values.colour];
    const about = `${plural(nLayer, "layer")} by ${plural(nPosition, "token")}, coloured by ${unit}`;
    heatmap.frame.setAttribute("aria-label", `${about}; arrow keys walk the cells, Enter opens one`);
    this.colours.value = this.choices.values.colour;
    this.large.setAttribute("aria-pressed", String(this.choices.values.words));
    this.legend.replaceChildren(...legendOf(this.table, ...ends(lens.vocabSize), unit));
    this.ring();
    this.say(this.hover ?? this.opened);
  }

  /** Where a cell is on the scale, 0 … 1; NaN where that is not known. @param {Cell} cell */
  place(cell) {
    return COLOURS[this.choices.values.colour].strength(this.cells.numbers(cell), this.cells.lens.vocabSize);
  }

  get ink() {
    return getComputedStyle(this.root).color;
  }

  /**
   * Where the rows scroll, lay the tokens and the last row over them: two windows on the same drawing.
   *
   * @param {import("./layout.js").Layout} layout
   * @param {number} across the width of the drawing
   */
  keepInSight(layout, across) {
    const { box, head, foot, table } = this;
    const { left, top, width, height, size, bottom, most } = layout;
    const { nLayer, nPosition } = this.cells;
    const scrolls = height * nLayer > most;
    box.style.maxHeight = scrolls ? `${Math.ceil(top + most + bottom) + 1}px` : "";
    for (const one of [head, foot]) one.style.display = scrolls ? "" : "none";
    if (!scrolls) return;
    const last = top + (nLayer - 1) * height;
    for (const [one, from, high] of /** @type {[SVGElement, number, number][]} */ ([
      [head, 0, top],
      [foot, last, height + bottom + 1],
    ])) {
      setAttributes(one, { viewBox: `0 ${from} ${across} ${high}`, width: across, height: high });
      one.replaceChildren(...this.names(layout));
    }
    for (let index = 0; index < nPosition; index++) {
      const place = this.place({ layer: nLayer - 1, index });
      const fill = Number.isNaN(place) ? "none" : colourAt(table, Math.max(0, Math.min(1, place)));
      // A little wider than the cell, so that no gap shows between two.
      foot.append(shape("rect", { x: left + index * width, y: last, width: width + 0.5, height, fill }));
    }
    for (const { text, x, y, ink } of this.guesses(layout, 0, nPosition, nLayer - 1)) {
      foot.append(textOfSize(text, size, { "text-anchor": "middle", x, y, fill: ink }));
    }
    foot.append(...this.ringsBelow);
  }

  /**
   * The names of layers and tokens, and what really comes next.
   *
   * @param {import("./layout.js").Layout} layout
   * @returns {SVGElement[]}
   */
  names({ left, top, width, height, size, letters, everyToken, everyLayer, turned, bottom }) {
    const { lens, nLayer, nPosition } = this.cells;
    const { ink } = this;
    /** @param {string} words @param {Record<string, string | number>} look */
    const text = (words, look) => textOfSize(words, size, { fill: ink, ...look });
    const drawn = [];
    for (let layer = 0; layer < nLayer; layer += everyLayer) {
      const y = top + (layer + 0.5) * height;
      drawn.push(text(lens.layers[layer].short, { x: left - 0.5 * size, y, "text-anchor": "end" }));
    }
    const room = Math.max(1, letters);
    for (let index = 0; index < nPosition; index += everyToken) {
      const x = left + (index + 0.5) * width;
      if (!turned) drawn.push(text(shortened(lens.tokens[index], room), { "text-anchor": "middle", x, y: top - 0.8 * size }));
      else {
        const words = shortened(lens.tokens[index], 12) + (everyToken > 1 ? ` ${lens.first + index}` : "");
        drawn.push(text(words, { transform: `translate(${x} ${top - 0.3 * size}) rotate(-90)` }));
      }
    }
    if (bottom) {
      const y = top + nLayer * height + 0.9 * size;
      drawn.push(text(REALLY, { x: left - 0.5 * size, y, "text-anchor": "end" }));
      lens.true.forEach((token, index) => {
        const x = left + (index + 0.5) * width;
        if (token !== null) drawn.push(text(shortened(token, room), { "text-anchor": "middle", x, y }));
      });
    }
    return drawn;
  }

  /**
   * The likeliest token of every cell that has room for it, of the columns from `from` to the one before `to`.
   *
   * @param {import("./layout.js").Layout} layout
   * @param {number} from
   * @param {number} to
   * @param {number} [first] the first of the layers
   * @returns {Iterable<import("../kit/heatmap.js").Word>}
   */
  *guesses({ left, top, width, height, letters }, from, to, first = 0) {
    if (!letters) return;
    const { cells, table, ink } = this;
    const inks = Array.from({ length: 256 }, (_, i) => inkOn(colourAt(table, i / 255)));
    for (let layer = first; layer < cells.nLayer; layer++) {
      for (let index = from; index < to; index++) {
        const name = cells.best({ layer, index });
        if (lettersOf(name) > letters && letters === 1) continue;
        const place = this.place({ layer, index });
        yield {
          text: shortened(name, letters),
          x: left + (index + 0.5) * width,
          y: top + (layer + 0.5) * height,
          ink: Number.isNaN(place) ? ink : inks[Math.round(255 * Math.max(0, Math.min(1, place)))],
        };
      }
    }
  }

  /** Outline the cell that is opened, and the one that is looked at. */
  ring() {
    [this.opened, this.opened, this.hover].forEach((cell, i) => {
      for (const rings of [this.rings, this.ringsBelow]) {
        this.heatmap.outline(rings[i], cell && { row: cell.layer, column: cell.index });
      }
    });
  }

  /** What the cell says. @param {Cell} cell */
  say(cell) {
    const { cells } = this;
    const likely = cells
      .likeliest(cell)
      .map(([token, probability]) => make("span", "likely", [chip(token), make("span", "number", percent(probability))]));
    const where = make("div", "cut where", `${cells.place(cell)}${cell === this.opened ? ", opened below" : ""}:`);
    this.readout.replaceChildren(where, make("div", "wrapped guesses", [...likely, make("span", "note", saidOf(cells, cell))]));
  }

  // What a reader does

  /** The cell under the pointer. @param {MouseEvent} event @returns {Cell | null} */
  under(event) {
    const { head, foot, heatmap } = this,
      over = /** @type {Node} */ (event.target);
    if (head.contains(over)) return null;
    let y = event.clientY;
    if (foot.contains(over)) {
      y += heatmap.canvas.getBoundingClientRect().bottom - heatmap.place.height - foot.getBoundingClientRect().top;
    }
    const cell = heatmap.at({ clientX: event.clientX, clientY: y });
    return cell && { layer: cell.row, index: cell.column };
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const from = this.hover ?? this.opened;
    const { nLayer, nPosition } = this.cells;
    const to = walked({ row: from.layer, column: from.index }, event.key, nLayer, nPosition);
    if (to) {
      this.look({ layer: to.row, index: to.column }, true);
      this.bringIntoView();
    } else if (event.key === "Enter" || event.key === " ") this.open(from);
    else if (event.key === "Escape") this.look(null);
    else return false;
    return true;
  }

  /** Scroll until a cell is seen, unless given the one that is looked at. @param {Cell | null} [cell] */
  bringIntoView(cell = this.hover) {
    const { layout, box } = this;
    if (!layout || !cell) return;
    const { left, top, width, height, bottom } = layout;
    const from = left + cell.index * width;
    if (from + width > box.scrollLeft + box.clientWidth) box.scrollLeft = from + width - box.clientWidth;
    else if (from - left < box.scrollLeft) box.scrollLeft = from - left;
    if (cell.layer === this.end.layer) return; // it stays in sight
    const above = cell.layer * height,
      seen = box.clientHeight - top - height - bottom;
    if (above + height > box.scrollTop + seen) box.scrollTop = above + height - seen;
    else if (above < box.scrollTop) box.scrollTop = above;
  }

  picture() {
    const { lens } = this.cells;
    const { ends, unit, title } = COLOURS[this.choices.values.colour];
    const [low, high] = ends(lens.vocabSize);
    const heading = {
      title: "Logit lens: the likeliest next token after every layer",
      model: lens.model,
      prompt: textOf(lens.tokens, lens.spaced),
      settings: [`coloured by ${title.toLowerCase()}`],
      scale: { stops: coloursOf(this.table), low, high, unit },
    };
    const { layout } = this;
    // The words of all cells are texts in it, which stay sharp.
    const words = layout ? [...this.guesses(layout, 0, this.cells.nPosition)] : [];
    const texts = words.map(({ text, x, y, ink }) =>
      textOfSize(text, layout?.size ?? 0, { "text-anchor": "middle", x, y, fill: ink }),
    );
    this.rings[0].before(...texts);
    const copy = copyOf([this.heatmap.frame], ".words, .stays");
    for (const text of texts) text.remove();
    return picture(this.root, heading, copy);
  }
}

/** A text in the middle of its line. @param {string} words @param {number} size @param {Record<string, string | number>} look */
function textOfSize(words, size, look) {
  return shape("text", { "font-size": size, "font-family": "monospace", "dominant-baseline": "central", ...look }, words);
}

export default view(Grid);
