import { chip, fillLine, tint } from "../kit/chips.js";
import { make, shape } from "../kit/elements.js";
import { ROLES } from "../kit/roles.js";
import { percent, plural, spoken } from "../kit/text.js";
import { short, sizes, sure } from "./boxes.js";
import { SMALL, TOKENS, drawnBlocks, turns } from "./geometry.js";

/** @typedef {import("./pen.js").Pen} Pen @typedef {import("./pen.js").Place} Place */
/** @typedef {{ path: string, x: number, w: number }} Flank something an arrow leaves to the right */
/** @typedef {[label: string, probability: number | null]} Token @typedef {[role: import("../kit/roles.js").Role, letters: string]} Bar */

// So few guesses have a line for the name and one for the bar.
const MOST_WITH_ROOM = 4;

/** The whole model from tokens to guesses, its blocks folded. */
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
    const encoder = stack === "encoder.";
    const from = this.drawStart(stack, top, middle);
    const end = pen.width - pen.layout.guesses - (encoder ? 70 : 96);
    const normed = boxes.get(`${stack}final_norm`);
    const left = normed ? end - 68 : end,
      without = boxes.get(`${stack}backout`);
    let last = this.drawBlocks(stack, from, without ? left - 68 : left, middle);
    if (without) {
      const middleOut = pen.drawBox(without.path, left - 68, middle - 20, 52, 40);
      pen.level(last, middleOut, middle, { width: 3, head: false });
      last = middleOut;
    }
    if (normed) {
      const norm = pen.drawBox(`${stack}final_norm`, left, middle - 20, 52, 40);
      pen.level(last, norm, middle, { width: 3, head: false });
      last = norm;
    }
    if (encoder) {
      this.memory = pen.drawBox("memory", end, middle - 20, 66, 40, { sub: this.shapeOf("memory") });
      pen.level(last, this.memory, middle, { width: 3, head: false });
    } else this.drawHead(last, end, top, middle);
  }

  /** @param {string} path */
  shapeOf(path) {
    return sizes(this.pen.boxes.get(path)?.pieces[0]?.shape ?? []);
  }

  /**
   * Tokens, embedding, and the positions that are added to it: what the blocks go on from.
   *
   * @param {string} stack
   * @param {number} top
   * @param {number} middle
   */
  drawStart(stack, top, middle) {
    const { pen } = this,
      { data, boxes } = pen;
    const tokens = stack ? data.source : data.tokens;
    this.columns.push(this.tokensAt(stack, tokens, top));
    pen.order.push(`${stack}ids`);
    const table = pen.drawBox(`${stack}embed`, TOKENS + 34, middle - 24, data.sizes[0] ? 66 : 56, 48);
    pen.level({ path: `${stack}ids`, x: TOKENS, w: 4 }, table, middle, {
      label: { x: TOKENS + 18, y: middle - 6, text: sizes([tokens.length]) },
    });
    const norm = `${stack}embed_norm`,
      placing = boxes.get(`${stack}positions`);
    if (!placing) return this.normed("smear", this.normed(norm, table, middle), middle);
    const added = boxes.get(`${stack}stream`),
      joined = added ? added.path : `${stack}blocks.0.resid_pre`,
      x = table.x + table.w + 34;
    const learned = placing.pieces.length > 1;
    const positions = pen.drawBox(placing.path, x - 31, middle + (data.sizes[0] ? 22 : 34), 62, learned ? 34 : 24);
    // Without a norm between them the first block's own entrance is where the two are added; it is drawn with the model too.
    const sum = added ? pen.drawPoint(joined, x, middle) : pen.plus(joined, x, middle);
    pen.level(table, sum, middle, { width: 3, head: false });
    pen.plumb(positions, sum, x);
    return this.normed("smear", this.normed(norm, sum, middle), middle);
  }

  /** The norm or smear of what `from` gives, where the model has this one. @param {string} path @param {Flank} from @param {number} middle */
  normed(path, from, middle) {
    const { pen } = this;
    if (!pen.boxes.get(path)) return from;
    const norm = pen.drawBox(path, from.x + from.w + 12, middle - 20, 52, 40);
    pen.level(from, norm, middle, { width: 3, head: false });
    return norm;
  }

  /**
   * From the end of the stream to the guesses.
   *
   * @param {Flank} last
   * @param {number} x
   * @param {number} top
   * @param {number} middle
   */
  drawHead(last, x, top, middle) {
    const { pen } = this;
    const heads = ["head.token", "shares", "pooled", "logits"].filter((path) => pen.boxes.get(path));
    const each = heads.length > 1 ? 38 : 48,
      gap = 9;
    let y = middle - (heads.length * each + (heads.length - 1) * gap) / 2;
    /** @type {Place | null} */
    let above = null;
    for (const path of heads) {
      const box = pen.drawBox(path, x, y, 66, each);
      if (above) pen.plumb(above, box, box.cx, { colour: ROLES.output });
      else {
        const from = last.x + last.w;
        pen.arrow(last.path, path, turns(from, middle, (from + x) / 2, box.cy, x), { width: 3, head: false });
      }
      above = box;
      y += each + gap;
    }
    const logits = /** @type {Place} */ (above); // every model has them
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
    const { data } = this.pen;
    const around = this.opened.stack === stack ? this.opened.block : 0;
    const numbers = drawnBlocks(this.pen.boxes.blocks(stack), around);
    const n = numbers.length,
      left = from.x + from.w;
    const shapeText = sizes(this.pen.boxes.at(`${stack}embed`).pieces[0].shape);
    if (!n) {
      this.pen.detail((left + right) / 2, middle - 8, shapeText);
      this.pen.under.append(this.pen.text((left + right) / 2, middle + 18, "no blocks", { fill: this.pen.ink(0.6) }));
      return from;
    }
    const room = right - left - 46 - 10,
      each = Math.min(110, room / n),
      w = Math.min(46, each - Math.max(4, each * 0.2)),
      h = data.sizes[0] ? 84 : 100;
    const lead = 46 + (room - n * each + each - w) / 2,
      last = left + lead + (n - 1) * each + w;
    this.pen.under.append(
      shape("path", { d: `M${left} ${middle}H${last}`, stroke: ROLES.stream, "stroke-width": 3, class: "arrow" }),
    );
    this.pen.detail(left + 24, middle - 7, shapeText);
    numbers.forEach((block, i) => {
      const x = left + lead + i * each;
      if (block === null) {
        this.pen.under.append(
          this.pen.rect(x, middle - 8, w, 16, { fill: this.pen.colours.ground }),
          this.pen.text(x + w / 2, middle + 4, "⋯", { size: 14 }),
        );
        return;
      }
      this.drawSlim(stack, block, x, middle - h / 2, w, h);
    });
    const size = [plural(this.pen.boxes.blocks(stack), "block")];
    if (!this.pen.isPlain) size.push(`W ${short(data.counts[stack])}${n > 1 ? " each" : ""}`);
    const fill = this.pen.ink(0.72);
    // Between two stacks there is no room above the blocks.
    if (data.sizes[0])
      size.forEach((line, i) => {
        this.pen.under.append(this.pen.text(last + 10, middle + (i ? 18 : -8), line, { anchor: "start", fill }));
      });
    else this.pen.under.append(this.pen.text((left + lead + last) / 2, middle - h / 2 - 5, size.join(", "), { fill }));
    return { path: `${stack}blocks.${this.pen.boxes.blocks(stack) - 1}.resid_post`, x: last, w: 0 };
  }

  /**
   * A block that is folded: its mean pattern, its MLP, its number.
   *
   * @param {string} stack
   * @param {number} block
   * @param {number} x
   * @param {number} y
   * @param {number} w
   * @param {number} h
   */
  drawSlim(stack, block, x, y, w, h) {
    const open = stack === this.opened.stack && block === this.opened.block;
    const path = `${stack}blocks.${block}`,
      window = stack ? null : this.pen.data.windows[block];
    const inset = 3,
      side = Math.max(0, w - 2 * inset);
    /** @param {string} part */
    const has = (part) => this.pen.boxes.get(`${path}.${part}`);
    /** @type {SVGElement[]} */
    const parts = [
      this.pen.rect(x, y, w, h, {
        rx: 5,
        fill: this.pen.colours.ground,
        stroke: open ? this.pen.ink() : ROLES.stream,
        "stroke-width": open ? 2.2 : 1.4,
        ...(window ? { "stroke-dasharray": "4 2" } : {}),
        class: "edge",
      }),
      this.pen.rect(x + inset, y + inset, side, side, { rx: 2, fill: this.pen.mix(ROLES.pattern, 0.08) }),
    ];
    this.pen.thumbnail(stack ? "encoder" : "decoder", block, null, x + inset, y + inset, side);
    const bars = [
      ...(has("cross_attention.q") ? [/** @type {Bar} */ (["pattern", "cross"])] : []),
      ...(has("mlp.out") ? [/** @type {Bar} */ (["mlp", "MLP"])] : []),
    ];
    let below = y + inset + side + 3;
    const tall = (y + h - 17 - below - 3 * (bars.length - 1)) / bars.length;
    for (const [role, letters] of bars) {
      const look = { rx: 2, fill: this.pen.mix(ROLES[role], 0.2), stroke: ROLES[role], "stroke-width": 1 };
      parts.push(this.pen.rect(x + inset, below, side, tall, look));
      if (w > 30 && tall > SMALL) parts.push(this.pen.text(x + w / 2, below + tall / 2 + 3.5, letters, { weight: 600 }));
      below += tall + 3;
    }
    parts.push(this.pen.text(x + w / 2, y + h - 5, String(block), { weight: open ? 700 : 500 }));
    const group = this.pen.held(
      path,
      [
        this.pen.boxes.blockName(stack, block),
        open ? "open" : "folded",
        plural(this.pen.data.counts[stack], "parameter"),
        ...(window ? [`window of ${plural(window, "token")}`] : []),
      ].join(", "),
      { "data-block": path, "data-stack": stack, "data-number": block, "aria-expanded": open },
      ...parts,
    );
    if (open) {
      this.lens = { x, w, bottom: y + h };
      this.pen.order.push(...this.pen.boxes.of(stack, block));
    }
    if (has("cross_attention.q") && this.memory) {
      // What every block of the decoder reads of the encoder.
      const { cx, y: top, h: high } = this.memory;
      this.pen.arrow("memory", path, turns(cx, top + high, cx, top + high + 25, x + w / 2, y));
    }
    return group;
  }

  // Text at both ends

  /**
   * @param {number} x
   * @param {number} top
   * @param {number} width
   * @param {number} height
   * @param {string} heading
   * @param {string | null} path
   */
  column(x, top, width, height, heading, path) {
    const column = make("div", "column");
    Object.assign(column.style, { left: `${x}px`, top: `${top}px`, width: `${width}px`, height: `${height}px` });
    const head = path
      ? make("button", "bare heading", heading, { "data-box": path, "data-path": path })
      : make("div", "heading", heading);
    if (path) this.pen.elements.set(path, head);
    column.append(head);
    return column;
  }

  /** @param {string} stack @param {Token[]} tokens @param {number} top */
  tokensAt(stack, tokens, top) {
    const heading = this.pen.data.sizes[0]
      ? stack
        ? `Source: ${plural(tokens.length, "token")}`
        : `Written: ${plural(tokens.length, "token")}`
      : plural(tokens.length, "token");
    const column = this.column(0, top, TOKENS, this.pen.layout.row, heading, `${stack}ids`);
    column.append(this.strip(tokens, "how probable the model found it"));
    return column;
  }

  /** @param {Token[]} tokens @param {string} meaning */
  strip(tokens, meaning) {
    const strip = make("div", `strip${this.pen.data.spaced ? " spaced" : ""}`, undefined, {
      role: "list",
      "aria-label": "Tokens",
    });
    for (const [label, probability] of tokens) {
      const token = chip(label);
      token.setAttribute("role", "listitem");
      if (probability !== null) {
        token.setAttribute("aria-label", `${spoken(label)}, ${percent(probability)}`);
        tint(token, probability);
        token.title = `${spoken(label)}: ${percent(probability)}, ${meaning}`;
      }
      strip.append(token, make("wbr"));
    }
    return strip;
  }

  /** @param {number} top */
  guessesAt(top) {
    const { data, layout, width } = this.pen;
    const headings = /** @type {Record<string, string>} */ ({
      decoder: "Next token",
      classifier: "Label",
      "encoder-decoder": `Answer: ${plural(data.guesses.length, "token")}`,
    });
    const heading = headings[data.kind];
    const left = width - layout.guesses;
    const column = layout.isNarrow ? make("div", "column") : this.column(left, top, layout.guesses, layout.row, heading, null);
    if (layout.isNarrow) column.append(make("div", "heading", heading));
    if (data.kind === "encoder-decoder") {
      column.append(this.strip(data.guesses, "how sure it was"));
      return column;
    }
    const list = make("div", `guesses${data.guesses.length <= MOST_WITH_ROOM ? " roomy" : ""}`);
    column.append(list);
    data.guesses.forEach((/** @type {Token} */ [label, probability], /** @type {number} */ i) => {
      const line = make(data.takes ? "button" : "div", data.takes ? "bare guess" : "guess", undefined, { "data-guess": i });
      fillLine(line, label, probability, 12);
      line.title = data.takes ? `Append ${spoken(label)} to the prompt` : label;
      line.setAttribute("aria-label", `${data.takes ? "take " : ""}${spoken(label)}, ${sure(probability)}`);
      list.append(line);
      if (!data.takes) return;
      const path = `guess ${i}`;
      line.dataset.path = path;
      this.pen.elements.set(path, line);
      this.pen.order.push(path);
    });
    return column;
  }
}
