// The whole model from tokens to guesses, its blocks folded.

import { chip, fillLine, tint } from "../kit/chips.js";
import { make, setAttributes, shape } from "../kit/elements.js";
import { ROLES } from "../kit/roles.js";
import { percent, plural, spoken } from "../kit/text.js";
import { short, sizes, sure } from "./boxes.js";
import { SMALL, TOKENS, drawnBlocks, turns } from "./geometry.js";
import { STREAM } from "./pen.js";

/** @typedef {import("./pen.js").Pen} Pen @typedef {import("./pen.js").Place} Place @typedef {import("./pen.js").Rect} Rect @typedef {import("./pen.js").Flank} Flank */
/** @typedef {[label: string, probability: number | null]} Token */

// So few guesses have a line for the name and one for the bar.
const MOST_WITH_ROOM = 4;
// From one box of the stream to the next.
const APART = 68;
/** What a block has besides its attention, drawn as bars. @type {[path: string, role: "pattern" | "mlp", letters: string][]} */
const BARS = [
  ["cross_attention.q", "pattern", "cross"],
  ["mlp.out", "mlp", "MLP"],
];

export class Whole {
  /** @param {Pen} pen @param {import("./opened.js").Opened} opened */
  constructor(pen, opened) {
    this.pen = pen;
    this.opened = opened;
    /** @type {Place | null} */
    this.memory = null; // where the encoder ends
    /** @type {HTMLElement[]} */
    this.columns = []; // text at the beginning
    this.guesses = make("div"); // and at the end
    /** @type {{ x: number, w: number, bottom: number } | null} */
    this.lens = null; // where the open block stands
  }

  /** @param {string} stack @param {number} top */
  drawStack(stack, top) {
    const { pen } = this,
      { data, boxes } = pen;
    const middle = top + pen.layout.row / 2 + (data.sizes[0] ? 4 : 6);
    const end = pen.width - pen.layout.guesses - (stack ? 70 : 96);
    const after = [`${stack}backout`, `${stack}final_norm`].filter((path) => boxes.get(path));
    const blocks = this.drawBlocks(stack, this.drawStart(stack, top, middle), end - APART * after.length, middle);
    const last = after.reduce((/** @type {Flank} */ from, path, i) => {
      return this.onStream(path, from, end - APART * (after.length - i), middle);
    }, blocks);
    if (stack) {
      this.memory = pen.drawBox("memory", [end, middle - 20, 66, 40], { sub: this.shapeOf("memory") });
      pen.level(last, this.memory, middle, STREAM);
    } else this.drawHead(last, end, top, middle);
  }

  /** @param {string} path */
  shapeOf(path) {
    return sizes(this.pen.boxes.get(path)?.pieces[0]?.shape ?? []);
  }

  /** A box that the stream goes through. @param {string} path @param {Flank} from @param {number} x @param {number} middle */
  onStream(path, from, x, middle) {
    const box = this.pen.drawBox(path, [x, middle - 20, 52, 40]);
    this.pen.level(from, box, middle, STREAM);
    return box;
  }

  /** Tokens, embedding and positions: what the blocks go on from. @param {string} stack @param {number} top @param {number} middle @returns {Flank} */
  drawStart(stack, top, middle) {
    const { pen } = this,
      { data, boxes } = pen;
    const tokens = stack ? data.source : data.tokens;
    const what = data.sizes[0] ? (stack ? "Source: " : "Written: ") : "";
    const strip = this.strip(tokens, "how probable the model found it");
    const place = /** @type {Rect} */ ([0, top, TOKENS, pen.layout.row]);
    this.columns.push(this.column(place, what + plural(tokens.length, "token"), `${stack}ids`, strip));
    pen.order.push(`${stack}ids`);
    const table = pen.drawBox(`${stack}embed`, [TOKENS + 34, middle - 24, data.sizes[0] ? 66 : 56, 48]);
    pen.level({ path: `${stack}ids`, x: TOKENS, w: 4 }, table, middle);
    pen.detail(TOKENS + 18, middle - 6, sizes([tokens.length]));
    const placing = boxes.get(`${stack}positions`);
    const from = placing ? this.drawPositions(stack, placing, table, middle) : table;
    return [`${stack}embed_norm`, "smear"]
      .filter((path) => boxes.get(path))
      .reduce((before, path) => this.onStream(path, before, before.x + before.w + 12, middle), from);
  }

  /** Positions, and the sum that they enter. @param {string} stack @param {import("./boxes.js").Box} placing @param {Place} table @param {number} middle @returns {Flank} */
  drawPositions(stack, placing, table, middle) {
    const { pen } = this;
    const added = pen.boxes.get(`${stack}stream`),
      x = table.x + table.w + 34;
    const isLearned = placing.pieces.length > 1;
    const y = middle + (pen.data.sizes[0] ? 22 : 34);
    const positions = pen.drawBox(placing.path, [x - 31, y, 62, isLearned ? 34 : 24]);
    // Without a norm between them the first block's own entrance is where the two are added; it is drawn with the model too.
    const elsewhere = { path: `${stack}blocks.0.resid_pre`, x: x - 9, y: middle - 9, w: 18, h: 18 };
    const sum = added ? pen.drawPoint(added.path, x, middle) : elsewhere;
    if (!added) pen.under.append(...pen.sum(x, middle));
    pen.level(table, sum, middle, STREAM);
    pen.plumb(positions, sum, x);
    return sum;
  }

  /** From the end of the stream to the guesses. @param {Flank} last @param {number} x @param {number} top @param {number} middle */
  drawHead(last, x, top, middle) {
    const { pen } = this;
    const heads = ["head.token", "shares", "pooled", "logits"].filter((path) => pen.boxes.get(path));
    const each = heads.length > 1 ? 38 : 48,
      gap = 9,
      first = middle - (heads.length * each + (heads.length - 1) * gap) / 2;
    const places = heads.map((path, i) => pen.drawBox(path, [x, first + i * (each + gap), 66, each]));
    places.forEach((box, i) => {
      if (i) return pen.plumb(places[i - 1], box, box.cx, { colour: ROLES.output });
      const from = last.x + last.w;
      pen.arrow(last.path, box.path, turns(from, middle, (from + x) / 2, box.cy, x), STREAM);
    });
    const logits = places[places.length - 1];
    pen.level(logits, { path: "guesses", x: pen.width - pen.layout.guesses - 4 }, logits.cy, { colour: ROLES.output });
    pen.detail(logits.cx, logits.y + logits.h + 3 + SMALL, this.shapeOf("logits"));
    this.guesses = this.guessesAt(top);
  }

  /**
   * The blocks, from where the stream begins to where the last of them ends.
   *
   * @param {string} stack
   * @param {Flank} from
   * @param {number} right
   * @param {number} middle
   * @returns {Flank}
   */
  drawBlocks(stack, from, right, middle) {
    const { pen } = this,
      { data, boxes, under } = pen;
    const around = this.opened.stack === stack ? this.opened.block : 0;
    const count = boxes.blocks(stack),
      numbers = drawnBlocks(count, around),
      n = numbers.length,
      left = from.x + from.w;
    if (!n) {
      pen.detail((left + right) / 2, middle - 8, this.shapeOf(`${stack}embed`));
      under.append(pen.text((left + right) / 2, middle + 18, "no blocks", { fill: pen.ink(0.6) }));
      return from;
    }
    const room = right - left - 46 - 10,
      each = Math.min(110, room / n),
      w = Math.min(46, each - Math.max(4, each * 0.2)),
      h = data.sizes[0] ? 84 : 100;
    const lead = 46 + (room - n * each + each - w) / 2,
      last = left + lead + (n - 1) * each + w;
    const look = { d: `M${left} ${middle}H${last}`, stroke: ROLES.stream, "stroke-width": 3, class: "arrow" };
    under.append(shape("path", look));
    pen.detail(left + 24, middle - 7, this.shapeOf(`${stack}embed`));
    numbers.forEach((block, i) => {
      const x = left + lead + i * each;
      if (block !== null) return this.drawSlim(stack, block, [x, middle - h / 2, w, h]);
      under.append(pen.rect([x, middle - 8, w, 16], { fill: pen.colours.ground }));
      under.append(pen.text(x + w / 2, middle + 4, "⋯", { size: 14 }));
    });
    const size = [plural(count, "block")];
    if (!pen.isPlain) size.push(`W ${short(data.counts[stack])}${n > 1 ? " each" : ""}`);
    const fill = pen.ink(0.72);
    // Between two stacks there is no room above the blocks.
    if (data.sizes[0])
      under.append(...size.map((line, i) => pen.text(last + 10, middle + (i ? 18 : -8), line, { anchor: "start", fill })));
    else under.append(pen.text((left + lead + last) / 2, middle - h / 2 - 5, size.join(", "), { fill }));
    return { path: `${stack}blocks.${count - 1}.resid_post`, x: last, w: 0 };
  }

  /** A block that is folded: its mean pattern, its MLP, its number. @param {string} stack @param {number} block @param {Rect} rect */
  drawSlim(stack, block, rect) {
    const { pen, opened, memory } = this,
      { boxes, data } = pen,
      [x, y, w, h] = rect;
    const isOpen = stack === opened.stack && block === opened.block;
    const path = `${stack}blocks.${block}`,
      window = stack ? null : data.windows[block];
    const inset = 3,
      side = Math.max(0, w - 2 * inset);
    const line = isOpen ? { stroke: pen.ink(), "stroke-width": 2.2 } : { stroke: ROLES.stream, "stroke-width": 1.4 };
    /** @type {Record<string, string>} */
    const dashes = window ? { "stroke-dasharray": "4 2" } : {};
    /** @type {SVGElement[]} */
    const parts = [
      pen.rect(rect, { rx: 5, fill: pen.colours.ground, ...line, ...dashes, class: "edge" }),
      pen.rect([x + inset, y + inset, side, side], { rx: 2, fill: pen.mix(ROLES.pattern, 0.08) }),
    ];
    pen.thumbnail(stack ? "encoder" : "decoder", block, null, { x: x + inset, y: y + inset, side });
    const bars = BARS.filter(([name]) => boxes.get(`${path}.${name}`));
    const below = y + inset + side + 3,
      tall = (y + h - 17 - below - 3 * (bars.length - 1)) / bars.length;
    bars.forEach(([, role, letters], i) => {
      const look = { rx: 2, fill: pen.mix(ROLES[role], 0.2), stroke: ROLES[role], "stroke-width": 1 },
        top = below + i * (tall + 3);
      parts.push(pen.rect([x + inset, top, side, tall], look));
      if (w > 30 && tall > SMALL) parts.push(pen.text(x + w / 2, top + tall / 2 + 3.5, letters, { weight: 600 }));
    });
    parts.push(pen.text(x + w / 2, y + h - 5, String(block), { weight: isOpen ? 700 : 500 }));
    const words = [boxes.blockName(stack, block), isOpen ? "open" : "folded", plural(data.counts[stack], "parameter")];
    if (window) words.push(`window of ${plural(window, "token")}`);
    const marks = { "data-block": path, "data-stack": stack, "data-number": block, "aria-expanded": isOpen };
    pen.held(path, words.join(", "), marks, ...parts);
    if (isOpen) {
      this.lens = { x, w, bottom: y + h };
      pen.order.push(...boxes.of(stack, block));
    }
    if (!boxes.get(`${path}.cross_attention.q`) || !memory) return;
    // What every block of the decoder reads of the encoder.
    const bottom = memory.y + memory.h;
    pen.arrow("memory", path, turns(memory.cx, bottom, memory.cx, bottom + 25, x + w / 2, y));
  }

  // Text at both ends

  /** A column of text, under a heading that opens a box if it has a path. @param {Rect} rect @param {string} heading @param {string | null} path @param {HTMLElement} content */
  column([left, top, width, height], heading, path, content) {
    const head = path
      ? make("button", "bare heading", heading, { "data-box": path, "data-path": path })
      : make("div", "heading", heading);
    if (path) this.pen.elements.set(path, head);
    const place = { left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px` };
    const column = make("div", "column", [head, content]);
    Object.assign(column.style, place);
    return column;
  }

  /** @param {Token[]} tokens @param {string} meaning */
  strip(tokens, meaning) {
    const chips = tokens.flatMap(([label, probability]) => {
      const token = setAttributes(chip(label), { role: "listitem" });
      if (probability !== null) {
        const title = `${spoken(label)}: ${percent(probability)}, ${meaning}`;
        setAttributes(tint(token, probability), { "aria-label": `${spoken(label)}, ${percent(probability)}`, title });
      }
      return [token, make("wbr")];
    });
    return make("div", this.pen.data.spaced ? "strip spaced" : "strip", chips, { role: "list", "aria-label": "Tokens" });
  }

  /** @param {number} top */
  guessesAt(top) {
    const { data, layout, width } = this.pen;
    const headings = {
      decoder: "Next token",
      classifier: "Label",
      "encoder-decoder": `Answer: ${plural(data.guesses.length, "token")}`,
    };
    const isAnswer = data.kind === "encoder-decoder";
    const content = isAnswer ? this.strip(data.guesses, "how sure it was") : this.listOfGuesses();
    if (layout.isNarrow) return make("div", "column", [make("div", "heading", headings[data.kind]), content]);
    return this.column([width - layout.guesses, top, layout.guesses, layout.row], headings[data.kind], null, content);
  }

  listOfGuesses() {
    const { pen } = this,
      { guesses, takes } = pen.data;
    const lines = guesses.map(([label, probability], i) => {
      const title = takes ? `Append ${spoken(label)} to the prompt` : label;
      const look = { "data-guess": i, title, "aria-label": `${takes ? "take " : ""}${spoken(label)}, ${sure(probability)}` };
      const line = make(takes ? "button" : "div", takes ? "bare guess" : "guess", undefined, look);
      if (takes) {
        line.dataset.path = `guess ${i}`;
        pen.elements.set(line.dataset.path, line);
        pen.order.push(line.dataset.path);
      }
      return fillLine(line, label, probability, 12);
    });
    return make("div", guesses.length <= MOST_WITH_ROOM ? "guesses roomy" : "guesses", lines);
  }
}
